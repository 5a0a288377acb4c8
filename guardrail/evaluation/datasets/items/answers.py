"""Answers from a second file, found by id without holding them in memory."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

from guardrail.errors import InputError
from guardrail.evaluation.datasets.items.fields import FieldNames, answer_of, id_of
from guardrail.evaluation.datasets.items.rows import read_rows


class AnswerIndex:
    """The answers of a file by id, in a temporary database on disk that is gone when it is closed.

    Args:
        path: A file with ``id`` and an answer per row.
        names: Which field holds what.
    """

    def __init__(self, path: Path, names: FieldNames) -> None:
        self._path = path
        self._names = names
        # An empty name is a private database that SQLite keeps on disk as soon as it outgrows its cache. It is used by
        # one thread at a time: the one that surveys the files, then the one that evaluates.
        self._database = sqlite3.connect("", check_same_thread=False, isolation_level=None)
        self._database.execute("PRAGMA journal_mode = OFF")
        self._database.execute("CREATE TABLE answers (id TEXT PRIMARY KEY, answer TEXT, used INTEGER) WITHOUT ROWID")

    def load(self, check: Callable[[], None]) -> None:
        """Read the file.

        Args:
            check: Called once per row; may raise to end the reading.

        Raises:
            InputError: If the file cannot be used, a row has no id, or two rows have the same.
        """
        wanted = {*self._names.names("id"), *self._names.names("answer")}
        try:
            self._load(wanted, check)
        except sqlite3.OperationalError as error:
            raise InputError(
                f"{self._path}: its answers do not fit on the disk of temporary files ({error}); "
                "set SQLITE_TMPDIR to a folder with more room"
            ) from error

    def _load(self, wanted: set[str], check: Callable[[], None]) -> None:
        self._database.execute("BEGIN")
        for row in read_rows(self._path, wanted=wanted):
            check()
            identifier = id_of(row, self._names)
            if identifier is None:
                raise InputError(
                    f"{row.where}: has no id (field {self._names.names('id')[0]!r}); "
                    "every row of an answers file needs one, and an answer"
                )
            try:
                self._database.execute(
                    "INSERT INTO answers VALUES (?, ?, 0)", (identifier, answer_of(row, self._names))
                )
            except sqlite3.IntegrityError as error:
                raise InputError(f"{row.where}: there is an answer with the id of this row before it") from error
        self._database.execute("COMMIT")

    def find(self, identifier: str) -> str | None:
        """The answer with an id; ``None`` if there is none."""
        found = self._database.execute("SELECT answer FROM answers WHERE id = ?", (identifier,)).fetchone()
        return None if found is None else found[0]

    def mark(self, identifier: str) -> None:
        """Remember that an item has this id."""
        self._database.execute("UPDATE answers SET used = 1 WHERE id = ?", (identifier,))

    def unused(self) -> int:
        """How many answers belong to no item that was marked."""
        found: tuple[int] = self._database.execute("SELECT count(*) FROM answers WHERE used = 0").fetchone()
        return found[0]

    def close(self) -> None:
        """Give the disk space back."""
        self._database.close()
