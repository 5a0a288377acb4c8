"""Training pairs from the grounded claims of labelled answers: said in other words, and with errors at known places."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from guardrail.evaluation.labelled import LabelledAnswer
from guardrail.scoring.claims import Preceding, claim_of, needs_check
from guardrail.text.segmenter import segment
from guardrail.training.pairs import NOT_ENTAILMENT, TrainingPair
from guardrail.training.perturb.compress import move_time
from guardrail.training.perturb.draft import Draft, is_broken
from guardrail.training.perturb.entities import passive
from guardrail.training.perturb.material import Document, read_document
from guardrail.training.perturb.prose import ERROR_LABELS, Claim, Foreign, borrow, err
from guardrail.training.perturb.rephrase import reword_phrases
from guardrail.training.perturb.values import reword_values
from guardrail.training.perturb.wording import use_synonyms

_MAX_WORDS = 110
_SHORTEST, _LONGEST = 5, 60
_ERRORS = {
    "value": 24,
    "name": 22,
    "role": 10,
    "negation": 6,
    "opposite": 12,
    "stretch": 14,
    "hedge": 10,
    "detail": 9,
    "inserted": 3,
    "speaker": 5,
    "join": 10,
    "link": 3,
}
_TRIES = 5


def edited_pairs(answers: Sequence[LabelledAnswer], *, count: int, seed: int = 7) -> Iterator[TrainingPair]:
    """Make training pairs from what people found grounded in answers of language models.

    Sentences of documents, reworded by rule, do not read like answers; claims of answers do. Half of the pairs get an
    error whose range is known, the others are reworded.

    Args:
        answers: Labelled answers; ``detail["spans"]`` holds what people marked as unsupported.
        count: How many pairs, at most.
        seed: Decides everything that is left to chance.

    Yields:
        The pairs; ``source`` is ``"edited_"`` and the kind of the error, or ``"edited_faithful"``.

    Example:
        >>> row = LabelledAnswer(
        ...     id="1", question="", context=("The old mill was sold to Anna Rossi in 1932 for 900 crowns.",),
        ...     answer="Anna Rossi bought the old mill in 1932.", grounded=True,
        ... )
        >>> {pair.unsupported != () for pair in edited_pairs([row] * 20, count=20)}
        {False, True}
    """
    rng = random.Random(seed)
    rows = [row for row in answers if row.grounded or row.detail.get("spans")]
    if not rows or count <= 0:
        return
    contexts = list(dict.fromkeys(row.context for row in rows))
    foreign = borrow(rng.sample(contexts, min(250, len(contexts))))
    documents: dict[tuple[str, ...], Document] = {}
    seen: set[str] = set()
    made = 0
    share = count / len(rows)
    for row in rng.sample(rows, len(rows)):
        wanted = min(int(share + rng.random()), count - made)
        claims = _grounded_claims(row)
        if not wanted or not claims:
            continue
        if row.context not in documents:
            documents[row.context] = read_document(row.context)
        for claim in rng.sample(claims, min(wanted, len(claims))):
            pair = _pair(claim, documents[row.context], rng, foreign)
            if pair and pair.hypothesis not in seen:
                seen.add(pair.hypothesis)
                made += 1
                yield pair


def _grounded_claims(row: LabelledAnswer) -> list[str]:
    marked = [(int(span["start"]), int(span["end"])) for span in row.detail.get("spans") or ()]
    return [
        claim_of(piece, Preceding(), passages=len(row.context))
        for piece in segment(row.answer)
        if needs_check(piece)
        and _SHORTEST <= len(piece.text.split()) <= _LONGEST
        and not piece.text.rstrip().endswith(":")
        and not any(start < piece.end and piece.start < end for start, end in marked)
    ]


def _pair(text: str, document: Document, rng: random.Random, foreign: Foreign) -> TrainingPair | None:
    if rng.random() < 0.5:
        draft = Draft(text)
        _reword(draft, rng)
        return None if draft.text == text else _finish(draft, document, "faithful", "entailment")
    kinds = sorted(_ERRORS, key=lambda kind: rng.random() ** (1 / _ERRORS[kind]), reverse=True)
    for kind in kinds[:_TRIES]:
        draft = Draft(text)
        if rng.random() < 0.4:
            _reword(draft, rng)
        if err(kind, Claim(draft, ()), document, rng, foreign):
            made = _finish(draft, document, kind, ERROR_LABELS.get(kind, NOT_ENTAILMENT))
            if made:
                return made
    return None


def _reword(draft: Draft, rng: random.Random) -> None:
    """Other words only: an answer is dense already, and what is cut out of it may be what makes it true."""
    if rng.random() < 0.4:
        passive(draft)
    if rng.random() < 0.4:
        move_time(draft, rng, drop=False)
    if rng.random() < 0.5:
        reword_values(draft, rng)
    if rng.random() < 0.8:
        reword_phrases(draft, rng)
    if rng.random() < 0.6:
        use_synonyms(draft, rng, most=2)


def _finish(draft: Draft, document: Document, kind: str, label: str) -> TrainingPair | None:
    if is_broken(draft.text) or (label != "entailment" and not draft.spans):
        return None
    windows = document.index.select(draft.text, max_words=_MAX_WORDS)
    if not windows:
        return None
    return draft.pair(windows[0].premise, label, f"edited_{kind}")
