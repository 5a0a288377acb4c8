"""The file that an evaluation writes: a header and one line per item, in order, to which an interrupted one returns."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Generator, Iterator, Mapping
from itertools import repeat
from pathlib import Path
from typing import Any, BinaryIO

from guardrail.errors import InputError
from guardrail.text.surrogates import repair_surrogates

FORMAT = "guardrail_evaluation"
FORMAT_VERSION = 1
EXTENT = ("limit", "items", "unused_answers")
"""What of a header may change when an evaluation goes on: with a higher limit there is more of the same to do."""
_EXTENT_BYTES = 120
_MAX_HEADER_BYTES = 1 << 20
_NOT_SET = object()
_READ = {"items", "unused_answers", "metrics", "policy", "scorer", "with_text"}


def encode(value: Mapping[str, Any]) -> bytes:
    """One line of the file.

    Raises:
        ValueError: If a number is NaN or infinite.
        TypeError: If a value is none that JSON has.
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, default=_as_dict, separators=(", ", ": "))
    return repair_surrogates(text).encode() + b"\n"


def _as_dict(value: Any) -> dict[Any, Any]:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is no value that JSON has")


def encode_header(header: Mapping[str, Any]) -> bytes:
    """The first line of the file; :data:`EXTENT` stands at its end, with room to be replaced.

    Raises:
        ValueError: If a number is NaN or infinite, or the line would be too long to be found again.
        TypeError: If a value is none that JSON has.
    """
    fixed = {name: value for name, value in header.items() if name not in EXTENT}
    first = encode({FORMAT: FORMAT_VERSION, **fixed})
    last = encode({name: header[name] for name in EXTENT})
    line = first[:-2] + b", " + last[1:-2].ljust(_EXTENT_BYTES) + b"}\n"
    if len(line) > _MAX_HEADER_BYTES:
        raise ValueError(f"{len(line)} bytes, and {_MAX_HEADER_BYTES} at most are kept")
    return line


class ResultsFile:
    """Appends lines to a results file, after what an earlier run has left there.

    A last line that was not written to its end is cut off. While the file is open no other evaluation can open it,
    where operating system and file system have locks of that kind (Windows has none).

    Args:
        path: Where the results go.
        header: What must be equal for an evaluation to go on where it was interrupted, and its :data:`EXTENT`.
        restart: Whether to begin again.

    Attributes:
        done: Number of items whose line is in the file.
        intact: Whether lines can be appended: not after one that was not written to its end.
        ahead: Number of items whose line is not in the file, but known.
        retried: Number of items that are measured although there was a result.

    Raises:
        InputError: If the file cannot be written, holds something else, results of another evaluation, or more than
            there are items.
    """

    def __init__(self, path: Path, header: Mapping[str, Any], *, restart: bool = False) -> None:
        self.done = 0
        self._path = path
        self.intact = True
        self.ahead = self.retried = 0
        first = encode_header(header)
        file = _open(path)
        try:
            _lock(file, path)
            end = 0 if _is_new(file, path, restart=restart) else self._find_end(file, first)
            file.seek(end)
            file.truncate()
        except OSError as error:
            file.close()
            raise unwritable(path, error) from error
        except BaseException:
            file.close()
            raise
        self._file = file.detach()  # without a buffer: what is written is out of the process
        try:
            self._file.seek(0)
            self._write(first)
            self._file.seek(max(end, len(first)))
        except OSError as error:
            self._file.close()
            raise unwritable(path, error) from error

    def known(self) -> Generator[Mapping[str, Any] | None, None, None]:
        """What is known per item, without an end: ``None`` where its line is there, else what need not be measured."""
        yield from repeat(None, self.done)
        yield from repeat({})

    def copy(self) -> Iterator[None]:
        """Write lines that are known and whose turn it is, in steps, so that others can have a turn; here none are."""
        return iter(())

    def append(self, line: bytes) -> None:
        """Write the line of the next item; the death of the process does not undo it.

        Raises:
            InputError: If it cannot be written, for example because the disk is full.
        """
        if not self.intact:  # a line that follows half a line, or a gap, would damage what there is
            raise InputError(f"{self._path}: an earlier line was not written to its end; evaluate again to go on")
        self.intact = False
        try:
            self._write(line)
        except OSError as error:
            raise unwritable(self._path, error) from error
        self.done += 1
        self.intact = True

    def finish(self) -> None:
        """Close a file that has a line for every item.

        Raises:
            InputError: If it cannot be written.
        """
        self.close()

    def close(self) -> None:
        """See that everything is on disk, and let others write.

        Raises:
            InputError: If it does not get there.
        """
        if self._file.closed:
            return
        try:
            os.fsync(self._file.fileno())
        except OSError as error:
            raise unwritable(self._path, error) from error
        finally:
            self._file.close()

    def _write(self, line: bytes) -> None:
        left = memoryview(line)
        while left:
            left = left[self._file.write(left) or 0 :]

    def _find_end(self, file: BinaryIO, first: bytes) -> int:
        """Where the line of the last whole item ends; counts the items."""
        file.seek(0)
        header = file.readline(_MAX_HEADER_BYTES)
        before, now = json.loads(header), json.loads(first)
        _check_same(self._path, *({name: one[name] for name in one if name not in EXTENT} for one in (before, now)))
        if len(header) != len(first):
            raise _damaged(self._path, 1)
        end = len(header)
        for line in file:
            if not _is_item(line, self.done + 1):
                if file.read(1):
                    raise _damaged(self._path, self.done + 2)
                break
            self.done += 1
            end += len(line)
        if self.done > now["items"]:
            if before["items"] == now["items"]:
                raise _damaged(self._path, now["items"] + 2)
            raise InputError(
                f"{self._path} has results of {self.done} items, and with this limit there are {now['items']}: raise "
                "the limit, name another file, or use --restart (restart=True) to begin again"
            )
        return end


def same_file(one: Path, other: Path) -> bool:
    """Whether two names are those of one file that exists."""
    try:
        return one.samefile(other)
    except (OSError, ValueError):  # one does not exist, or no file can have its name
        return False


def read_lines(path: Path) -> Generator[dict[str, Any], None, None]:
    """Read a results file: the header, then one entry per item; a last line that is not whole is left out.

    Raises:
        InputError: If the file cannot be read, or is not the result of an evaluation.
    """
    try:
        with open(path, "rb") as file:
            header = _header(file.readline(_MAX_HEADER_BYTES))
            if header is None:
                raise InputError(f"{path} is not the result of an evaluation")
            yield header
            done = 0
            for line in file:
                if not _is_item(line, done + 1):
                    if file.read(1):
                        raise _damaged(path, done + 2)
                    return
                done += 1
                yield json.loads(line)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error


def _open(path: Path) -> io.BufferedRandom:
    try:
        return open(path, "r+b", opener=lambda name, flags: os.open(name, flags | os.O_CREAT, 0o666))
    except (OSError, ValueError) as error:  # a ValueError for a name that no file can have
        raise unwritable(path, error) from error


def unwritable(path: Path, error: OSError | ValueError) -> InputError:
    """The error for a file that cannot be written."""
    return InputError(f"{path}: cannot be written ({getattr(error, 'strerror', None) or error})")


def _lock(file: BinaryIO, path: Path) -> None:
    try:
        import fcntl
    except ImportError:  # Windows
        return
    busy = InputError(f"{path}: another evaluation is writing to it; wait for it, or name another file")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise busy from error
    except OSError:  # a file system without locks
        return
    if not os.path.samestat(os.fstat(file.fileno()), os.stat(path)):  # another one took its place in the meantime
        raise busy


def _is_new(file: BinaryIO, path: Path, *, restart: bool) -> bool:
    """Whether to begin at the beginning; a file that holds something else is never overwritten."""
    header = file.readline(_MAX_HEADER_BYTES)
    if _header(header) is not None:
        return restart
    begun = encode({FORMAT: FORMAT_VERSION})[:-2]
    whole = header.endswith(b"\n") or len(header) == _MAX_HEADER_BYTES
    if not whole and (header.startswith(begun) or begun.startswith(header)):
        return True  # it is empty, or its header was interrupted: there are no results in it
    raise InputError(f"{path} holds something else than results of an evaluation; name another file")


def _header(line: bytes) -> dict[str, Any] | None:
    try:
        header = json.loads(line) if line.endswith(b"\n") else None
    except ValueError:
        return None
    if not isinstance(header, dict) or header.get(FORMAT) != FORMAT_VERSION:
        return None
    return header if _READ <= header.keys() and isinstance(header["metrics"], list) else None


def _is_item(line: bytes, number: int) -> bool:
    try:
        found = json.loads(line) if line.endswith(b"\n") else None
    except ValueError:
        return False
    return (
        isinstance(found, dict)
        and found.get("n") == number
        and "id" in found
        and isinstance(found.get("scores"), dict)
        and isinstance(found.get("errors", {}), dict)
    )


def _damaged(path: Path, line: int) -> InputError:
    return InputError(f"{path}, line {line}: is damaged; begin again with --restart (restart=True), or another file")


def _check_same(path: Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    changes = list(_changes(before, now))
    if changes:
        raise InputError(
            f"{path} has results of another evaluation: {'; '.join(changes)}. "
            "Use --restart (restart=True) to begin again, or name another file"
        )


def _changes(before: Any, now: Any, name: str = "") -> Iterator[str]:
    was, is_now = _by_name(before), _by_name(now)
    if isinstance(was, Mapping) and isinstance(is_now, Mapping):
        if was is not before and list(was) != list(is_now):
            was, is_now = list(was), list(is_now)  # of other metrics the names say enough
        else:
            for key in dict.fromkeys([*was, *is_now]):
                yield from _changes(was.get(key, _NOT_SET), is_now.get(key, _NOT_SET), f"{name}.{key}".lstrip("."))
            return
    if was != is_now:
        yield f"{name} was {_shown(was)}, now {_shown(is_now)}"


def _by_name(value: Any) -> Any:
    """The metrics by their names; anything else as it is."""
    named = isinstance(value, list) and value and all(isinstance(each, Mapping) and "name" in each for each in value)
    return {each["name"]: each for each in value} if named else value


def _shown(value: Any) -> str:
    return "not set" if value is _NOT_SET else json.dumps(value, ensure_ascii=False)
