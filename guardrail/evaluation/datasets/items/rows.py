"""Rows of a file as mappings, a few at a time, with their place for error messages."""

from __future__ import annotations

import csv
import gzip
import json
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, TextIO

from guardrail.errors import InputError, MissingExtraError

ENDINGS = (".jsonl", ".jsonl.gz", ".csv", ".csv.gz", ".parquet")
_DELIMITERS = (",", ";", "\t")
_MAX_CELL_CHARS = 2**31 - 1  # the largest limit that csv takes on every platform
_BATCH_ROWS = 64
_BUFFER_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row.

    Attributes:
        number: From 1, blank lines not counted.
        where: File and place, for error messages.
        values: By name of the field; a missing value is ``None``.
        flat: Whether values can only be texts, so that lists are written as one.
    """

    number: int
    where: str
    values: Mapping[str, Any] = field(repr=False)
    flat: bool = False


def is_data_file(name: str) -> bool:
    """Whether a file's name says that its rows can be read."""
    return name.lower().endswith(ENDINGS)


def check_ending(path: Path) -> None:
    """See that a file's name says that its rows can be read.

    Raises:
        InputError: If it does not.
    """
    if not is_data_file(path.name):
        raise InputError(f"{path}: cannot tell what is in it; its name must end in one of {', '.join(ENDINGS)}")


def read_rows(path: Path, *, wanted: Collection[str]) -> Iterator[Row]:
    """Read a file row by row; only a few rows are in memory at a time.

    Args:
        path: A file with one of :data:`ENDINGS`.
        wanted: Names of the fields that are needed; a file that is stored by columns is not read beyond them.

    Yields:
        The rows, in order. A CSV file has a header line, which also tells whether its cells are separated by commas,
        semicolons or tabs; an empty cell is a missing value.

    Raises:
        InputError: If the file cannot be read or a row is damaged; the message names file and place.
        MissingExtraError: If it is a Parquet file and pyarrow is not installed.
    """
    name = path.name.lower()
    check_ending(path)
    if not path.is_file():
        raise InputError(f"{path}: {'this is a folder; name a file' if path.is_dir() else 'there is no such file'}")
    if name.endswith(".parquet"):
        return _parquet(path, wanted)
    return _csv(path) if ".csv" in name[-7:] else _json_lines(path)


@contextmanager
def _opened(path: Path) -> Iterator[TextIO]:
    """A text file, plain or gzipped, with its line ends as they are."""
    opener: Callable[..., Any] = gzip.open if path.name.lower().endswith(".gz") else open
    try:
        with opener(path, "rt", encoding="utf-8-sig", newline="") as lines:
            yield lines
    except UnicodeDecodeError as error:
        raise InputError(_where_not_utf8(path, opener)) from error
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"cannot read {path}: {type(error).__name__}: {error}") from error


def _where_not_utf8(path: Path, opener: Callable[..., Any]) -> str:
    with opener(path, "rb") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                line.decode()
            except UnicodeDecodeError as error:
                said = f"is not UTF-8 (byte 0x{line[error.start]:02x}); convert the file, for example with iconv"
                return f"{path}, line {number}: {said}"
    return f"{path}: was changed while it was read"


def _json_lines(path: Path) -> Iterator[Row]:
    number = 0
    with _opened(path) as lines:
        for line, text in enumerate(lines, start=1):
            if not text.strip():
                continue
            number += 1
            where = f"{path}, line {line}"
            try:
                values = json.loads(text)
            except (ValueError, RecursionError) as error:
                reason = error.msg if isinstance(error, json.JSONDecodeError) else type(error).__name__
                raise InputError(f"{where}: is not JSON ({reason}); each line must be one JSON object") from error
            if not isinstance(values, dict):
                raise InputError(f"{where}: each line must be one JSON object, not {type(values).__name__}")
            yield Row(number=number, where=where, values=values)


def _csv(path: Path) -> Iterator[Row]:
    with _opened(path) as lines:
        yield from _cells(path, lines)


def _cells(path: Path, lines: TextIO) -> Iterator[Row]:
    first = lines.readline()
    delimiter = max(_DELIMITERS, key=lambda mark: len(next(csv.reader([first], delimiter=mark), ())))
    records = _Records(path, csv.reader(chain([first], lines), delimiter=delimiter, strict=True))
    header = next(records, None)
    if header is None:
        return
    _, names = header
    _check_names([name for name in names if name], f"{path}, line 1")
    for number, (where, cells) in enumerate(records, start=1):
        if len(cells) != len(names):
            raise InputError(
                f"{where}: has {len(cells)} cells and the header {len(names)}; "
                f"a cell that contains {delimiter!r} or a line end must stand in double quotes"
            )
        values = {name: cell or None for name, cell in zip(names, cells, strict=True) if name}
        yield Row(number=number, where=where, values=values, flat=True)


def _check_names(names: Sequence[str], where: str) -> None:
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"{where}: two columns are called {twice!r}; rename one")


class _Records:
    """The records of a CSV file that are not blank, each with where it begins."""

    def __init__(self, path: Path, reader: Any) -> None:
        self._path = path
        self._reader = reader

    def __iter__(self) -> Iterator[tuple[str, Sequence[str]]]:
        return self

    def __next__(self) -> tuple[str, Sequence[str]]:
        while True:
            where = f"{self._path}, line {self._reader.line_num + 1}"
            usual = csv.field_size_limit(_MAX_CELL_CHARS)  # a context is longer; the limit belongs to the process
            try:
                cells: list[str] = next(self._reader)
            except csv.Error as error:
                raise InputError(f"{where}: is not CSV ({error}); double and close its quotes") from error
            finally:
                csv.field_size_limit(usual)
            if cells:
                return where, cells


def _parquet(path: Path, wanted: Collection[str]) -> Iterator[Row]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise MissingExtraError(f"reading {path.name}", "evaluate") from error
    number = 0
    try:
        with parquet.ParquetFile(path, buffer_size=_BUFFER_BYTES, pre_buffer=False) as file:
            columns = [name for name in file.schema_arrow.names if name in wanted]
            _check_names(columns, f"{path}")
            for batch in file.iter_batches(_BATCH_ROWS, columns=columns, use_threads=False):
                for values in batch.to_pylist():
                    number += 1
                    yield Row(number=number, where=f"{path}, row {number}", values=values)
    except InputError:
        raise
    except (OSError, ValueError, ArithmeticError, pyarrow.ArrowException) as error:
        said = f"cannot read {path}, after row {number}: {type(error).__name__}"
        raise InputError(f"{said}; is it a whole Parquet file?") from error
