"""A history of scores in one SQLite file, which many processes write and anybody can read.

A row is a number and where it comes from. Questions, answers and passages are never in it.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from guardrail.evaluation.history.file import DEFAULT_BUSY_TIMEOUT_S, HistoryFile
from guardrail.evaluation.summary import Summary, finite, summarise

_LONGEST_NAME = 200
_MOST_TAGS = 20
_YEAR_1 = -62_135_596_800.0
_YEAR_10_000 = 253_402_300_800.0
_INSERT = "INSERT INTO scores (at, run_id, metric, score, scorer, policy, tags) VALUES (?, ?, ?, ?, ?, ?, ?)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One score.

    Attributes:
        at: When, in seconds since the epoch; of the years 1 to 9999.
        run_id: The run that it belongs to.
        metric: What was measured.
        score: The number; finite.
        scorer: ``model_id`` of what judged; may be empty.
        policy: Name of the policy; may be empty.
        tags: Short labels of your own, such as ``{"release": "7"}``.
    """

    at: float
    run_id: str
    metric: str
    score: float
    scorer: str = ""
    policy: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """Scores of one stretch of a history.

    Attributes:
        start: Begin in seconds since the epoch: of the stretch of time, or the time of the first of so many records.
        end: End of the stretch of time (exclusive), or the time of the last of so many records.
        summary: Their figures.
        complete: Whether it has all of its records: ``False`` for the last of a series while it still fills, and for a
            stretch of time that ``since`` or ``until`` cuts.
    """

    start: float
    end: float
    summary: Summary
    complete: bool = True


class History:
    """Scores in a SQLite file.

    Any number of processes and threads write to one file at the same time; each call is one short transaction. Calls
    block, for at most ``busy_timeout_s`` while others write: in asynchronous code call them in a thread. A history that
    was opened before ``os.fork`` can be used on both sides of it; the fork waits for a call that is under way. A file
    that was moved or removed with those beside it (``-wal``, ``-shm``) is begun again at the next call.

    Args:
        path: The file; made if it is not there, unless ``read_only``. ``":memory:"`` keeps the scores in this object.
        read_only: Open an existing file to read it.
        busy_timeout_s: How long to wait for others, in seconds.

    Raises:
        HistoryError: If the file cannot be used: no history, of a newer version, damaged, not accessible.

    Example:
        >>> with History(":memory:") as history:
        ...     history.record(Record(at=0.0, run_id="a", metric="faithfulness", score=0.9))
        ...     history.record(Record(at=90.0, run_id="b", metric="faithfulness", score=0.7))
        ...     [bucket.summary.mean for bucket in history.series("faithfulness", every_s=60)]
        [0.9, 0.7]
    """

    def __init__(
        self, path: Path | str, *, read_only: bool = False, busy_timeout_s: float = DEFAULT_BUSY_TIMEOUT_S
    ) -> None:
        self.path = str(path)
        self._file = HistoryFile(self.path, read_only=read_only, busy_timeout_s=busy_timeout_s)

    def record(self, record: Record) -> None:
        """Add one score.

        Args:
            record: The score.

        Raises:
            ValueError: If the score or the time is not a finite number, the time is not one in seconds, or a name is
                empty or longer than 200 characters.
            HistoryError: If the file cannot be written.
        """
        self.record_many([record])

    def record_many(self, records: Iterable[Record]) -> None:
        """Add scores: all of them or, on an error, none.

        Args:
            records: The scores.

        Raises:
            ValueError: As for :meth:`record`.
            HistoryError: If the file cannot be written.
        """
        rows = [row_of(record) for record in records]
        if rows:
            self._file.write(lambda connection: connection.executemany(_INSERT, rows))

    def scores(self, metric: str, *, since: float | None = None, until: float | None = None) -> list[float]:
        """The scores of a metric, oldest first.

        Args:
            metric: The metric.
            since: Only those from this time on, in seconds since the epoch.
            until: Only those before this time.

        Raises:
            HistoryError: If the file cannot be read.
        """
        return [score for _, score in self._timed(metric, since, until)]

    def records(
        self, metric: str | None = None, *, since: float | None = None, until: float | None = None
    ) -> list[Record]:
        """What was recorded, oldest first.

        Args:
            metric: Only this metric; ``None`` for all.
            since: Only from this time on, in seconds since the epoch.
            until: Only before this time.

        Raises:
            HistoryError: If the file cannot be read.
        """
        rows = self._select("at, run_id, metric, score, scorer, policy, tags", metric, since, until)
        return [
            Record(at=at, run_id=run_id, metric=name, score=score, scorer=scorer, policy=policy, tags=json.loads(tags))
            for at, run_id, name, score, scorer, policy, tags in rows
        ]

    def metrics(self) -> dict[str, int]:
        """The metrics in the history, by name, with the number of their scores.

        Raises:
            HistoryError: If the file cannot be read.
        """
        query = "SELECT metric, COUNT(*) FROM scores GROUP BY metric ORDER BY metric"
        return dict(self._file.read(lambda connection: connection.execute(query).fetchall()))

    def series(
        self,
        metric: str,
        *,
        every_s: float | None = None,
        every_n: int | None = None,
        since: float | None = None,
        until: float | None = None,
    ) -> tuple[Bucket, ...]:
        """A metric over time.

        Args:
            metric: The metric.
            every_s: Length of a bucket in seconds, such as 3600 or 86400; buckets begin at multiples of it since the
                epoch, so days are those of UTC. Buckets without a score are left out.
            every_n: Number of scores in a bucket, counted from the oldest; instead of ``every_s``.
            since: Only scores from this time on.
            until: Only scores before this time.

        Returns:
            The buckets, oldest first.

        Raises:
            ValueError: If not exactly one of ``every_s`` and ``every_n`` is given, or it is not above 0.
            HistoryError: If the file cannot be read.
        """
        if (every_s is None) == (every_n is None):
            raise ValueError("give either every_s or every_n")
        if every_n is not None:
            if isinstance(every_n, bool) or not isinstance(every_n, int) or every_n < 1:
                raise ValueError(f"every_n must be a whole number of at least 1, got {every_n!r}")
            return _by_number(self._timed(metric, since, until), every_n)
        length = finite(every_s, "every_s")
        if length <= 0.0:
            raise ValueError(f"every_s must be above 0, got {length!r}")
        first = -math.inf if since is None else finite(since, "since")
        last = min(time.time(), math.inf if until is None else finite(until, "until"))
        return _by_time(self._timed(metric, since, until), length, first, last)

    def prune(self, before: float) -> int:
        """Delete old scores.

        The file does not shrink: the room is used for new scores.

        Args:
            before: Scores before this time go, in seconds since the epoch.

        Returns:
            How many went.

        Raises:
            ValueError: If the time is not a finite number.
            HistoryError: If the file cannot be written.
        """
        limit = finite(before, "before")
        query = "DELETE FROM scores WHERE at < ?"
        return int(self._file.write(lambda connection: connection.execute(query, (limit,)).rowcount))

    def close(self) -> None:
        """Close the file; further calls raise. May be called again."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _timed(self, metric: str, since: float | None, until: float | None) -> list[tuple[float, float]]:
        return [(float(at), float(score)) for at, score in self._select("at, score", metric, since, until)]

    def _select(self, columns: str, metric: str | None, since: float | None, until: float | None) -> list[Any]:
        bounds = [
            ("metric = ?", metric),
            ("at >= ?", None if since is None else finite(since, "since")),
            ("at < ?", None if until is None else finite(until, "until")),
        ]
        given = [(condition, value) for condition, value in bounds if value is not None]
        where = " AND ".join(condition for condition, _ in given) or "TRUE"
        query = f"SELECT {columns} FROM scores WHERE {where} ORDER BY at, id"
        values = [value for _, value in given]
        return self._file.read(lambda connection: connection.execute(query, values).fetchall())


def row_of(record: Record) -> tuple[float, str, str, float, str, str, str]:
    """What stands in the file for a record.

    Raises:
        ValueError: If it cannot be recorded; see :meth:`History.record`.
    """
    tags = dict(record.tags)
    if len(tags) > _MOST_TAGS:
        raise ValueError(f"a record has at most {_MOST_TAGS} tags, got {len(tags)}")
    texts = [("metric", record.metric), ("run_id", record.run_id), ("scorer", record.scorer), ("policy", record.policy)]
    for name, value in (*texts, *(("a tag", part) for pair in tags.items() for part in pair)):
        if not isinstance(value, str):
            raise ValueError(f"{name} must be a str, got {type(value).__name__}")
        if not value and name in ("metric", "run_id"):
            raise ValueError(f"{name} must not be empty")
        if len(value) > _LONGEST_NAME:  # a history holds names and numbers, no content
            raise ValueError(f"{name} has {len(value)} characters; at most {_LONGEST_NAME} are allowed")
    if not _YEAR_1 <= finite(record.at, "at") < _YEAR_10_000:  # milliseconds would be; nobody could print them
        raise ValueError(f"at must be in seconds since the epoch, of the years 1 to 9999, got {record.at!r}")
    return (
        float(record.at),
        record.run_id,
        record.metric,
        finite(record.score, "score"),
        record.scorer,
        record.policy,
        json.dumps(tags, ensure_ascii=False, sort_keys=True),
    )


def _by_time(timed: Sequence[tuple[float, float]], length: float, first: float, last: float) -> tuple[Bucket, ...]:
    return tuple(
        Bucket(
            start=at * length,
            end=(at + 1) * length,
            summary=summarise([score for _, score in own]),
            complete=first <= at * length and (at + 1) * length <= last,
        )
        for at, own in groupby(timed, key=lambda pair: pair[0] // length)
    )


def _by_number(timed: Sequence[tuple[float, float]], number: int) -> tuple[Bucket, ...]:
    parts = [timed[first : first + number] for first in range(0, len(timed), number)]
    return tuple(
        Bucket(
            start=own[0][0],
            end=own[-1][0],
            summary=summarise([score for _, score in own]),
            complete=len(own) == number,
        )
        for own in parts
    )
