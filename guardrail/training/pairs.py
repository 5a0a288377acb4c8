"""Training pairs in JSON lines, plain or gzipped."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from guardrail.errors import InputError
from guardrail.evaluation.labelled import numbered_lines

LABELS = ("contradiction", "entailment", "neutral")
"""Classes of the model, in the order of its outputs."""
NOT_ENTAILMENT = "not_entailment"
"""Contradiction or neutral, not told apart: trains with −log(1 − p_entailment)."""

Span = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingPair:
    """A premise, a hypothesis, and what people (or a rule) said about them.

    Attributes:
        premise: The evidence.
        hypothesis: The claim.
        label: ``"entailment"``, ``"neutral"``, ``"contradiction"`` or ``"not_entailment"``.
        source: Where the pair comes from.
        unsupported: Character ranges of the hypothesis that the premise does not support, if known; ``()`` is none
            of it, ``None`` unknown.
    """

    premise: str = field(repr=False)
    hypothesis: str = field(repr=False)
    label: str
    source: str = ""
    unsupported: tuple[Span, ...] | None = None

    def to_json(self) -> dict[str, Any]:
        """The row as plain values, as :func:`read_pairs` takes it.

        Example:
            >>> TrainingPair(premise="It rains.", hypothesis="It snows.", label="contradiction").to_json()
            {'premise': 'It rains.', 'hypothesis': 'It snows.', 'label': 'contradiction', 'source': ''}
        """
        row: dict[str, Any] = {
            "premise": self.premise,
            "hypothesis": self.hypothesis,
            "label": self.label,
            "source": self.source,
        }
        if self.unsupported is not None:
            row["unsupported"] = [list(span) for span in self.unsupported]
        return row


def read_pairs(path: Path) -> Iterator[TrainingPair]:
    """Read training pairs.

    Args:
        path: A ``.jsonl`` or ``.jsonl.gz`` file; each line has ``premise``, ``hypothesis``, ``label`` (see
            :class:`TrainingPair`) and optionally ``source`` and ``unsupported`` (``[[start, end], ...]``).

    Yields:
        The pairs, in order.

    Raises:
        InputError: If the file cannot be read or a line is not such a row; the message names file and line.
    """
    for number, line in numbered_lines(path):
        yield _pair(line, path, number)


def write_pairs(path: Path, pairs: Iterable[TrainingPair]) -> int:
    """Write training pairs, gzipped if the name ends in ``.gz``; returns how many."""
    count = 0
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "wt", encoding="utf-8") as lines:
        for pair in pairs:
            lines.write(json.dumps(pair.to_json(), ensure_ascii=False) + "\n")
            count += 1
    return count


def _pair(line: str, path: Path, number: int) -> TrainingPair:
    try:
        row = json.loads(line)
        premise, hypothesis, label = row["premise"], row["hypothesis"], row["label"]
        spans = row.get("unsupported")
        unsupported = None if spans is None else tuple((int(start), int(end)) for start, end in spans)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path}, line {number}: not a training pair ({type(error).__name__}: {error})") from error
    if label not in (*LABELS, NOT_ENTAILMENT):
        raise InputError(f"{path}, line {number}: label {label!r} is none of {', '.join((*LABELS, NOT_ENTAILMENT))}")
    if not all(isinstance(text, str) and text.strip() for text in (premise, hypothesis)):
        raise InputError(f"{path}, line {number}: premise and hypothesis must be texts that are not blank")
    if unsupported and not all(0 <= start < end <= len(hypothesis) for start, end in unsupported):
        raise InputError(f"{path}, line {number}: unsupported has a range outside the hypothesis")
    return TrainingPair(
        premise=premise,
        hypothesis=hypothesis,
        label=label,
        source=str(row.get("source", "")),
        unsupported=unsupported,
    )
