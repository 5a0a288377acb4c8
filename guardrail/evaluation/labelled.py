"""Labelled answers from JSONL files, plain or gzipped."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from guardrail.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledAnswer:
    """One answer and what people said about it.

    Attributes:
        id: Identifier of the row.
        question: What was asked; may be empty.
        context: The passages it should rest on.
        answer: The answer, or the claim.
        grounded: Whether everything in it is supported (label 1).
        detail: Whatever else the row has: model, task, prompt, spans.
    """

    id: str
    question: str = field(repr=False)
    context: tuple[str, ...] = field(repr=False)
    answer: str = field(repr=False)
    grounded: bool
    detail: Mapping[str, Any] = field(default_factory=dict, repr=False)


def read_answers(path: Path) -> Iterator[LabelledAnswer]:
    """Read labelled answers.

    Args:
        path: A ``.jsonl`` or ``.jsonl.gz`` file; each line has ``context`` (a text or a list of texts), ``answer`` or
            ``claim``, ``label`` (1 = fully supported, 0 = not), and optionally ``id``, ``question``, ``detail``.

    Yields:
        The rows, in order.

    Raises:
        InputError: If the file cannot be read or a line is not such a row; the message names file and line.
    """
    for number, line in numbered_lines(path):
        yield _row(line, path, number)


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a text file, plain or gzipped, that are not blank, with their numbers from 1.

    Raises:
        InputError: If the file cannot be read.
    """
    opener = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rt", encoding="utf-8") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    yield number, line
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise InputError(f"cannot read {path}: {type(error).__name__}: {error}") from error


def _row(line: str, path: Path, number: int) -> LabelledAnswer:
    try:
        row = json.loads(line)
        context = row["context"]
        answer = row["answer"] if "answer" in row else row["claim"]
        label = row["label"]
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path}, line {number}: not a labelled answer ({type(error).__name__}: {error})") from error
    passages = [context] if isinstance(context, str) else context
    detail, question = row.get("detail") or {}, row.get("question") or ""
    texts = isinstance(passages, list) and all(isinstance(p, str) for p in (*passages, answer, question))
    if label not in (0, 1) or not texts or not isinstance(detail, dict):
        raise InputError(
            f"{path}, line {number}: label must be 0 or 1, context a text or a list of texts, answer and question "
            "texts, detail an object"
        )
    return LabelledAnswer(
        id=str(row.get("id", number)),
        question=question,
        context=tuple(passages),
        answer=answer,
        grounded=label == 1,
        detail=detail,
    )
