"""How a score lies in Redis: under which key, in which bytes, and how many of them there are."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from guardrail.protocols import Pair
from guardrail.redis_store import Call, Script
from guardrail.types import EntailmentScore

FORMAT = b"1"
"""Part of every key: another layout of keys or values has other keys."""

_FIELDS = ("entailment", "contradiction", "unsupported")
_PERSON = b"guardrail-scores"
_PER_CALL = 500  # a script holds up everybody else on the server while it runs

STORE = Script(
    name="store scores",
    source="""
local index, ttl, most, prefix = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local ends = string.format('%.0f', now + ttl)
for i = 2, #KEYS do
  redis.call('SET', KEYS[i], ARGV[i + 2], 'PX', ARGV[1])
  redis.call('ZADD', index, ends, string.sub(KEYS[i], #prefix + 1))
end
local ended = redis.call('ZRANGEBYSCORE', index, '-inf', string.format('%.0f', now), 'LIMIT', 0, 1000)
if #ended > 0 then redis.call('ZREM', index, unpack(ended)) end
local surplus = math.min(redis.call('ZCARD', index) - most, 1000)
if surplus > 0 then
  local oldest = redis.call('ZPOPMIN', index, surplus)
  for i = 1, #oldest, 2 do redis.call('UNLINK', prefix .. oldest[i]) end
end
if redis.call('PTTL', index) < ttl then redis.call('PEXPIRE', index, ARGV[1]) end
return #KEYS - 1
""",
)
"""Keeps entries, each with its time to live, and as many of the oldest leave as there are too many.

An index (a sorted set of the ends of their lives) knows what is there. It lives as long as the last entry. If the bound
was lowered, each run removes up to 1,000 entries more than it adds.
"""


class Entries:
    """Keys, values and calls of one cache.

    Everything lies in one hash slot of a cluster, because one script keeps the bound.

    Args:
        name: Caches with different names do not see each other.
        ttl_ms: How long an entry lives.
        max_entries: Most entries of this name.

    Example:
        >>> entries = Entries("shop", ttl_ms=60_000, max_entries=100)
        >>> keys = entries.keys("model", [Pair("Entry is free.", "Entry is free.")])
        >>> [key.startswith("{shop:scores}:") and len(key) for key in keys]
        [46]
    """

    def __init__(self, name: str, *, ttl_ms: int, max_entries: int) -> None:
        self._prefix = f"{{{name}:scores}}:"
        self._index = self._prefix + "index"
        self._ttl_ms = ttl_ms
        self._max_entries = max_entries

    def keys(self, model: str, pairs: Sequence[Pair]) -> list[str]:
        """The keys of pairs, in order.

        Args:
            model: What identifies the model; see :func:`~guardrail.scoring.entailment.identity.identity`.
            pairs: The pairs; only their hash is in the key.
        """
        start = hashlib.blake2b(digest_size=16, person=_PERSON)
        _add(start, FORMAT)
        _add(start, model.encode())
        keys = []
        for pair in pairs:
            digest = start.copy()
            for text in pair:
                _add(digest, text.encode("utf-8", "surrogatepass"))
            keys.append(self._prefix + digest.hexdigest())
        return keys

    def calls(self, values: Mapping[str, bytes]) -> list[Call]:
        """What stores values under their keys, all of it in one round trip."""
        calls = []
        waiting = iter(values.items())
        while chunk := dict(islice(waiting, _PER_CALL)):
            settings = (self._ttl_ms, self._max_entries, self._prefix)
            calls.append(Call(STORE, (self._index, *chunk), (*settings, *chunk.values())))
        return calls


def pack(score: EntailmentScore) -> bytes:
    """A score as bytes: which fields it has, then each of them as it is.

    Example:
        >>> unpack(pack(EntailmentScore(entailment=0.1, unsupported=0.7)))
        EntailmentScore(entailment=0.1, contradiction=None, unsupported=0.7, screened=None, judged='')
    """
    values = [getattr(score, name) for name in _FIELDS]
    present = sum(1 << at for at, value in enumerate(values) if value is not None)
    given = [value for value in values if value is not None]
    return struct.pack(f"<B{len(given)}d", present, *given)


def unpack(data: Any) -> EntailmentScore | None:
    """The score that :func:`pack` made bytes of; ``None`` for everything that is none."""
    if not isinstance(data, bytes) or not data or not data[0] & 1 or data[0] >= 1 << len(_FIELDS):
        return None
    names = [name for at, name in enumerate(_FIELDS) if data[0] & 1 << at]
    if len(data) != 1 + 8 * len(names):
        return None
    values = struct.unpack_from(f"<{len(names)}d", data, 1)
    if not all(0.0 <= value <= 1.0 for value in values):  # not true of NaN either
        return None
    return EntailmentScore(**dict(zip(names, values, strict=True)))


def _add(digest: Any, data: bytes) -> None:
    digest.update(len(data).to_bytes(8, "little"))
    digest.update(data)
