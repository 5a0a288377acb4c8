"""Numbers and files from the command line, with errors that name them and say what to change."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from guardrail.errors import InputError
from guardrail.types import Passage

STDIN = "-"


def positive(text: str) -> int:
    """A whole number of at least 1, as ``type`` of an option.

    Raises:
        argparse.ArgumentTypeError: If it is none.
    """
    value = int(text) if text.isdecimal() else 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 1, not {text!r}")
    return value


def read_text(name: str) -> str:
    """Read a UTF-8 file, line ends as they are.

    Args:
        name: Path; ``-`` for standard input.

    Returns:
        Its text, without a byte order mark.

    Raises:
        InputError: If the file is missing, unreadable, or not UTF-8.
    """
    called = "standard input" if name == STDIN else name
    try:
        raw = sys.stdin.buffer.read() if name == STDIN else Path(name).read_bytes()
    except FileNotFoundError as error:
        raise InputError(f"{called}: there is no such file") from error
    except IsADirectoryError as error:
        raise InputError(f"{called}: this is a folder; name a file") from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InputError(f"{called}: cannot be read ({reason})") from error
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        where = f"byte {error.start} is 0x{raw[error.start]:02x}"
        raise InputError(f"{called}: is not UTF-8 ({where}); convert it, for example with iconv") from error


def read_passages(names: Sequence[str]) -> list[Passage]:
    """Read context files: one passage per file, or one per line of a ``.jsonl`` file.

    Args:
        names: Paths, best passage first.

    Returns:
        The passages in order; the id is the file's name, or the ``id`` of the line, or file name and line number.

    Raises:
        InputError: If a file or a line cannot be used; the message names it.
    """
    passages: list[Passage] = []
    for name in names:
        text = read_text(name)
        if name.endswith(".jsonl"):
            passages.extend(_from_lines(name, text))
        else:
            passages.append(Passage(id=_short(name), text=text))
    return passages


def _short(name: str) -> str:
    return "stdin" if name == STDIN else Path(name).name


def _from_lines(name: str, text: str) -> list[Passage]:
    passages = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            item = json.loads(line)
        except ValueError as error:
            raise InputError(f"{name}, line {number}: is not JSON ({error})") from error
        body = item.get("text") if isinstance(item, dict) else item
        if not isinstance(body, str):
            raise InputError(f'{name}, line {number}: must be {{"id": ..., "text": "..."}} or a JSON string')
        given = item.get("id") if isinstance(item, dict) else None
        passages.append(Passage(id=f"{_short(name)}:{number}" if given in (None, "") else str(given), text=body))
    return passages
