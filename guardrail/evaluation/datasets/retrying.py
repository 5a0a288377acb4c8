"""Results in which what failed is measured again, and everything else is copied."""

from __future__ import annotations

import json
import os
import shutil
from array import array
from bisect import bisect_right
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing
from itertools import islice, repeat
from pathlib import Path
from typing import Any

from guardrail.errors import InputError
from guardrail.evaluation.datasets.measurement import Measurement
from guardrail.evaluation.datasets.results_file import EXTENT, ResultsFile, read_lines, unwritable

NO_ANSWER = "no_answer"
FINAL = frozenset(
    {NO_ANSWER, "no_context", "empty_answer", "no_claims", "abstained", "judge_unreadable", "judge_misled"}
)
"""Errors that say something about the item, or are what a judge made of it: another try has the same result."""
SUFFIX = ".retry"
_AT_ONCE = 256


def can_change(line: Mapping[str, Any]) -> bool:
    """Whether an item has an error that is gone, perhaps, with another try: any that is not in :data:`FINAL`.

    Example:
        >>> can_change({"errors": {"judge": "judge_timeout"}}), can_change({"errors": {"judge": "no_context"}})
        (True, False)
    """
    return not FINAL.issuperset(line.get("errors", {}).values())


def final_measurements(line: Mapping[str, Any]) -> dict[str, Measurement]:
    """What an item has that is not measured again, by metric: scores, and errors that are final."""
    scores, errors, details = line.get("scores", {}), line.get("errors", {}), line.get("details", {})
    found = {name: Measurement(score=score, detail=details.get(name, {})) for name, score in scores.items()}
    return found | {
        name: Measurement(error=error, detail=details.get(name, {})) for name, error in errors.items() if error in FINAL
    }


def open_results(
    path: Path, header: Mapping[str, Any], *, restart: bool = False, retry_errors: bool = False
) -> ResultsFile:
    """Open a results file to begin, to go on, or to measure again what failed.

    Args:
        path: Where the results go.
        header: As for :class:`~guardrail.evaluation.datasets.results_file.ResultsFile`.
        restart: Whether to begin again, also with what an interrupted retry has left.
        retry_errors: Whether items are measured again; a file without such items is opened to go on.

    Raises:
        InputError: As :class:`~guardrail.evaluation.datasets.results_file.ResultsFile`.
    """
    results = ResultsFile(path, header, restart=restart)
    try:
        if restart:
            _forget(path)
        again = array("q", (line["n"] for line in _items(path) if can_change(line)) if retry_errors else ())
        return RetriedFile(path.resolve(), results, again, header) if again else results
    except BaseException:
        results.close()
        raise


class RetriedFile(ResultsFile):
    """A results file that takes the place of another one when it is complete.

    It stands beside that one, with :data:`SUFFIX` after its name. Until :meth:`finish` the other one stays as it is;
    what an interrupt, or the death of the process, leaves here is where the next retry goes on.

    Args:
        path: The file whose place it takes.
        old: The same, opened, so that no other evaluation writes to it.
        again: The numbers of its items that are measured again, ascending.
        header: That of ``old``.
    """

    def __init__(self, path: Path, old: ResultsFile, again: array[int], header: Mapping[str, Any]) -> None:
        beside = _beside(path)
        super().__init__(beside, header, restart=not _is_begun(beside, path))
        try:
            self._lines = path.open("rb")
            self._next = next(islice(self._lines, 1 + self.done, None), b"")
        except OSError as error:
            super().close()
            raise unwritable(path, error) from error
        self._to, self._old = path, old
        self.retried = len(again)
        self.ahead = max(0, old.done - self.done) - (len(again) - bisect_right(again, self.done))

    def known(self) -> Generator[Mapping[str, Any] | None, None, None]:
        """What is known per item: ``None`` where there is nothing to measure, as its line is there or is copied."""
        done = self.done
        yield from repeat(None, done)
        with closing(_items(self._to)) as lines:
            for line in islice(lines, done, None):
                yield line if can_change(line) else None
        yield from repeat({})

    def copy(self) -> Iterator[None]:
        """Copy the lines before the next one that is measured again; a step is a few hundred of them.

        Raises:
            InputError: As :meth:`append`.
        """
        while self._next and not can_change(json.loads(self._next)):
            self._put(self._next)
            self.ahead -= 1
            if not self.done % _AT_ONCE:
                yield

    def append(self, line: bytes) -> None:
        """Write the line of the next item that is measured, after those before it that are copied."""
        for _ in self.copy():
            pass
        self._put(line)

    def finish(self) -> None:
        """Take the place of the other file, at once.

        Raises:
            InputError: If that fails; the other file is as it was.
        """
        super().close()
        self._lines.close()
        if os.name == "nt":  # it replaces no open file; elsewhere nobody may begin to write to the old one before
            self._old.close()
        try:
            shutil.copymode(self._to, self._path)
            os.replace(self._path, self._to)
        except OSError as error:
            raise unwritable(self._to, error) from error
        finally:
            self._old.close()

    def close(self) -> None:
        """Close both files; the one beside stays, for the next retry to go on."""
        try:
            super().close()
        finally:
            self._lines.close()
            self._old.close()

    def _put(self, line: bytes) -> None:
        super().append(line)
        self.intact = False  # an interrupt here would leave the line of an earlier item as the next one
        self._next = self._lines.readline()
        self.intact = True


def _beside(path: Path) -> Path:
    return path.with_name(path.name + SUFFIX)


def _items(path: Path) -> Generator[dict[str, Any], None, None]:
    lines = read_lines(path)
    next(lines)
    yield from lines


def _is_begun(beside: Path, path: Path) -> bool:
    """Whether one file has the first lines of a retry of the other; what is left of another retry is of no use."""
    with closing(read_lines(beside)) as new, closing(read_lines(path)) as old:
        try:
            headers = [
                {name: value for name, value in next(lines).items() if name not in EXTENT} for lines in (new, old)
            ]
            return headers[0] == headers[1] and all(
                now == before or can_change(before) for now, before in zip(new, old, strict=False)
            )
        except InputError:  # there is none, or it is damaged
            return False


def _forget(path: Path) -> None:
    """Remove what an interrupted retry has left; a file that holds anything else is kept."""
    beside = _beside(path.resolve())
    with closing(read_lines(beside)) as lines:
        try:
            next(lines)
        except InputError:
            return
    try:
        beside.unlink()
    except OSError as error:
        raise unwritable(beside, error) from error
