"""Checks every claim of a language model's answer against the retrieved passages while the answer streams."""

import importlib
import typing

from guardrail._version import __version__
from guardrail.errors import (
    CalibrationError,
    ConfigurationError,
    DeadlineExceededError,
    GenerationError,
    GenerationTimeoutError,
    GenerationTypeError,
    GeneratorSignatureError,
    GuardrailError,
    HistoryError,
    InputError,
    JudgeError,
    MissingExtraError,
    ModelLoadError,
    PolicyError,
    RateLimitedError,
    RerankingError,
    ScoringError,
    ScoringTimeoutError,
    StreamStateError,
)
from guardrail.guard import GuardedGenerator, Guardrail
from guardrail.policy import Policy
from guardrail.protocols import Budget, Decision, Entailment, Pair, RateLimiter, Reranker, SettlingLimiter
from guardrail.scoring.verifier import Verifier
from guardrail.stream import GuardedStream
from guardrail.types import (
    Attempt,
    Citation,
    CitationStatus,
    ClaimVerdict,
    ContextState,
    EntailmentScore,
    EvidenceSpan,
    FailedClaim,
    GenerationRequest,
    Outcome,
    OutcomeStatus,
    Passage,
    ReceiptRange,
    ReceiptStatus,
    ReleaseMode,
    Segment,
    SegmentKind,
    VerdictLabel,
    Verification,
)

if typing.TYPE_CHECKING:
    from guardrail.limits.budget import RegenerationBudget
    from guardrail.limits.limit import Limit
    from guardrail.limits.local import LocalLimiter
    from guardrail.limits.redis import RedisLimiter
    from guardrail.limits.redis_budget import RedisRegenerationBudget
    from guardrail.scoring.entailment.shared_cache import SharedCache

__all__ = [
    "Attempt",
    "Budget",
    "CalibrationError",
    "Citation",
    "CitationStatus",
    "ClaimVerdict",
    "ConfigurationError",
    "ContextState",
    "DeadlineExceededError",
    "Decision",
    "Entailment",
    "EntailmentScore",
    "EvidenceSpan",
    "FailedClaim",
    "GenerationError",
    "GenerationRequest",
    "GenerationTimeoutError",
    "GenerationTypeError",
    "GeneratorSignatureError",
    "GuardedGenerator",
    "GuardedStream",
    "Guardrail",
    "GuardrailError",
    "HistoryError",
    "InputError",
    "JudgeError",
    "Limit",
    "LocalLimiter",
    "MissingExtraError",
    "ModelLoadError",
    "Outcome",
    "OutcomeStatus",
    "Pair",
    "Passage",
    "Policy",
    "PolicyError",
    "RateLimitedError",
    "RateLimiter",
    "ReceiptRange",
    "ReceiptStatus",
    "RedisLimiter",
    "RedisRegenerationBudget",
    "RegenerationBudget",
    "ReleaseMode",
    "Reranker",
    "RerankingError",
    "ScoringError",
    "ScoringTimeoutError",
    "Segment",
    "SegmentKind",
    "SettlingLimiter",
    "SharedCache",
    "StreamStateError",
    "VerdictLabel",
    "Verification",
    "Verifier",
    "__version__",
]

# Loaded when they are first named: most guards have no limits.
_LATE = {
    "Limit": "guardrail.limits.limit",
    "LocalLimiter": "guardrail.limits.local",
    "RedisLimiter": "guardrail.limits.redis",
    "RedisRegenerationBudget": "guardrail.limits.redis_budget",
    "RegenerationBudget": "guardrail.limits.budget",
    "SharedCache": "guardrail.scoring.entailment.shared_cache",
}


def __getattr__(name: str) -> typing.Any:
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(_LATE[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATE})
