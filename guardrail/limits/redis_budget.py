"""The regeneration budget that all processes share, in Redis."""

from __future__ import annotations

import time
from dataclasses import replace
from types import TracebackType

from guardrail.limits.budget import BudgetTerms, Tally, check_attempt
from guardrail.limits.costs import check_key, check_name, digest_of
from guardrail.limits.degraded import OnError, check_outage
from guardrail.protocols import Clock, Decision
from guardrail.redis_store import Call, RedisStore, Script, StoreUnavailableError

_LOCAL_KEYS = 100_000

# One hash per key: "f<second>" counts first attempts, "r<second>" regenerations. Seconds are those of the server, so
# clients may disagree about the time. Fields of a far future (the server's clock was put back) count as old ones.
SCRIPT = Script(
    name="regeneration budget",
    source="""
local now = redis.call('TIME')[1]
local window = tonumber(ARGV[2])

local function look_back()
  local counts, gone = {f = 0, r = 0}, {}
  local fields = redis.call('HGETALL', KEYS[1])
  for i = 1, #fields, 2 do
    local second = tonumber(string.sub(fields[i], 2))
    if second <= now - window or second > now + window then
      gone[#gone + 1] = fields[i]
    else
      local kind = string.sub(fields[i], 1, 1)
      counts[kind] = counts[kind] + tonumber(fields[i + 1])
    end
  end
  if #gone > 0 then
    redis.call('HDEL', KEYS[1], unpack(gone))
  end
  return counts
end

local function count(kind)
  redis.call('HINCRBY', KEYS[1], kind .. now, 1)
  redis.call('EXPIRE', KEYS[1], window + 1)
end

if ARGV[1] == 'first' then
  count('f')
  if redis.call('HLEN', KEYS[1]) > 2 * window then
    look_back()
  end
  return 1
end

local counts = look_back()
local size = tonumber(ARGV[3]) * counts.f + tonumber(ARGV[4])
local used = counts.r * 1000000
if used + 1000000 > size or used * (tonumber(ARGV[5]) - 1) >= size then
  return {0, counts.f, counts.r}
end
count('r')
return {1, counts.f, counts.r + 1}
""",
)


class RedisRegenerationBudget:
    """The retry budget of :class:`~guardrail.limits.budget.RegenerationBudget`, shared by all processes.

    One script and one round trip per call, on the server's clock; each key has a time to live. When Redis cannot be
    asked, ``on_error`` says what happens, and the decision says that it did (``degraded="redis_<reason>"``).

    Args:
        url_or_store: A Redis URL, or a :class:`~guardrail.redis_store.RedisStore` that the caller closes.
        share: Regenerations per first attempt, from 0 (only the floor counts) to 1.
        floor_per_min: Regenerations per minute that every key has without any first attempts.
        window_s: Whole seconds that are looked back on, from 1 to 600.
        name: Budgets with the same name and window share their counts: 1 to 64 letters, digits, dots, hyphens and
            underscores. A limiter may have the same name.
        on_error: While Redis cannot be asked: ``"local"`` takes the budget of this process, with the first attempts
            that it has counted itself and the floor divided by ``replicas``; ``"open"`` allows every regeneration,
            ``"closed"`` none.
        replicas: How many processes share the floor; for ``on_error="local"``.
        timeout_s: Longest wait for a connection and for a reply in seconds, each; for a URL.
        max_connections: Connections per event loop; for a URL.
        clock: Monotonic seconds; for tests.

    Raises:
        ConfigurationError: If a value is out of range, nothing would ever be allowed, or the URL cannot be used.
        MissingExtraError: If the extra ``redis`` is not installed.

    Making one connects to nothing. It works in any number of event loops, one after the other or at the same time.

    Example:
        >>> budget = RedisRegenerationBudget("redis://localhost:6379/0", share=0.2, floor_per_min=30, replicas=3)
        >>> from guardrail import Guardrail
        >>> guard = Guardrail(budget=budget)
    """

    def __init__(
        self,
        url_or_store: str | RedisStore,
        *,
        share: float = 0.2,
        floor_per_min: float = 10.0,
        window_s: int = 60,
        name: str = "guardrail",
        on_error: OnError = "local",
        replicas: int = 1,
        timeout_s: float = 0.25,
        max_connections: int = 32,
        clock: Clock = time.monotonic,
    ) -> None:
        self._terms = BudgetTerms(share, floor_per_min, window_s)
        self._terms.check_that_something_passes()
        check_outage(on_error, replicas)
        self._on_error = on_error
        self._name = check_name(name)
        self._local: Tally | None = None
        if on_error == "local":
            terms = replace(self._terms, floor_per_min=floor_per_min / replicas)
            self._local = Tally(terms, max_keys=_LOCAL_KEYS, clock=clock)
        self._owns_store = not isinstance(url_or_store, RedisStore)
        if isinstance(url_or_store, RedisStore):
            self._store = url_or_store
        else:
            self._store = RedisStore(
                url_or_store,
                timeout_s=timeout_s,
                connect_timeout_s=timeout_s,
                max_connections=max_connections,
                clock=clock,
            )

    async def first(self, key: str) -> None:
        """Count a first attempt. If Redis cannot be asked, only this process remembers it, and nothing is raised.

        Args:
            key: Who asks, for example a tenant.

        Raises:
            ConfigurationError: If the key is not a text.

        On cancellation it may have been counted.
        """
        call = self._call(key, "first", 1)
        if self._local is not None:
            self._local.count(key, first_attempts=1)
        try:
            await self._store.call([call])
        except StoreUnavailableError:
            return  # fewer first attempts make a smaller budget; the next decision says what is wrong

    async def take(self, key: str, attempt: int) -> Decision:
        """Ask for a regeneration, and count it if it is allowed. It waits for Redis, never for room.

        Args:
            key: Who asks.
            attempt: Number of the attempt, from 2.

        Returns:
            The decision, as :meth:`guardrail.limits.budget.RegenerationBudget.take`.

        Raises:
            ConfigurationError: If the key is not a text or ``attempt`` is not a whole number from 2.

        On cancellation it may have been counted.
        """
        check_attempt(attempt)
        call = self._call(key, "take", attempt)
        try:
            (reply,) = await self._store.call([call])
        except StoreUnavailableError as error:
            return self._without_redis(key, attempt, f"redis_{error.reason}")
        allowed, first_attempts, regenerations = bool(reply[0]), int(reply[1]), int(reply[2])
        if allowed and self._local is not None:
            self._local.count(key, regenerations=1)
        return Decision(
            allowed=allowed,
            remaining=float(self._terms.left(first_attempts=first_attempts, regenerations=regenerations)),
            source="redis",
            limit="" if allowed else str(self._terms),
        )

    def _without_redis(self, key: str, attempt: int, reason: str) -> Decision:
        if self._local is not None:
            return replace(self._local.take(key, attempt), degraded=reason)
        allowed = self._on_error == "open"
        return Decision(
            allowed=allowed,
            source="open" if allowed else "closed",
            degraded=reason,
            limit="" if allowed else str(self._terms),
        )

    def _call(self, key: str, operation: str, attempt: int) -> Call:
        terms = self._terms
        return Call(
            script=SCRIPT,
            keys=(f"{{{self._name}:{digest_of(check_key(key))}}}:budget-{terms.window_s}",),
            args=(operation, terms.window_s, terms.share_millionths, terms.floor_millionths, attempt),
        )

    async def aclose(self) -> None:
        """Close the connections of this event loop, unless they belong to a store that was handed in. Idempotent."""
        if self._owns_store:
            await self._store.aclose()

    async def __aenter__(self) -> RedisRegenerationBudget:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()
