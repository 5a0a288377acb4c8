"""From documents to pairs: pick a sentence, say it in other words, and make half of them wrong."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from guardrail.training.pairs import NOT_ENTAILMENT, TrainingPair
from guardrail.training.perturb.compress import compress, move_time
from guardrail.training.perturb.draft import Draft, is_broken, lowered
from guardrail.training.perturb.entities import named, passive, swapped_roles, wrong_join, wrong_name, wrong_speaker
from guardrail.training.perturb.invent import (
    added_detail,
    clauses_of,
    false_link,
    filler,
    inserted_detail,
    removed_source,
    silence,
)
from guardrail.training.perturb.material import Document, leans, read_document, speaks_of_somebody
from guardrail.training.perturb.rephrase import is_order, reported_order, reword_phrases
from guardrail.training.perturb.values import reword_values, wrong_value
from guardrail.training.perturb.wording import negated, open_with, stretched, unhedged, use_synonyms, wrong_opposite

_MAX_WORDS = 110
_FOREIGN_DOCUMENTS = 250
_TRIES = 6
_EMPTY_ROUNDS = 10
_BORED = 0.75  # share of the sentences which no rule could reword that are left out
_CLAIMS = 6
_LOOKED_AT = 10
_ANYWHERE = frozenset(("detail", "inserted", "removed"))
_WEIGHTS = {
    "value": 22,
    "name": 15,
    "role": 16,
    "negation": 6,
    "opposite": 9,
    "stretch": 16,
    "hedge": 16,
    "detail": 10,
    "inserted": 4,
    "link": 5,
    "speaker": 14,
    "join": 14,
    "removed": 5,
    "filler": 5,
    "silence": 2,
}
ERROR_LABELS = {
    "value": "contradiction",
    "negation": "contradiction",
    "opposite": "contradiction",
    "detail": "neutral",
    "inserted": "neutral",
    "link": "neutral",
}


@dataclass(slots=True)
class Foreign:
    """What other documents lend to errors."""

    names: list[str] = field(default_factory=list)
    people: list[str] = field(default_factory=list)
    clauses: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Claim:
    """A faithful draft and the sentences that it says."""

    draft: Draft
    used: tuple[int, ...]


def prose_pairs(passages: Sequence[Sequence[str]], *, count: int, seed: int = 7) -> Iterator[TrainingPair]:
    """Make training pairs from documents that nobody has labelled.

    Every hypothesis is a sentence of a document in other words; the premise is the evidence that the guard would
    choose for it. About half of the hypotheses get one or two errors whose ranges are known.

    Args:
        passages: Contexts, each a list of passages. Long ones give more pairs.
        count: How many pairs, at most; documents without usable sentences give none.
        seed: Decides everything that is left to chance.

    Yields:
        The pairs; ``source`` is ``"prose_"`` and the kind of the error, or ``"prose_faithful"``.

    Example:
        >>> text = "The mill was sold in 1932. It burned down in 1950 after a storm. Anna Rossi built it again."
        >>> {pair.unsupported != () for pair in prose_pairs([[text]], count=20)}
        {False, True}
    """
    rng = random.Random(seed)
    contexts = [tuple(context) for context in passages if any(text.strip() for text in context)]
    if not contexts or count <= 0:
        return
    foreign = borrow(rng.sample(contexts, min(_FOREIGN_DOCUMENTS, len(contexts))))
    sizes = [min(sum(len(text) for text in context), 6000) for context in contexts]
    made, empty_rounds = 0, 0
    seen: set[str] = set()
    while made < count and empty_rounds < _EMPTY_ROUNDS:
        share = (count - made) / sum(sizes)
        before = made
        for at in rng.sample(range(len(contexts)), len(contexts)):
            wanted = min(int(share * sizes[at] + rng.random()), count - made)
            if wanted:
                for pair in _pairs_of(read_document(contexts[at]), rng, foreign, wanted, seen):
                    made += 1
                    yield pair
        empty_rounds = empty_rounds + 1 if made == before else 0


def borrow(contexts: Sequence[Sequence[str]]) -> Foreign:
    """What documents can lend to errors in other documents: names, people, clauses."""
    lent = Foreign()
    for context in contexts:
        document = read_document(context)
        lent.names.extend(document.names[:12])
        lent.people.extend(name for name in document.names if document.is_person(name))
        lent.clauses.extend(clauses_of(document.sentence(index) for index in document.fit))
    return lent


def _pairs_of(
    document: Document, rng: random.Random, foreign: Foreign, wanted: int, seen: set[str]
) -> Iterator[TrainingPair]:
    made = 0
    for _ in range(wanted * 3):
        if made >= wanted or not document.fit:
            return
        pair = _pair(document, rng, foreign)
        if pair and (pair.premise + pair.hypothesis) not in seen:
            seen.add(pair.premise + pair.hypothesis)
            made += 1
            yield pair


def _pair(document: Document, rng: random.Random, foreign: Foreign) -> TrainingPair | None:
    if rng.random() < 0.5:
        return _right(document, rng)
    kinds = sorted(_WEIGHTS, key=lambda kind: rng.random() ** (1 / _WEIGHTS[kind]), reverse=True)
    for kind in kinds[:_TRIES]:
        if kind == "filler":
            made = filler(rng, document)
        elif kind == "silence":
            made = silence(rng, document)
            made = None if made and made.label == "entailment" else made
        else:
            made = _wrong(kind, document, rng, foreign)
        if made:
            return made
    return None


def _right(document: Document, rng: random.Random) -> TrainingPair | None:
    if rng.random() < 0.03 and (remark := silence(rng, document)) and remark.label == "entailment":
        return remark
    for _ in range(_CLAIMS):
        claim = _claim(document, rng, rng.choice(document.fit))
        if claim and (made := _finish(claim, document, "faithful", "entailment")):
            return made
    return None


def _wrong(kind: str, document: Document, rng: random.Random, foreign: Foreign) -> TrainingPair | None:
    for index in _candidates(kind, document, rng, foreign):
        claim = _claim(document, rng, index)
        made = None
        if claim and kind == "removed":
            made = None if leans(claim.draft.text) else removed_source(claim.draft, document, claim.used)
        elif claim and err(kind, claim, document, rng, foreign):
            made = _second(kind, claim, document, rng, foreign)
        if made:
            return made
    return None


def _candidates(kind: str, document: Document, rng: random.Random, foreign: Foreign) -> list[int]:
    """Sentences in which an error of the kind is possible, before anything is reworded."""
    some = rng.sample(document.fit, min(len(document.fit), _LOOKED_AT))
    if kind not in _ANYWHERE:
        some = [i for i in some if err(kind, Claim(Draft(document.sentence(i)), (i,)), document, rng, foreign)]
    return some[:_CLAIMS]


def _second(kind: str, claim: Claim, document: Document, rng: random.Random, foreign: Foreign) -> TrainingPair | None:
    label = ERROR_LABELS.get(kind, NOT_ENTAILMENT)
    if kind not in ("link", "join") and rng.random() < 0.15:
        more = rng.choice(("value", "name", "opposite", "stretch", "detail"))
        if more != kind and err(more, claim, document, rng, foreign) and ERROR_LABELS.get(more) != label:
            label = "contradiction" if "contradiction" in (label, ERROR_LABELS.get(more)) else NOT_ENTAILMENT
    return _finish(claim, document, kind, label)


def err(kind: str, claim: Claim, document: Document, rng: random.Random, foreign: Foreign) -> bool:
    """Make an error of a kind in a claim, and mark where; returns whether the claim has a place for it."""
    draft = claim.draft
    simple: dict[str, Callable[[Draft, random.Random], bool]] = {
        "role": swapped_roles,
        "negation": negated,
        "opposite": wrong_opposite,
        "stretch": stretched,
        "hedge": unhedged,
    }
    if kind in simple:
        return simple[kind](draft, rng)
    if kind == "value":
        return wrong_value(draft, rng, document.values)
    if kind == "name":
        return wrong_name(draft, rng, document, foreign.names)
    if kind == "detail":
        return added_detail(draft, rng, document, foreign.clauses)
    if kind == "inserted":
        return inserted_detail(draft, rng, document)
    if kind == "speaker":
        return wrong_speaker(draft, rng, document, foreign.people)
    others = [index for index in document.fit if index not in claim.used and not leans(document.sentence(index))]
    if not others:
        return False
    for other in rng.sample(others, min(len(others), 5)):
        said = Draft(document.sentence(other))
        compress(said, rng)
        if kind == "join" and wrong_join(draft, rng, said.text):
            return True
        if kind == "link" and false_link(draft, rng, said.text, document.text):
            claim.used = (*claim.used, other)
            return True
    return False


def _claim(document: Document, rng: random.Random, index: int) -> Claim | None:
    """A sentence, or two joined ones, in other words."""
    said = document.sentence(index)
    used: tuple[int, ...] = (index,)
    if leans(said):
        before = document.sentence(index - 1) if index else ""
        full = (
            named(said, before, document)
            if before and document.passage_of(index) == document.passage_of(index - 1)
            else None
        )
        if full:
            said, used = full, (index - 1, index)
        elif rng.random() < 0.8:
            return None
    draft = Draft(said)
    if rng.random() < 0.9:
        reword(draft, rng)
        following = document.neighbour(index)
        if following is not None and rng.random() < 0.22 and _joined(draft, document, following, rng):
            used = (*used, following)
    if draft.text == document.sentence(index) and rng.random() < _BORED:
        return None
    if (
        rng.random() < 0.14
        and not is_order(draft.text)
        and not draft.text.startswith(("According", "It is", "The instructions"))
    ):
        open_with(draft, rng, document.text)
    return None if is_broken(draft.text) else Claim(draft, used)


def reword(draft: Draft, rng: random.Random) -> None:
    """Say a sentence of a document in other, mostly fewer, words that it still supports."""
    if rng.random() < 0.75:
        compress(draft, rng)
    if rng.random() < 0.6:
        passive(draft)
    if rng.random() < 0.5:
        move_time(draft, rng)
    if rng.random() < 0.4:
        reword_values(draft, rng)
    if rng.random() < 0.55:
        reported_order(draft, rng)
    if rng.random() < 0.8:
        reword_phrases(draft, rng)
    if rng.random() < 0.8:
        use_synonyms(draft, rng)


def _joined(draft: Draft, document: Document, following: int, rng: random.Random) -> bool:
    other = Draft(document.sentence(following))
    reword(other, rng)
    if len(draft.text.split()) + len(other.text.split()) > 40 or not draft.text.endswith(".") or is_broken(other.text):
        return False
    if speaks_of_somebody(other.text) and not speaks_of_somebody(draft.text) and len(document.names) > 6:
        return False
    plain = is_order(draft.text) or is_order(other.text)
    link = rng.choice((", and ", "; ") if plain else (", and ", ", and ", ", while ", "; "))
    draft.text = draft.text[:-1] + link + lowered(other.text, document.text)
    return True


def _finish(claim: Claim, document: Document, kind: str, label: str) -> TrainingPair | None:
    draft = claim.draft
    if is_broken(draft.text):
        return None
    windows = document.index.select(draft.text, max_words=_MAX_WORDS)
    if not windows:
        return None
    chosen = {sentence.index for sentence in windows[0].sentences}
    if not chosen.issuperset(claim.used):
        return None
    if label != "entailment" and (not draft.spans or draft.text == document.sentence(claim.used[-1])):
        return None
    return draft.pair(windows[0].premise, label, f"prose_{kind}")
