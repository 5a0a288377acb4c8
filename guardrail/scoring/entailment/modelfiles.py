"""Checks of model files before a library opens them: their own errors rarely say what is wrong.

The usual suspects are a Git LFS pointer in the place of the file, a download that was cut, and a missing tokeniser.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from guardrail.errors import ModelLoadError

_LFS = b"version https://git-lfs"
_TOKENIZERS = ("tokenizer.json", "vocab.txt", "spm.model", "sentencepiece.bpe.model", "vocab.json")


def check_model_directory(directory: Path, *, weights: tuple[str, ...]) -> None:
    """Check that a directory holds a model: weights, configuration and tokeniser, none of them damaged.

    Args:
        directory: The directory.
        weights: Names that the weights may have; the first that exists is checked, an index of shards counts too.

    Raises:
        ModelLoadError: Naming the file and the likely cause.
    """
    if not directory.is_dir():
        raise ModelLoadError(f"{directory} is not a directory: likely a wrong path")
    found = [name for name in weights if (directory / name).exists()]
    if found:
        check_file(directory / found[0])
    elif not any((directory / f"{name}.index.json").exists() for name in weights):
        raise ModelLoadError(f"{directory} has no {' or '.join(weights)}: likely an incomplete copy")
    read_json(directory / "config.json")
    tokenizers = [name for name in _TOKENIZERS if (directory / name).exists()]
    if not tokenizers:
        raise ModelLoadError(f"{directory / _TOKENIZERS[0]} is missing: the tokenizer was not copied with the model")
    check_file(directory / tokenizers[0])


def check_file(path: Path) -> None:
    """Check that a file exists and is neither empty, nor a Git LFS pointer, nor a cut safetensors file.

    Raises:
        ModelLoadError: Naming the file and the likely cause.
    """
    if not path.is_file():
        raise ModelLoadError(f"{path} is missing: likely an incomplete copy")
    size = path.stat().st_size
    if size == 0:
        raise ModelLoadError(f"{path} is empty: likely a cut download")
    with path.open("rb") as file:
        head = file.read(len(_LFS))
        if head == _LFS:
            raise ModelLoadError(f"{path} is a Git LFS pointer and not the file itself: run 'git lfs pull'")
        if path.suffix == ".safetensors":
            file.seek(0)
            _check_safetensors(path, file.read(8), size)


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object.

    Raises:
        ModelLoadError: If the file is missing or holds something else.
    """
    check_file(path)
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ModelLoadError(f"{path} is not JSON: likely a cut download") from error
    if not isinstance(value, dict):
        raise ModelLoadError(f"{path} does not hold a JSON object")
    return value


def _check_safetensors(path: Path, head: bytes, size: int) -> None:
    # Layout: 8 bytes little-endian length of a JSON header, the header with the offsets of each tensor, the data.
    cut = ModelLoadError(f"{path} is shorter than its header says: likely a cut download")
    header_size = int.from_bytes(head, "little")
    if len(head) < 8 or 8 + header_size > size:
        raise cut
    with path.open("rb") as file:
        file.seek(8)
        try:
            header = json.loads(file.read(header_size))
            ends = [entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__"]
        except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
            raise ModelLoadError(f"{path} has a damaged header: likely another format") from error
    if 8 + header_size + max(ends, default=0) > size:
        raise cut
