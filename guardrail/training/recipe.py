"""The recipe of the embedded model: four stages of pairs, and how each is trained.

The first stage is broad: published pairs about single sentences and whole paragraphs, statements made by rules, and
answers that people have marked. The second is near to what the guard sees: the answers twice, claims about records,
sentences of documents in other words with errors at known places, and some of the first stage, so that it stays known.
The third repeats a part of both with many short premises, and with word labels only where errors are marked: a source
that marks none would otherwise teach that every word under a short premise is supported. The fourth returns to the
answers: each claim with evidence of three lengths, claims of answers with errors made on purpose, and a little of all
the rest. What is published is the mean of the weights after the last three.
"""

from __future__ import annotations

import math
import random
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from guardrail.errors import InputError
from guardrail.evaluation.labelled import LabelledAnswer, read_answers
from guardrail.scoring.evidence import EvidenceIndex
from guardrail.training.answers import pairs_of
from guardrail.training.data import FileCount
from guardrail.training.differences import changed_words
from guardrail.training.loop import Schedule
from guardrail.training.pairs import Span, TrainingPair, read_pairs, write_pairs
from guardrail.training.perturb import edited_pairs, prose_pairs
from guardrail.training.record_pairs import record_pairs
from guardrail.training.sources import ANSWER_SOURCES, PAIR_SOURCES, PROSE_SOURCES, REVIEW_SOURCE
from guardrail.types import Passage

FIRST_STAGE = Schedule(learning_rate=1e-4, warmup_share=0.03, decay_share=0.0, word_weight=0.5)
FIRST_STAGE_STEPS = 1188
"""The first stage is cut here, at its full learning rate: the second goes on from a network that still moves."""
SECOND_STAGE = Schedule(learning_rate=1e-4, warmup_share=0.01, decay_share=0.5, word_weight=1.0)
THIRD_STAGE = Schedule(learning_rate=7e-5, warmup_share=0.03, decay_share=0.8, word_weight=1.0, seed=9)
FOURTH_STAGE = Schedule(learning_rate=1e-4, warmup_share=0.02, decay_share=0.75, word_weight=1.0, seed=13)
SHARES = {"second": 0.2, "third": 0.5, "fourth": 0.3}
"""The shipped weights are a mean over these stages: the last alone knows the answers it was trained on too well."""
MAX_TOKENS = 224

_LONG_PREMISE = 115
_EDITS = ("antonym", "dateswap", "numberswap", "entityswap", "negation", "overclaim", "added_detail")
_HELD_OUT = 5
_ANSWERS_TWICE = 2
_RECORDS = 14_000
_PROSE_OF_ANSWERS, _PROSE_OF_OTHERS = 6_400, 9_600
_REPEATED = 34_000
_THIRD = {"answers": 11_000, "records": 6_000, "prose": 5_000, "short": 17_000, "long": 4_000}
_FOURTH = {"edited": 18_000, "records": 10_000, "prose": 12_000, "short": 11_000, "long": 10_000}
_FOURTH_EVIDENCE_WORDS = (90, 110, 130)
_MORE_RECORDS, _MORE_EDITED = 18_000, 32_000
_MORE_PROSE_OF_ANSWERS, _MORE_PROSE_OF_OTHERS = 7_000, 12_000
_SHORT_PREMISE = 45
_MARKED_SOURCES = ("ragtruth", "records", "prose", "syn_", "edited")
_DOCUMENT_WORDS = 80
_REVIEW_WORDS = range(25, 121)
_SEEDS = {
    "first": 11,
    "first order": 3,
    "second": 21,
    "third": 34,
    "made": 7,
    "made again": 8,
    "fourth": 55,
    "made more": 77,
}
_EDIT_SEEDS = (5, 6, 7)

_Scale = Callable[[int], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stages:
    """The files of the recipe.

    Attributes:
        first: Pairs of the first stage.
        second: Pairs of the second stage.
        third: Pairs of the third stage.
        fourth: Pairs of the fourth stage.
        held_out: Pairs of every fifth source of the labelled answers, for validation; in no stage.
        files: Counts per source, as for a model card.
    """

    first: Path
    second: Path
    third: Path
    fourth: Path
    held_out: Path
    files: Sequence[FileCount]


def build_stages(data_dir: Path, out_dir: Path, *, scale: float = 1.0) -> Stages:
    """Write the pairs of all stages.

    Args:
        data_dir: Folder with the files of :mod:`guardrail.training.sources`, as ``NAME.jsonl.gz``.
        out_dir: Where ``first.jsonl.gz``, ``second.jsonl.gz``, ``third.jsonl.gz``, ``fourth.jsonl.gz`` and
            ``held_out.jsonl.gz`` go.
        scale: Share of every number of pairs, in (0, 1]; less than 1 is for trying the recipe out.

    Returns:
        The files.

    Raises:
        InputError: If a file is missing or damaged.

    Example:
        >>> build_stages(Path("no-such-folder"), Path("out"))
        Traceback (most recent call last):
        ...
        guardrail.errors.InputError: no-such-folder has no mnli_dev_matched.jsonl.gz
    """
    for name in [source.name for source in (*PAIR_SOURCES, *ANSWER_SOURCES)]:
        if not _file(data_dir, name).is_file():
            raise InputError(f"{data_dir} has no {_file(data_dir, name).name}")

    def scaled(count: int) -> int:
        return max(1, math.ceil(count * scale))

    out_dir.mkdir(parents=True, exist_ok=True)
    published, again, files = _published(data_dir, scaled)
    answers = [row for source in ANSWER_SOURCES for row in _answers(data_dir, source.name, scaled)]
    own = [row for row in answers if not is_held_out(row)]
    marked = [pair for row in own for pair in pairs_of(row, source="ragtruth")]
    held = [pair for row in answers if is_held_out(row) for pair in pairs_of(row, source="ragtruth")]
    files.append(_count("ragtruth (answers)", len(answers), len(marked) + len(held), len(held)))

    first = published + marked
    random.Random(_SEEDS["first order"]).shuffle(first)

    records = list(record_pairs(scaled(_RECORDS), seed=_SEEDS["made"], prose=_reviews(data_dir)))
    files.append(_count("records (invented)", len(records), len(records)))
    counts = (scaled(_PROSE_OF_ANSWERS), scaled(_PROSE_OF_OTHERS))
    prose = _prose(data_dir, own, counts, seed=_SEEDS["made"])
    files.append(_count("prose (made from documents)", len(prose), len(prose)))
    rng = random.Random(_SEEDS["second"])
    rng.shuffle(again)
    second = marked * _ANSWERS_TWICE + records + prose + again[: scaled(_REPEATED)]
    rng.shuffle(second)

    third = _third(marked, prose, again, _reviews(data_dir), scaled)
    fourth = _fourth(data_dir, own, again, scaled)
    edited = sum(pair.source.startswith("edited") for pair in fourth)
    files.append(_count("edited (made from answers)", edited, edited))

    stages = Stages(
        first=out_dir / "first.jsonl.gz",
        second=out_dir / "second.jsonl.gz",
        third=out_dir / "third.jsonl.gz",
        fourth=out_dir / "fourth.jsonl.gz",
        held_out=out_dir / "held_out.jsonl.gz",
        files=files,
    )
    written = (
        (stages.first, first),
        (stages.second, second),
        (stages.third, third),
        (stages.fourth, fourth),
        (stages.held_out, held),
    )
    for path, pairs in written:
        write_pairs(path, pairs)
    return stages


def licences() -> dict[str, str]:
    """Licence per row of :attr:`Stages.files`.

    Example:
        >>> licences()["scone"]
        'CC0 1.0'
    """
    made = {
        "ragtruth (answers)": ANSWER_SOURCES[0].licence,
        "records (invented)": "none needed; some reviews quote CosmosQA, CC BY 4.0",
        "prose (made from documents)": "as RAGTruth, fm2, synthetic_longctx, xquad and wice",
        "edited (made from answers)": ANSWER_SOURCES[0].licence,
    }
    return {source.name: source.licence for source in PAIR_SOURCES} | made


def is_held_out(row: LabelledAnswer) -> bool:
    """Whether a labelled answer is kept for validation: every fifth source, by a checksum of its number."""
    return zlib.crc32(str(row.detail["source_id"]).encode()) % _HELD_OUT == 0


def as_checked(pair: TrainingPair) -> TrainingPair:
    """A pair as the guard would judge it: a long premise becomes the evidence for the claim, and words get labels.

    Args:
        pair: A published pair.

    Example:
        >>> pair = TrainingPair(premise="The mill is old.", hypothesis="It is old.", label="entailment")
        >>> as_checked(pair).unsupported
        ()
    """
    premise = pair.premise
    if len(premise.split()) > _LONG_PREMISE:
        premise = EvidenceIndex([Passage(id="1", text=premise)]).select(pair.hypothesis)[0].premise
    unsupported: tuple[Span, ...] | None = None
    if pair.label == "entailment":
        unsupported = ()
    elif pair.source.startswith("syn_") and pair.source.endswith(_EDITS):
        unsupported = changed_words(premise, pair.hypothesis)
    return replace(pair, premise=premise, unsupported=unsupported)


def _third(
    marked: Sequence[TrainingPair],
    prose: Sequence[TrainingPair],
    published: Sequence[TrainingPair],
    reviews: Sequence[str],
    scaled: _Scale,
) -> list[TrainingPair]:
    rng = random.Random(_SEEDS["third"])
    by_kind = {
        "answers": list(marked),
        "records": list(record_pairs(scaled(_THIRD["records"]), seed=_SEEDS["made again"], prose=reviews)),
        "prose": list(prose),
        "short": [p for p in published if len(p.premise.split()) <= _SHORT_PREMISE],
        "long": [p for p in published if len(p.premise.split()) > _SHORT_PREMISE],
    }
    found: list[TrainingPair] = []
    for kind, pairs in by_kind.items():
        rng.shuffle(pairs)
        found += pairs[: scaled(_THIRD[kind])]
    rng.shuffle(found)
    return [_without_guessed_words(pair) for pair in found]


def _fourth(
    data_dir: Path, answers: Sequence[LabelledAnswer], published: Sequence[TrainingPair], scaled: _Scale
) -> list[TrainingPair]:
    seed = _SEEDS["made more"]
    rng = random.Random(_SEEDS["fourth"])
    edited: dict[str, TrainingPair] = {}
    for own_seed in _EDIT_SEEDS:
        for pair in edited_pairs(answers, count=scaled(_MORE_EDITED), seed=own_seed):
            edited.setdefault(pair.hypothesis, pair)
    records = record_pairs(scaled(_MORE_RECORDS), seed=seed, prose=_reviews(data_dir))
    counts = (scaled(_MORE_PROSE_OF_ANSWERS), scaled(_MORE_PROSE_OF_OTHERS))
    rest = [_without_guessed_words(pair) for pair in published]
    short = [pair for pair in rest if len(pair.premise.split()) <= _SHORT_PREMISE]
    long = [pair for pair in rest if len(pair.premise.split()) > _SHORT_PREMISE]
    rng.shuffle(short)
    rng.shuffle(long)
    found = [
        pair
        for words in _FOURTH_EVIDENCE_WORDS
        for row in answers
        for pair in pairs_of(row, source="ragtruth", evidence_words=words)
    ]
    found += list(edited.values())[: scaled(_FOURTH["edited"])]
    found += list(records)[: scaled(_FOURTH["records"])]
    found += _prose(data_dir, answers, counts, seed=seed)[: scaled(_FOURTH["prose"])]
    found += short[: scaled(_FOURTH["short"])] + long[: scaled(_FOURTH["long"])]
    rng.shuffle(found)
    return found


def _without_guessed_words(pair: TrainingPair) -> TrainingPair:
    """The pair without word labels, unless somebody marked its errors or made them."""
    return pair if pair.source.startswith(_MARKED_SOURCES) else replace(pair, unsupported=None)


def _published(data_dir: Path, scaled: _Scale) -> tuple[list[TrainingPair], list[TrainingPair], list[FileCount]]:
    """Published pairs in the order of the first stage; those of them that the second repeats; counts."""
    rng = random.Random(_SEEDS["first"])
    found: list[tuple[TrainingPair, bool]] = []
    files = []
    for source in PAIR_SOURCES:
        rows = list(read_pairs(_file(data_dir, source.name)))
        rng.shuffle(rows)
        taken = [as_checked(pair) for pair in rows[: scaled(source.pairs)]]
        found += [(pair, source.second_stage) for pair in taken]
        files.append(_count(source.name, len(rows), len(taken)))
    rng.shuffle(found)
    return [pair for pair, _ in found], [pair for pair, again in found if again], files


def _answers(data_dir: Path, name: str, scaled: _Scale) -> list[LabelledAnswer]:
    rows = list(read_answers(_file(data_dir, name)))
    return rows[: scaled(len(rows))]


def _prose(
    data_dir: Path, answers: Sequence[LabelledAnswer], counts: tuple[int, int], *, seed: int
) -> list[TrainingPair]:
    """Statements from the contexts of the answers, and from other documents that are long enough."""
    contexts = list(dict.fromkeys(row.context for row in answers))
    documents: dict[str, None] = {}
    for name in PROSE_SOURCES:
        for pair in read_pairs(_file(data_dir, name)):
            if len(pair.premise.split()) >= _DOCUMENT_WORDS:
                documents[pair.premise] = None
    made = [
        *prose_pairs(contexts, count=counts[0], seed=seed),
        *prose_pairs([[text] for text in documents], count=counts[1], seed=seed),
    ]
    random.Random(seed).shuffle(made)
    return made


def _reviews(data_dir: Path) -> list[str]:
    name, beginning = REVIEW_SOURCE
    texts = dict.fromkeys(p.premise for p in read_pairs(_file(data_dir, name)) if p.source.startswith(beginning))
    return [text for text in texts if len(text.split()) in _REVIEW_WORDS]


def _file(data_dir: Path, name: str) -> Path:
    return data_dir / f"{name}.jsonl.gz"


def _count(name: str, rows: int, pairs: int, held_out: int = 0) -> FileCount:
    kind = "answers" if held_out else "pairs"
    return FileCount(name=name, kind=kind, rows=rows, pairs=pairs, held_out=held_out)
