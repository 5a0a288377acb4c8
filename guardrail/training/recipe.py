"""The recipe of the embedded model: rounds of training, of a broad part of pairs and a near one.

The broad part of a round holds published pairs about single sentences and whole paragraphs, claims about invented
records, sentences of documents in other words with errors at known places, and some claims of answers that people have
marked, with more and with less evidence than the guard takes. The near part is what the guard sees: every claim of the
marked answers, claims of such answers with an error made on purpose, and a little of all the rest, so that it stays
known. One learning rate runs through both; it begins to fall about where the near part begins. The second round begins
with the weights of the first and takes more than twice as many pairs. The third begins with the mean of both; half of
it are claims of answers that were written for the purpose, about records, articles and documents, with errors in known
words. What comes out is what the third leaves.
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
from guardrail.training.sources import (
    ANSWER_SOURCES,
    PAIR_SOURCES,
    PROSE_SOURCES,
    REVIEW_SOURCE,
    WRITTEN,
    WRITTEN_SOURCES,
)
from guardrail.types import Passage


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """How many pairs of each kind a part takes.

    Attributes:
        short: Published pairs with a premise of a sentence or two.
        long: Published pairs with a longer premise.
        answers: Claims of marked answers, with evidence of other lengths than the guard takes.
        records: Claims about invented records.
        prose: Sentences of documents in other words.
        edited: Claims of marked answers with an error made on purpose.
        own: Claims of marked answers with the evidence that the guard would choose.
        written: Claims of answers that were written to train on.
        marked: Whether every claim of the marked answers is in it, besides those counted above.
    """

    short: int
    long: int
    answers: int
    records: int
    prose: int
    edited: int
    own: int = 0
    written: int = 0
    marked: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """A round of training: both parts, one after the other, under one learning rate.

    Attributes:
        schedule: How.
        broad: The first part.
        near: The second part.
        after: Numbers of the rounds with whose mean weights it begins, from 1; none for the weights of the base.
    """

    schedule: Schedule
    broad: Part
    near: Part
    after: tuple[int, ...] = ()


_SCHEDULE = Schedule(learning_rate=8e-5, word_weight=1.0, dropout=0.1, mean_decay=0.998)
ROUNDS = (
    Round(
        schedule=replace(_SCHEDULE, warmup_share=0.03, decay_share=0.55, seed=5),
        broad=Part(short=10_000, long=3_500, answers=6_000, records=3_000, prose=3_000, edited=1_500),
        near=Part(short=5_000, long=3_000, answers=0, records=4_000, prose=4_000, edited=4_000, marked=True),
    ),
    Round(
        schedule=replace(_SCHEDULE, warmup_share=0.02, decay_share=0.6, seed=11),
        broad=Part(short=38_000, long=8_000, answers=14_000, records=9_000, prose=6_000, edited=5_000),
        near=Part(short=24_000, long=7_000, answers=20_000, records=9_000, prose=6_000, edited=5_000, marked=True),
        after=(1,),
    ),
    Round(
        schedule=replace(_SCHEDULE, learning_rate=6e-5, warmup_share=0.02, decay_share=0.5, seed=11),
        broad=Part(
            short=13_000, long=4_000, answers=0, records=6_000, prose=4_000, edited=3_000, own=8_000, written=21_800
        ),
        near=Part(
            short=8_000, long=2_500, answers=0, records=3_000, prose=2_500, edited=1_500, own=8_000, written=22_600
        ),
        after=(1, 2),
    ),
)
LAYERS = 10
"""Layers of the base that are kept: with them and words in 4 bits the model has less than 25 MB."""
MAX_TOKENS = 224

_LONG_PREMISE = 115
_MARKED_SOURCE = "syn_"
_EDITS = ("antonym", "dateswap", "numberswap", "entityswap", "negation", "overclaim", "added_detail")
_HELD_OUT, _WRITTEN_HELD_OUT = 10, 8
_SHORT_PREMISE = 45
_OTHER_EVIDENCE_WORDS = (90, 130)
_PROSE_OF_ANSWERS = 0.37
_DOCUMENT_WORDS = 80
_REVIEW_WORDS = range(25, 121)
_SEEDS = {"order": 2, "published": 11, "made": 77, "edited": 5}

_MADE = {"records": "invented", "prose": "made from documents", "edited": "made from answers"}
_MADE_PAIRS = {"records": 18_000, "prose": 19_000, "edited": 15_500}

_Scale = Callable[[float], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The files of the recipe.

    Attributes:
        rounds: Per round the file of its broad part and that of its near part.
        held_out: Pairs of every tenth source of the labelled answers, for validation; in no part.
        files: Counts per source, as for a model card.
    """

    rounds: Sequence[tuple[Path, Path]]
    held_out: Path
    files: Sequence[FileCount]


def build_parts(data_dir: Path, out_dir: Path, *, scale: float = 1.0) -> Parts:
    """Write the pairs of every part of every round.

    Args:
        data_dir: Folder with the files of :mod:`guardrail.training.sources`, as ``NAME.jsonl.gz``.
        out_dir: Where ``1_broad.jsonl.gz``, ``1_near.jsonl.gz``, … and ``held_out.jsonl.gz`` go.
        scale: Share of every number of pairs, in (0, 1]; less than 1 is for trying the recipe out.

    Returns:
        The files.

    Raises:
        InputError: If a file is missing or damaged.

    Example:
        >>> build_parts(Path("no-such-folder"), Path("out"))
        Traceback (most recent call last):
        ...
        guardrail.errors.InputError: no-such-folder has no mnli_dev_matched.jsonl.gz
    """
    check_files(data_dir)

    def scaled(count: float) -> int:
        return math.ceil(count * scale)

    out_dir.mkdir(parents=True, exist_ok=True)
    rng = random.Random(_SEEDS["order"])
    answers = [row for source in ANSWER_SOURCES for row in _answers(data_dir, source.name, scaled)]
    own = [row for row in answers if not is_held_out(row)]
    marked = [pair for row in own for pair in pairs_of(row, source="ragtruth")]
    held = [pair for row in answers if is_held_out(row) for pair in pairs_of(row, source="ragtruth")]
    published, files = _published(data_dir, scaled)
    files.append(_count("ragtruth (answers)", len(answers), len(marked) + len(held), len(held)))
    written: list[TrainingPair] = []
    for source in WRITTEN_SOURCES:
        rows = _answers(data_dir, source.name, scaled)
        kept = [pair for row in rows if is_held_out(row) for pair in pairs_of(row, source=source.name)]
        taken = [pair for row in rows if not is_held_out(row) for pair in pairs_of(row, source=source.name)]
        files.append(_count(source.name, len(rows), len(taken) + len(kept), len(kept)))
        written += taken
        held += kept
    kinds = {
        "short": [pair for pair in published if len(pair.premise.split()) <= _SHORT_PREMISE],
        "long": [pair for pair in published if len(pair.premise.split()) > _SHORT_PREMISE],
        "answers": [
            pair
            for words in _OTHER_EVIDENCE_WORDS
            for row in own
            for pair in pairs_of(row, source="ragtruth", evidence_words=words)
        ],
        "records": list(record_pairs(scaled(_MADE_PAIRS["records"]), seed=_SEEDS["made"], prose=_reviews(data_dir))),
        "prose": _prose(data_dir, own, scaled(_MADE_PAIRS["prose"])),
        "own": marked,
        "written": written,
        "edited": list(edited_pairs(own, count=scaled(_MADE_PAIRS["edited"]), seed=_SEEDS["edited"])),
    }
    for name in _MADE:
        files.append(_count(f"{name} ({_MADE[name]})", len(kinds[name]), len(kinds[name])))
    supplies = {name: _Supply(pairs, rng) for name, pairs in kinds.items()}
    rounds = []
    for number, each in enumerate(ROUNDS, 1):
        paths = (out_dir / f"{number}_broad.jsonl.gz", out_dir / f"{number}_near.jsonl.gz")
        for path, part in zip(paths, (each.broad, each.near), strict=True):
            pairs = list(marked) if part.marked else []
            for name, supply in supplies.items():
                pairs += supply.take(scaled(getattr(part, name)))
            rng.shuffle(pairs)
            write_pairs(path, pairs)
        rounds.append(paths)
    held_out = out_dir / "held_out.jsonl.gz"
    write_pairs(held_out, held)
    return Parts(rounds=rounds, held_out=held_out, files=files)


def check_files(data_dir: Path) -> None:
    """Raise :class:`~guardrail.errors.InputError` if a file of the recipe is missing, and say which."""
    for name in [source.name for source in (*PAIR_SOURCES, *ANSWER_SOURCES, *WRITTEN_SOURCES)]:
        file = _file(data_dir, name)
        if not file.is_file():
            raise InputError(f"{file.parent} has no {file.name}")


def licences() -> dict[str, str]:
    """Licence per row of :attr:`Parts.files`.

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
    return {source.name: source.licence for source in (*PAIR_SOURCES, *WRITTEN_SOURCES)} | made


def is_held_out(row: LabelledAnswer) -> bool:
    """Whether an answer is kept for validation: by a checksum of its source's number or name.

    Of the marked answers every tenth source is kept, of those that were written for training every eighth.
    """
    source = str(row.detail["source_id"])
    return zlib.crc32(source.encode()) % (_HELD_OUT if source.isdecimal() else _WRITTEN_HELD_OUT) == 0


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


class _Supply:
    """Pairs of a kind in random order; when all have been taken, it begins again in another order."""

    def __init__(self, pairs: Sequence[TrainingPair], rng: random.Random) -> None:
        self._pairs, self._rng = list(pairs), rng
        self._left: list[TrainingPair] = []

    def take(self, count: int) -> list[TrainingPair]:
        taken: list[TrainingPair] = []
        while len(taken) < count and self._pairs:
            if not self._left:
                self._left = self._rng.sample(self._pairs, len(self._pairs))
            more = count - len(taken)
            taken += self._left[-more:]
            del self._left[-more:]
        return taken


def _published(data_dir: Path, scaled: _Scale) -> tuple[list[TrainingPair], list[FileCount]]:
    """Published pairs as the guard would judge them, and how many of each file could be taken."""
    rng = random.Random(_SEEDS["published"])
    found: list[TrainingPair] = []
    files = []
    for source in PAIR_SOURCES:
        rows = list(read_pairs(_file(data_dir, source.name)))
        rng.shuffle(rows)
        taken = [_without_guessed_words(as_checked(pair)) for pair in rows[: scaled(source.pairs)]]
        found += taken
        files.append(_count(source.name, len(rows), len(taken)))
    return found, files


def _without_guessed_words(pair: TrainingPair) -> TrainingPair:
    """The pair without word labels, unless its errors were made at known places."""
    return pair if pair.source.startswith(_MARKED_SOURCE) else replace(pair, unsupported=None)


def _answers(data_dir: Path, name: str, scaled: _Scale) -> list[LabelledAnswer]:
    rows = list(read_answers(_file(data_dir, name)))
    return rows[: scaled(len(rows))]


def _prose(data_dir: Path, answers: Sequence[LabelledAnswer], count: int) -> list[TrainingPair]:
    """Statements from the contexts of the answers, and from other documents that are long enough."""
    contexts = list(dict.fromkeys(row.context for row in answers))
    documents: dict[str, None] = {}
    for name in PROSE_SOURCES:
        for pair in read_pairs(_file(data_dir, name)):
            if len(pair.premise.split()) >= _DOCUMENT_WORDS:
                documents[pair.premise] = None
    of_answers = math.ceil(count * _PROSE_OF_ANSWERS)
    return [
        *prose_pairs(contexts, count=of_answers, seed=_SEEDS["made"]),
        *prose_pairs([[text] for text in documents], count=count - of_answers, seed=_SEEDS["made"]),
    ]


def _reviews(data_dir: Path) -> list[str]:
    name, beginning = REVIEW_SOURCE
    texts = dict.fromkeys(p.premise for p in read_pairs(_file(data_dir, name)) if p.source.startswith(beginning))
    return [text for text in texts if len(text.split()) in _REVIEW_WORDS]


def _file(data_dir: Path, name: str) -> Path:
    """Where a file is: what was written for the purpose is a part of the repository."""
    file = f"{name}.jsonl.gz"
    return WRITTEN / file if any(name == source.name for source in WRITTEN_SOURCES) else data_dir / file


def _count(name: str, rows: int, pairs: int, held_out: int = 0) -> FileCount:
    kind = "answers" if held_out else "pairs"
    return FileCount(name=name, kind=kind, rows=rows, pairs=pairs, held_out=held_out)
