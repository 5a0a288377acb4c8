"""Files to train on: pairs or labelled answers, read and split so that no premise is on both sides."""

from __future__ import annotations

import gzip
import hashlib
import json
import zlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from guardrail.errors import ConfigurationError, InputError
from guardrail.evaluation.labelled import read_answers
from guardrail.training.answers import pairs_of
from guardrail.training.pairs import TrainingPair, read_pairs


@dataclass(frozen=True, slots=True, kw_only=True)
class FileCount:
    """What a file gave.

    Attributes:
        name: Its name.
        kind: ``"pairs"`` or ``"answers"``.
        rows: Rows in it.
        pairs: Pairs made of them.
        held_out: How many of the pairs are held out for validation.
        silent: Rows that gave no pair: answers without a claim, or not grounded and nobody marked where.
    """

    name: str
    kind: str
    rows: int
    pairs: int
    held_out: int = 0
    silent: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingData:
    """Pairs to train on and pairs to validate with.

    Attributes:
        train: To train on.
        held_out: To validate with; they share no premise, and no passage of a labelled answer, with ``train``.
        files: Counts per file.
    """

    train: Sequence[TrainingPair]
    held_out: Sequence[TrainingPair]
    files: Sequence[FileCount]

    @property
    def digest(self) -> str:
        """A digest of the pairs to train on: another one means another training."""
        found = hashlib.sha256()
        for pair in self.train:
            found.update(json.dumps(pair.to_json(), sort_keys=True).encode())
        return found.hexdigest()


def read_training_data(paths: Sequence[Path], *, hold_out: float = 0.1, seed: int = 7) -> TrainingData:
    """Read files and hold some pairs out.

    The first row of a file says what it holds: ``premise`` makes it pairs
    (:func:`~guardrail.training.pairs.read_pairs`), ``context`` makes it labelled answers
    (:func:`~guardrail.evaluation.labelled.read_answers`), of which each claim becomes a pair
    (:func:`~guardrail.training.answers.pairs_of`).

    Args:
        paths: The files.
        hold_out: Share of the pairs to hold out, in [0, 1). Everything that shares a premise, or for answers the
            context, goes to the same side.
        seed: Decides what is held out.

    Raises:
        InputError: If a file cannot be read, or holds no pair.
        ConfigurationError: If ``hold_out`` is out of range, or too few premises are there to hold one out.

    Example:
        >>> read_training_data([])
        Traceback (most recent call last):
        ...
        guardrail.errors.InputError: there is no pair to train on: name at least one file
    """
    if not 0 <= hold_out < 1:
        raise ConfigurationError(f"the share to hold out must be from 0 to below 1, not {hold_out!r}")
    files, rows = [], []
    for number, path in enumerate(paths):
        found = list(_read(path, _kind(path)))
        pairs = sum(len(own) for _, own in found)
        if not pairs:
            raise InputError(f"{path} gives no pair to train on: no row has a claim that is known to hold or to fail")
        silent = sum(not own for _, own in found)
        files.append(FileCount(name=path.name, kind=_kind(path), rows=len(found), pairs=pairs, silent=silent))
        rows += [(number, group, own) for group, own in found]
    if not rows:
        raise InputError("there is no pair to train on: name at least one file")
    held = _held_out(rows, hold_out, seed)
    counts = [0] * len(files)
    for number, group, own in rows:
        counts[number] += len(own) if group in held else 0
    return TrainingData(
        train=[pair for _, group, own in rows for pair in own if group not in held],
        held_out=[pair for _, group, own in rows for pair in own if group in held],
        files=[replace(file, held_out=count) for file, count in zip(files, counts, strict=True)],
    )


def _held_out(rows: Sequence[tuple[int, str, Sequence[TrainingPair]]], share: float, seed: int) -> set[str]:
    """Groups in the order of a digest, until they have the share of the pairs: at least one, and never all."""
    sizes: dict[str, int] = defaultdict(int)
    for _, group, own in rows:
        sizes[group] += len(own)
    groups = sorted((g for g in sizes if sizes[g]), key=lambda g: hashlib.sha256(f"{seed} {g}".encode()).digest())
    if share and len(groups) < 2:
        raise ConfigurationError("all pairs share one premise, so none can be held out: add others, or hold out 0")
    wanted, held, taken = share * sum(sizes.values()), set[str](), 0
    for group in groups[:-1]:
        if taken >= wanted:
            break
        held.add(group)
        taken += sizes[group]
    return held


def _kind(path: Path) -> str:
    opener = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rt", encoding="utf-8") as lines:
            number, line = next(((n, text) for n, text in enumerate(lines, start=1) if text.strip()), (0, ""))
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise InputError(f"cannot read {path}: {type(error).__name__}: {error}") from error
    if not line:
        raise InputError(f"{path} is empty")
    try:
        row = json.loads(line)
    except ValueError as error:
        raise InputError(f"{path}, line {number}: is not JSON ({error})") from error
    for key, kind in (("premise", "pairs"), ("context", "answers")):
        if isinstance(row, dict) and key in row:
            return kind
    raise InputError(
        f"{path}, line {number}: neither a training pair (premise, hypothesis, label) nor a labelled answer "
        "(context, answer, label)"
    )


def _read(path: Path, kind: str) -> Iterator[tuple[str, list[TrainingPair]]]:
    """The rows of a file: what a row must not share with the other side, and its pairs."""
    if kind == "pairs":
        for pair in read_pairs(path):
            # What is entailed has no unsupported word, whether somebody wrote that down or not.
            known = replace(pair, unsupported=()) if pair.label == "entailment" else pair
            yield pair.premise, [known]
        return
    for row in read_answers(path):
        try:
            yield "\n".join(row.context), list(pairs_of(row, source=path.name))
        except InputError as error:
            raise InputError(f"{path}: {error}") from error
