"""Answers with their contexts, as an application has them."""

from __future__ import annotations

import random

from guardrail.evaluation.labelled import LabelledAnswer, read_answers
from tests.benchmarks.fit_policy import SHARED, TRAIN

_HERITAGE = (
    "The harbour museum opened in 1931 in a former grain store on the north quay. It keeps about 12,000 objects, most "
    "of them gifts from families of fishermen. The permanent exhibition shows models of 48 ships and the workshop of "
    "the last sail maker, who closed his shop in 1974. A guided tour takes 75 minutes and is offered on Saturdays. "
    "Entry costs 9 euros; children under 12 pay nothing. The café on the roof is open from April to October.",
    "In 2018 the city council approved a new wing for the museum. Work began in March 2020 and was to take two years, "
    "but the ground had to be dried first, so that the wing opened in the summer of 2023. It holds the archive with "
    "30,000 photographs, a reading room with 24 seats and a laboratory. The archive can be used without charge after "
    "registration. The wing cost 14.2 million euros, of which the state paid two thirds.",
)
_HONEY = (
    "Raw honey is taken from the comb and strained, but not heated above the temperature of the hive. Most honey in "
    "shops is heated to about 70 degrees, which keeps it liquid for longer and kills yeast. Heating also destroys "
    "some enzymes. Raw honey crystallises within weeks or months; this does not mean that it has gone bad. Infants "
    "under one year should not eat honey of any kind, because it may contain spores that cause botulism.",
)
_FIXED = (
    (
        "When can the museum's archive be used?",
        _HERITAGE,
        "The archive stands in the new wing, which opened in the summer of 2023. It holds 30,000 photographs. It can "
        "be used free of charge after registration, and the reading room has 24 seats. The museum itself opened in "
        "1931 in a former grain store.",
    ),
    (
        "What does the museum show?",
        _HERITAGE,
        "The permanent exhibition shows models of 48 ships. It also has the workshop of the last sail maker. A guided "
        "tour takes 75 minutes. Entry costs 9 euros, and children under 12 enter free.",
    ),
    (
        "Is raw honey safe for babies?",
        _HONEY,
        "No, infants under one year should not eat any kind of honey. It may contain spores that cause botulism. Raw "
        "honey is not heated above the temperature of the hive. It crystallises within weeks or months, and that does "
        "not mean that it is spoiled.",
    ),
)


def realistic_answers(count: int, *, max_chars: int = 1_500) -> list[LabelledAnswer]:
    """Answers of language models to questions over passages, and summaries of news.

    Args:
        count: How many.
        max_chars: Longest answer.

    Returns:
        A fixed selection of RAGTruth's training part if it stands beside the repository, else a few texts in turn.
    """
    paths = [SHARED / name for name in TRAIN]
    if not all(path.is_file() for path in paths):
        return [_fixed(at) for at in range(count)]
    rows = [row for path in paths for row in read_answers(path) if len(row.answer) <= max_chars]
    return random.Random(20).sample(rows, count)


def _fixed(at: int) -> LabelledAnswer:
    question, context, answer = _FIXED[at % len(_FIXED)]
    return LabelledAnswer(id=str(at), question=question, context=context, answer=answer, grounded=True)
