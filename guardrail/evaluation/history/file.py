"""The SQLite file behind a history: its format, its connection, and its errors in words."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from guardrail.errors import HistoryError

T = TypeVar("T")
SCHEMA_VERSION = 1
DEFAULT_BUSY_TIMEOUT_S = 10.0
_APPLICATION_ID = 0x47524C48  # "GRLH": tells this file from anybody else's
_RETRY_S = 0.02
_MEMORY = ":memory:"
_SCHEMA = (
    """CREATE TABLE scores (
        id INTEGER PRIMARY KEY,
        at REAL NOT NULL,
        run_id TEXT NOT NULL,
        metric TEXT NOT NULL,
        score REAL NOT NULL,
        scorer TEXT NOT NULL,
        policy TEXT NOT NULL,
        tags TEXT NOT NULL
    )""",
    "CREATE INDEX scores_of_metric ON scores (metric, at)",
    f"PRAGMA application_id = {_APPLICATION_ID}",
    f"PRAGMA user_version = {SCHEMA_VERSION}",
)
_BUSY = ("SQLITE_BUSY", "SQLITE_LOCKED")
_ADVICE = {
    "SQLITE_FULL": "the disk is full: free some space, or prune the history",
    "SQLITE_BUSY": "another process keeps it locked: end that process's transaction, or raise busy_timeout_s",
    "SQLITE_LOCKED": "another connection keeps it locked: end its transaction, or raise busy_timeout_s",
    "SQLITE_READONLY": "it cannot be written: make the file and its folder writable for this user",
    "SQLITE_PERM": "access is denied: make the file and its folder readable and writable for this user",
    "SQLITE_CANTOPEN": "it cannot be opened: its folder must exist, and be writable for this user",
    "SQLITE_NOTADB": "it is no SQLite file: name another file",
    "SQLITE_CORRUPT": "it is damaged: restore it from a copy, or move it away to begin a new one",
    "SQLITE_IOERR": "the disk reports an error; the file must be on a local disk, not on a network share",
}


class HistoryFile:
    """One connection to a history, shared by the threads of a process.

    The file is opened again after a fork, and when it was moved or removed; then a new one is begun.

    Args:
        path: The file.
        read_only: Open an existing file to read it.
        busy_timeout_s: How long to wait for other writers, in seconds.

    Raises:
        HistoryError: If the file cannot be used.
    """

    def __init__(self, path: str, *, read_only: bool = False, busy_timeout_s: float = DEFAULT_BUSY_TIMEOUT_S) -> None:
        self.path = path
        self._read_only = read_only
        self._busy_timeout_s = busy_timeout_s
        self._closed = False
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._inode: tuple[int, int] | None = None
        with self._lock, self._explained():
            self._connected()
        _open.add(self)

    def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Do something that reads.

        Args:
            work: Gets the connection.

        Raises:
            HistoryError: If SQLite fails, or the file is closed.
        """
        with self._lock, self._explained():
            return work(self._connected())

    def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Do something that writes, as a whole or not at all.

        Args:
            work: Gets the connection.

        Raises:
            HistoryError: If SQLite fails, or the file is closed.
        """
        with self._lock, self._explained(), _transaction(self._connected()) as connection:
            return work(connection)

    def close(self) -> None:
        """Close the connection; further calls raise. May be called again."""
        with self._lock:
            self._closed = True
            connection, self._connection = self._connection, None
            if connection is not None:
                connection.close()

    def _connected(self) -> sqlite3.Connection:
        if self._closed:
            raise HistoryError(f"the history {self.path} is closed")
        if self._connection is not None and self._inode != _inode_of(self.path):
            connection, self._connection = self._connection, None
            connection.close()  # the file was moved or removed, and SQLite would go on writing where nobody looks
        if self._connection is None:
            self._connection = self._connect()
            self._inode = _inode_of(self.path)
        return self._connection

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            f"{Path(self.path).absolute().as_uri()}?mode=ro" if self._read_only else self.path,
            uri=self._read_only,
            timeout=self._busy_timeout_s,
            isolation_level=None,
            check_same_thread=False,  # the lock sees to it that one thread at a time uses it
        )
        try:
            self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        """See that the file is a history, and make it one if it is empty."""
        give_up = time.monotonic() + self._busy_timeout_s
        while True:
            try:
                if not self._is_history(connection):
                    self._create(connection)
                break
            except sqlite3.OperationalError as error:
                # Changing to write-ahead logging does not wait for others by itself.
                if not _name(error).startswith(_BUSY) or time.monotonic() >= give_up:
                    raise
                time.sleep(_RETRY_S)
        connection.execute("PRAGMA synchronous = NORMAL")  # a power failure may cost the last scores, never the file

    def _create(self, connection: sqlite3.Connection) -> None:
        if self._read_only:
            raise HistoryError(f"{self.path} is empty: there is no history in it")
        connection.execute("PRAGMA journal_mode = WAL")  # readers and the one writer do not wait for each other
        with _transaction(connection):
            if not self._is_history(connection):  # another process may have been faster
                for statement in _SCHEMA:
                    connection.execute(statement)

    def _is_history(self, connection: sqlite3.Connection) -> bool:
        """Whether the file is one already; an error for somebody else's file and for one of another version."""
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (objects,) = connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()
        if application != _APPLICATION_ID:
            if version or application or objects:
                raise HistoryError(f"{self.path} is a database of something else: name another file")
            return False
        if version != SCHEMA_VERSION:
            raise HistoryError(
                f"the history {self.path} has format {version}, and this version of guardrail reads format "
                f"{SCHEMA_VERSION}: update guardrail, or name another file"
            )
        return True

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            name = _name(error)
            told = next((advice for code, advice in _ADVICE.items() if name.startswith(code)), name or "SQLite failed")
            if self._read_only and not Path(self.path).exists():
                told = "there is no such file"
            raise HistoryError(f"the history {self.path} cannot be used: {told}") from error

    def before_fork(self) -> bool:
        """Close the connection, between two calls: what SQLite knows of its locks is wrong in a child.

        A child that inherits it takes the locks of its parent for its own. It may then find the file locked for ever,
        or write scores into a log that its parent, as it believes to be alone, deletes.

        Returns:
            Whether the lock is held: ``False`` if a call did not end within ``busy_timeout_s``.
        """
        held = self._lock.acquire(timeout=self._busy_timeout_s)
        if held and self.path != _MEMORY and self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None
        return held

    def after_fork_in_parent(self) -> None:
        """Go on; the next call opens the file again."""
        self._lock.release()

    def after_fork(self) -> None:
        """Begin anew in a child process: SQLite forbids to use, or even to close, what its parent opened."""
        if self._connection is not None:
            _left_behind.append(self._connection)
        self._lock = threading.Lock()  # whoever held it is not in this process
        self._connection = None


def _inode_of(path: str) -> tuple[int, int] | None:
    """What tells a file from one that takes its place; ``None`` if there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield connection
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # some errors, such as a full disk, have ended it already
            connection.execute("ROLLBACK")
        raise


_open: weakref.WeakSet[HistoryFile] = weakref.WeakSet()
_left_behind: list[sqlite3.Connection] = []
_forking = threading.Lock()
_held: list[HistoryFile] = []


def _before_fork() -> None:
    _forking.acquire()
    _held.extend(file for file in list(_open) if file.before_fork())


def _forked_in_parent() -> None:
    while _held:
        _held.pop().after_fork_in_parent()
    _forking.release()


def _forked() -> None:
    global _forking
    _forking = threading.Lock()
    _held.clear()
    for file in list(_open):
        file.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_forked_in_parent, after_in_child=_forked)


def _name(error: sqlite3.Error) -> str:
    """SQLite's name of an error, such as ``SQLITE_BUSY_SNAPSHOT``."""
    return getattr(error, "sqlite_errorname", None) or ""
