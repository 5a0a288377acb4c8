"""Training pairs from invented JSON records: one sentence about a record, faithful or with errors that are known."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from guardrail.scoring.evidence import EvidenceIndex
from guardrail.training import record_claims as facts
from guardrail.training import record_opinions as opinions
from guardrail.training.pairs import NOT_ENTAILMENT, Span, TrainingPair
from guardrail.training.record_business import Business, invent_business
from guardrail.training.record_claims import Claim, Maker
from guardrail.training.record_domains import entry_claim, invent_entry
from guardrail.training.record_hours import hours
from guardrail.types import Passage

_EVIDENCE_WORDS = 110
_BUSINESS_SHARE = 0.7
_ENTAILED_SHARE = 0.5
_TRIES = 12
_PER_RECORD = 4

_FACTS: tuple[tuple[Maker, int], ...] = (
    (facts.amenity, 4),
    (facts.amenities, 6),
    (facts.missing, 2),
    (facts.parking, 4),
    (facts.ambience, 3),
    (facts.music, 2),
    (facts.rating, 3),
    (facts.identity, 4),
    (facts.categories, 2),
    (hours, 5),
    (facts.conclusion, 2),
)
_OPINIONS: tuple[tuple[Maker, int], ...] = (
    (opinions.said_by_one, 5),
    (opinions.two_voices, 3),
    (opinions.praised, 6),
    (opinions.chorus, 5),
    (opinions.mixed, 3),
    (opinions.dish, 2),
    (opinions.stars, 2),
    (opinions.tone, 2),
    (opinions.quote, 1),
)
_OPENERS = (
    "Based on the provided data,Based on the structured data,According to the data,"
    "According to the provided information,Additionally,In addition,Furthermore,Overall,Notably,It appears that,"
    "From the data,As per the given data,In summary,Moreover,It is worth noting that"
).split(",")
_PLURAL = {"is": "are", "has": "have", "does": "do"}
_MARK = re.compile("[«»]")
_SMALL = re.compile(  # first words that are capital only at the start of a sentence
    r"«?(?:The|It|They|This|One|An?|All|Many|Most|Some|Several|Customers?|Reviews?|Reviewers?|While|No|There|In|Two"
    r"|With|Located|Situated)\b"
)


def record_pairs(count: int, *, seed: int = 7, prose: Sequence[str] = ()) -> Iterator[TrainingPair]:
    """Invent records and sentences about them.

    Seven in ten records are local businesses with hours, attributes and reviews; the others are hotels, products,
    apartments, people, medicines, events, flights and plans. About half of the sentences are faithful; in the others
    something is wrong, and it is known which words. The premise is what the verifier would select for the sentence;
    a pair is left out if that lacks a fact which decides the sentence.

    Args:
        count: How many pairs.
        seed: Start of the random numbers; the same seed and prose give the same pairs.
        prose: First-person texts; some reviews are taken from them instead of being composed.

    Yields:
        The pairs, each with its unsupported character ranges.

    Example:
        >>> pair = next(record_pairs(1))
        >>> pair.source.startswith("records_")
        True
    """
    rng = random.Random(seed)
    made = 0
    while made < count:
        for pair in _from_business(rng, prose) if rng.random() < _BUSINESS_SHARE else _from_entry(rng):
            if made < count:
                yield pair
                made += 1


def _from_business(rng: random.Random, prose: Sequence[str]) -> Iterator[TrainingPair]:
    business = invent_business(rng, prose)
    index = _index(business.record)
    for _ in range(_PER_RECORD):
        yield from _attempts(rng, index, "business", lambda bad: _business_sentence(business, rng, bad))


def _from_entry(rng: random.Random) -> Iterator[TrainingPair]:
    entry = invent_entry(rng)
    index = _index(entry.record)
    name = next(iter(entry.record.values()))
    name = name["name"] if isinstance(name, dict) else name
    subjects = [name, name, f"The {entry.domain.noun}", f"The {entry.domain.noun} {name}"]

    def sentence(bad: bool) -> Claim | None:
        claims: list[Claim] = []
        at = rng.randrange(3)
        for i in range(rng.choice([1, 1, 2, 3, 4])):
            claim = entry_claim(entry, rng, bad and i == 0)
            if claim.whole and claims:
                continue
            if claim.needs[0] not in [c.needs[0] for c in claims]:
                claims.append(claim)
            if claim.whole:
                break
        claims.insert(min(at, len(claims) - 1), claims.pop(0))
        return _joined(claims, subjects, rng)

    for _ in range(_PER_RECORD):
        yield from _attempts(rng, index, "other", sentence)


def _index(record: dict[str, Any]) -> EvidenceIndex:
    return EvidenceIndex([Passage(id="record", text=json.dumps(record))])


def _attempts(
    rng: random.Random, index: EvidenceIndex, kind: str, sentence: Callable[[bool], Claim | None]
) -> Iterator[TrainingPair]:
    """One pair, whose class is drawn first, so that what is hard to say does not shift the balance."""
    bad = rng.random() >= _ENTAILED_SHARE
    for _ in range(_TRIES):
        claim = sentence(bad)
        pair = _pair(claim, index, kind) if claim else None
        if pair is not None:
            yield pair
            return


def _pair(claim: Claim, index: EvidenceIndex, kind: str) -> TrainingPair | None:
    hypothesis, spans = unmarked(claim.text)
    windows = index.select(hypothesis, before="", max_words=_EVIDENCE_WORDS)
    if not windows:
        return None
    premise = windows[0].premise
    held = " ".join(premise.replace(": ", " ").split()).lower()
    if not all(" ".join(need.replace(": ", " ").split()).lower() in held for need in claim.needs):
        return None
    label = claim.wrong or "entailment"
    source = f"records_{kind}"
    return TrainingPair(premise=premise, hypothesis=hypothesis, label=label, source=source, unsupported=spans)


def unmarked(text: str) -> tuple[str, tuple[Span, ...]]:
    """A text without its marks, and where they stood.

    Args:
        text: A text with « and » around what is wrong.

    Returns:
        The text, and the ranges in it that were marked.

    Example:
        >>> unmarked("It has «free» parking.")
        ('It has free parking.', ((7, 11),))
    """
    edges = [m.start() - i for i, m in enumerate(_MARK.finditer(text))]
    return _MARK.sub("", text), tuple(zip(edges[::2], edges[1::2], strict=True))


def _business_sentence(b: Business, rng: random.Random, bad: bool) -> Claim | None:
    makers = _OPINIONS if rng.random() < 0.5 else _FACTS
    maker = rng.choices([m for m, _ in makers], [w for _, w in makers])[0]
    first = maker(b, rng, bad)
    if first is None:
        return None
    claims = [first]
    if not first.whole:
        used = {maker, facts.conclusion}
        if maker in (facts.amenity, facts.amenities):
            used |= {facts.amenity, facts.amenities}
        for _ in range(0 if maker is facts.conclusion else rng.choice([0, 0, 1, 1, 2, 3])):
            left = [(m, w) for m, w in _FACTS if m not in used]
            other = rng.choices([m for m, _ in left], [w for _, w in left])[0]
            used |= {other} | ({facts.amenity, facts.amenities} if other in (facts.amenity, facts.amenities) else set())
            claim = other(b, rng, bad and rng.random() < 0.15)
            if claim is not None and not claim.whole:
                claims.append(claim)
        rng.shuffle(claims)
    name = b.record["name"]
    subjects = [name, name, f"The {b.noun}", "It", "They", "The business", "The establishment", f"This {b.noun}"]
    return _joined(claims, subjects, rng)


def _joined(claims: Sequence[Claim], subjects: Sequence[str], rng: random.Random) -> Claim:
    """Verb phrases as one sentence, or a whole sentence with its first letter and its stop."""
    needs = tuple(need for claim in claims for need in claim.needs)
    wrongs = {claim.wrong for claim in claims}
    wrong = next((w for w in ("contradiction", NOT_ENTAILMENT, "neutral") if w in wrongs), "")
    whole = next((claim for claim in claims if claim.whole), None)
    if whole is not None:
        body, needs, wrong = whole.text, whole.needs, whole.wrong
    else:
        subject, phrases = _fronted(rng.choice(subjects), [claim.text for claim in claims], rng)
        if subject == "They":
            phrases = [_plural(phrase) for phrase in phrases]
        body = f"{subject} {_chain(phrases, rng, subject)}"
    opener = rng.choice(_OPENERS) if rng.random() < 0.28 and not body.startswith("Overall") else ""
    if opener:
        comma = " " if opener.endswith("that") else ", "
        lowered = _small_start(body)
        body = f"{opener}{comma}{lowered}"
    else:
        at = 1 if body.startswith("«") else 0
        body = body[:at] + body[at].upper() + body[at + 1 :]
    stop = "" if rng.random() < 0.04 else "."
    stop = "" if re.search(r'[.!?]["»]*$', body) else stop
    return Claim(text=body + stop, needs=needs, wrong=wrong, whole=True)


def _small_start(body: str) -> str:
    """A sentence as it goes on after an opener."""
    first = _SMALL.match(body)
    return first[0].lower() + body[first.end() :] if first else body


def _fronted(subject: str, phrases: list[str], rng: random.Random) -> tuple[str, list[str]]:
    """The subject with one of several phrases in front of it or beside it: "Located in …, it", "Rosa, a café in …,"."""
    if len(phrases) < 2 or rng.random() < 0.5 or subject == "They":
        return subject, phrases
    for phrase in phrases:
        rest = [other for other in phrases if other is not phrase]
        if phrase.startswith(("is located", "is situated")):
            return f"{phrase[3].upper()}{phrase[4:]}, {_lowered(subject)}", rest
        if phrase.startswith(("has a ", "has an ")) and ", but" not in phrase:
            return f"With {phrase[4:]}, {_lowered(subject)}", rest
        if phrase.startswith(("is a ", "is an ")) and subject not in ("It",):
            return f"{subject}, {phrase[3:]},", rest
    return subject, phrases


def _lowered(subject: str) -> str:
    return subject[0].lower() + subject[1:] if subject.split()[0] in ("The", "It", "They", "This") else subject


def _plural(phrase: str) -> str:
    """A verb phrase for "they": "offers parking, but does not …" becomes "offer parking, but do not …"."""
    lead = "«" if phrase.startswith("«") else ""
    verb, gap, rest = phrase[len(lead) :].partition(" ")
    clean = verb.rstrip("»")
    tail = verb[len(clean) :]
    rest = rest.replace("but does not", "but do not").replace("for its ", "for their ")
    return f"{lead}{_PLURAL.get(clean, clean.removesuffix('s'))}{tail}{gap}{rest}"


def _chain(phrases: Sequence[str], rng: random.Random, subject: str) -> str:
    """Verb phrases one after the other, as clauses where a list would be hard to read."""
    if len(phrases) == 1:
        return phrases[0]
    pronoun = "they" if subject == "They" else "it"
    also = rng.choice([f"; {pronoun} also ", f", while {pronoun} also "])
    joint = rng.choice([" and ", " and ", ", and ", f", and {pronoun} ", also])
    if joint.endswith("also ") and phrases[1].lstrip("«").split()[0] in ("is", "are", "does", "do", "can"):
        joint = f", and {pronoun} "
    if len(phrases) > 2:
        return f"{', '.join(phrases[:-1])}, and {phrases[-1]}"
    return joint.join(phrases)
