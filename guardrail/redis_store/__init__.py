"""Redis for limits and caches: one store with a deadline, a breaker, and errors that say what to do."""

from guardrail.redis_store.breaker import Breaker, Permit
from guardrail.redis_store.connection import Call, RedisStore, Script
from guardrail.redis_store.errors import Reason, StoreUnavailableError
from guardrail.redis_store.urls import Address, parse_url

__all__ = [
    "Address",
    "Breaker",
    "Call",
    "Permit",
    "Reason",
    "RedisStore",
    "Script",
    "StoreUnavailableError",
    "parse_url",
]
