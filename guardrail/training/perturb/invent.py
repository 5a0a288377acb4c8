"""What the evidence does not say: details, links, whole sentences; and remarks on what it is silent about."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Sequence

from guardrail.scoring.evidence import EvidenceIndex
from guardrail.training.pairs import TrainingPair
from guardrail.training.perturb.bank import DETAILS, FILLERS, OPENINGS, SILENT
from guardrail.training.perturb.draft import Draft, lowered
from guardrail.training.perturb.material import Document
from guardrail.types import Passage

_CLAUSE = re.compile(
    r"(,? (?:which|because|so that|in order to|due to|after|while|allowing|making|causing|leading to"
    r"|resulting in|despite|thanks to|by \w+ing|as part of|in the) "
    r"[^,;:()\"]{14,80})\.$"
)
_WORDS = re.compile(r"[a-z]{4,}")
_LINKS = ("because", "which is why", "and as a result,", "and therefore", "so", "since")
_NAMED_SILENCE = (
    "The passage does not mention {}.",
    "The passages do not provide any information about {}.",
    "There is no mention of {} in the passage.",
    "The provided text does not say anything about {}.",
    "The article gives no details about {}.",
)


def clauses_of(sentences: Iterable[str]) -> list[str]:
    """Ends of sentences that can be put to another sentence as an invented detail.

    Example:
        >>> clauses_of(["The mill was closed because the river had changed its course.", "It rained."])
        [' because the river had changed its course']
    """
    return [found[1] for s in sentences if (found := _CLAUSE.search(s))]


def is_new(phrase: str, document: Document) -> bool:
    """Whether most content words of a phrase stand nowhere in the document."""
    words = _WORDS.findall(phrase.lower())
    text = document.text.lower()
    return sum(word[:6] not in text for word in words) * 2 > len(words)


def added_detail(draft: Draft, rng: random.Random, document: Document, foreign: Sequence[str]) -> bool:
    """Append a reason, place, time, consequence or piece of advice that nobody gave.

    Args:
        draft: The sentence; changed in place.
        rng: Decides which detail.
        document: What must not have the detail.
        foreign: Clauses of other documents.

    Returns:
        Whether a detail was found that is new.
    """
    if not draft.text.endswith(".") or len(draft.text.split()) > 34:
        return False
    for _ in range(4):
        phrase = rng.choice(foreign) if foreign and rng.random() < 0.4 else rng.choice(DETAILS)
        if not is_new(phrase, document):
            continue
        if not phrase.startswith((" ", ",")):
            comma = phrase.startswith(
                ("which", "making", "leading", "resulting", "causing", "so ", "and ", "despite", "as ", "according")
            )
            phrase = (", " if comma else " ") + phrase
        return draft.replace(len(draft.text) - 1, len(draft.text) - 1, phrase, wrong=True)
    return False


def inserted_detail(draft: Draft, rng: random.Random, document: Document) -> bool:
    """Begin with a circumstance that nobody gave."""
    choices = [
        d
        for d in rng.sample(DETAILS, 12)
        if d.startswith(
            (
                "due to",
                "after",
                "in ",
                "because of",
                "as a result",
                "despite",
                "on the",
                "at ",
                "for ",
                "with",
                "before",
            )
        )
    ]
    choices = [d for d in choices if is_new(d, document) and "'s " not in d]
    if not choices or draft.text.startswith(("According", "Based", "In ", "On ")):
        return False
    phrase = choices[0][0].upper() + choices[0][1:]
    body = lowered(draft.text, document.text)
    draft.text = body
    return draft.replace(0, 0, phrase + ", ", wrong=True) and _trim_first(draft, len(phrase))


def _trim_first(draft: Draft, end: int) -> bool:
    draft.spans = [(a, min(b, end)) if a == 0 else (a, b) for a, b in draft.spans]
    return True


def false_link(draft: Draft, rng: random.Random, other: str, text: str) -> bool:
    """Claim that one fact follows from another one; the range is the link."""
    if (
        re.search(r"\b(?:because|since|due to|so|as a result|therefore|led|caused)\b", draft.text + other)
        or len(draft.text.split()) > 24
    ):
        return False
    link = rng.choice(_LINKS)
    body, rest = draft.text[:-1], lowered(other, text)
    draft.text = f"{body}{',' if link.startswith(('which', 'and', 'so')) else ''} {link} {rest}"
    start = draft.text.index(link, len(body))
    return draft.mark(start, start + len(link.rstrip(",")))


def filler(rng: random.Random, document: Document) -> TrainingPair | None:
    """A sentence that fits many texts and that this one does not have."""
    sentence = rng.choice(FILLERS)
    if not is_new(sentence, document) or not (windows := document.index.select(sentence, max_words=110)):
        return None
    if rng.random() < 0.15:
        opening = rng.choice(OPENINGS)
        sentence = opening + lowered(sentence)
    start = len(sentence) - len(sentence.split(", ", 1)[-1]) if sentence.startswith(("According", "Based")) else 0
    return TrainingPair(
        premise=windows[0].premise,
        hypothesis=sentence,
        label="neutral",
        source="prose_filler",
        unsupported=((start, len(sentence)),),
    )


def silence(rng: random.Random, document: Document) -> TrainingPair | None:
    """An honest remark that something is not in the text, or a false one about something that is."""
    text = document.text.lower()
    if rng.random() < 0.6:
        name, words = rng.choice(SILENT)
        if any(word in text for word in words):
            return None
        said, label = (
            rng.choice(_NAMED_SILENCE).format(f"the {name}"),
            "entailment",
        )
    else:
        names = [n for n in document.names if " " in n]
        if not names:
            return None
        said, label = rng.choice(_NAMED_SILENCE).format(rng.choice(names)), "contradiction"
    windows = document.index.select(said, max_words=110)
    if not windows:
        return None
    spans = () if label == "entailment" else ((0, len(said)),)
    return TrainingPair(
        premise=windows[0].premise, hypothesis=said, label=label, source="prose_silence", unsupported=spans
    )


def removed_source(draft: Draft, document: Document, used: Sequence[int]) -> TrainingPair | None:
    """A faithful sentence with evidence that lacks what it was taken from, and everything that resembles it."""
    wanted = set(_WORDS.findall(draft.text.lower())) | {
        w for s in used for w in _WORDS.findall(document.sentence(s).lower())
    }
    kept: dict[str, list[str]] = {}
    for sentence in document.index.sentences:
        own = set(_WORDS.findall(sentence.said.lower()))
        shared = len(own & wanted)
        if sentence.index not in used and shared < 5 and shared * 2 < max(len(own), 1):
            kept.setdefault(sentence.span.passage_id, []).append(sentence.said)
    if sum(map(len, kept.values())) < 3:
        return None
    rest = EvidenceIndex([Passage(id=at, text=" ".join(said)) for at, said in kept.items()])
    windows = rest.select(draft.text, max_words=110)
    if not windows:
        return None
    start = max((len(opening) for opening in OPENINGS if draft.text.startswith(opening)), default=0)
    return TrainingPair(
        premise=windows[0].premise,
        hypothesis=draft.text,
        label="neutral",
        source="prose_removed",
        unsupported=((start, len(draft.text)),),
    )
