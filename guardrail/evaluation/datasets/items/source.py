"""A data set: surveyed once before the work begins, then read item by item."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from guardrail.errors import ConfigurationError, InputError
from guardrail.evaluation.datasets.items.answers import AnswerIndex
from guardrail.evaluation.datasets.items.fields import FieldNames, item_of
from guardrail.evaluation.datasets.items.item import Item
from guardrail.evaluation.datasets.items.rows import check_ending, is_data_file, read_rows

_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """What a data set holds.

    Attributes:
        items: Number of items.
        identity: What tells it from another: names and SHA-256 of the files, and how they are read.
        unused_answers: Answers of a second file that belong to no item; ``None`` without such a file or with a limit.
    """

    items: int
    identity: Mapping[str, Any]
    unused_answers: int | None = None


class Items:
    """The items of a data set.

    Every row is read twice, the first time in :meth:`survey`, so that errors are found before the work begins. Only a
    few rows are in memory at a time. Close it, or use it in a ``with`` statement.

    Args:
        path: A ``.jsonl``, ``.jsonl.gz``, ``.csv``, ``.csv.gz`` or ``.parquet`` file.
        answers: Name of the field with the answers, or a second file with ``id`` and answer per row; by default
            whichever of ``answer``, ``response``, ``claim`` and ``actual_output`` a row has.
        fields: Names of other fields, by part of an item; see :data:`guardrail.evaluation.datasets.items.FIELDS`.
        limit: Take only the first items.

    Raises:
        ConfigurationError: If ``fields`` has an unknown part, or names another field for the answers.
        InputError: If the answers file does not exist, or cannot be read by its name.
    """

    def __init__(
        self,
        path: Path,
        *,
        answers: str | Path | None = None,
        fields: Mapping[str, str] | None = None,
        limit: int | None = None,
    ) -> None:
        self._path = path
        self._limit = limit
        self._names = FieldNames(given=dict(fields or {}))
        self._answers_path = _as_file(answers)
        if self._answers_path is None and answers is not None:
            also = self._names.given.get("answer", answers)
            if also != answers:
                raise ConfigurationError(f"two fields with the answers are named, {answers!r} and {also!r}: name one")
            self._names = FieldNames(given={**self._names.given, "answer": str(answers)})
        self._answers = None if self._answers_path is None else AnswerIndex(self._answers_path, self._names)
        self._stats: dict[Path, tuple[int, int]] = {}

    @property
    def paths(self) -> tuple[Path, ...]:
        """The files that are read."""
        return (self._path,) if self._answers_path is None else (self._path, self._answers_path)

    def __enter__(self) -> Items:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Drop the index of a second file."""
        if self._answers is not None:
            self._answers.close()

    def survey(self, check: Callable[[], None] = lambda: None) -> Survey:
        """Read everything once: count, find what cannot be used, and take the digests of the files.

        Args:
            check: Called once per row; may raise to end the reading.

        Raises:
            InputError: If a file or a row cannot be used, or no row has a context, or none has an answer.
            MissingExtraError: If a Parquet file is to be read and pyarrow is not installed.
        """
        files = []
        for path in self.paths:
            self._stats[path] = _stat(path)
            files.append({"name": path.name, "sha256": _digest(path, check)})
        if self._answers is not None:
            self._answers.load(check)
        total = answered = grounded = 0
        for item in self:
            check()
            total += 1
            answered += item.answered
            grounded += bool(item.context)
            if self._answers is not None:
                self._answers.mark(item.id)
        self._check_found(total, answered, grounded)
        return Survey(
            items=total,
            identity={
                "file": files[0],
                "answers": files[1] if self._answers is not None else None,
                "fields": dict(sorted(self._names.given.items())),
                "limit": self._limit,
            },
            unused_answers=None if self._answers is None or self._limit is not None else self._answers.unused(),
        )

    def __iter__(self) -> Generator[Item, None, None]:
        for row in islice(read_rows(self._path, wanted=self._names.all), self._limit):
            if self._answers is None:
                yield item_of(row, self._names)
                continue
            own = {name: None for name in self._names.names("answer")}  # such as the expected answer
            item = item_of(replace(row, values={**row.values, **own}), self._names)
            answer = self._answers.find(item.id)
            yield replace(item, answer=answer or "", answered=answer is not None)

    def check_unchanged(self) -> None:
        """See that the files are still those that were surveyed.

        Raises:
            InputError: If one was written to in the meantime.
        """
        for path, before in self._stats.items():
            if _stat(path) != before:
                raise InputError(f"{path} was changed while it was read; evaluate it again with --restart")

    def _check_found(self, total: int, answered: int, grounded: int) -> None:
        if not total:
            raise InputError(f"{self._path} holds no items")
        if not answered:
            if self._answers_path is not None:
                raise InputError(
                    f"no item of {self._path} has an answer in {self._answers_path}: their ids must be equal"
                )
            raise InputError(
                f"no item of {self._path} has {self._looked_for('answer')}; name its field: --answers NAME"
            )
        if not grounded:
            raise InputError(
                f"no item of {self._path} has {self._looked_for('context')}; name its field: --field context=NAME"
            )

    def _looked_for(self, part: str) -> str:
        names = self._names.names(part)
        what = f"a field {names[0]!r}" if len(names) == 1 else f"one of {', '.join(names)}"
        return f"{what} that is not empty"


def _as_file(answers: str | Path | None) -> Path | None:
    if isinstance(answers, Path):
        return answers
    if answers is None:
        return None
    path = Path(answers)
    if not is_data_file(answers):
        if os.path.isfile(path) and (path.suffix or len(path.parts) > 1):  # and not a field of that name
            check_ending(path)
        return None
    if not os.path.isfile(path):
        raise InputError(f"{answers}: there is no such file with answers")
    return path


def _stat(path: Path) -> tuple[int, int]:
    try:
        found = os.stat(path)
    except (OSError, ValueError) as error:  # a ValueError for a name that no file can have
        raise InputError(f"{path}: cannot be read ({getattr(error, 'strerror', error)})") from error
    return found.st_size, found.st_mtime_ns


def _digest(path: Path, check: Callable[[], None]) -> str:
    digest = hashlib.sha256()
    try:
        with open(path, "rb") as file:
            while chunk := file.read(_CHUNK_BYTES):
                check()
                digest.update(chunk)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    return digest.hexdigest()
