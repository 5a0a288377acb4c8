"""The exceptions of guardrail.

::

    GuardrailError
    ├── ConfigurationError (ValueError)      a setting is wrong: fix the code that builds the guard
    │   ├── PolicyError                      a policy field is out of range or contradicts another
    │   ├── GeneratorSignatureError (TypeError)   the generator cannot be called with what a run offers
    │   └── MissingExtraError (ImportError)  an optional dependency is not installed
    ├── InputError (ValueError)              the question, the context or the answer cannot be used
    ├── StreamStateError (RuntimeError)      a stream was used twice, or after it was closed
    ├── GenerationError                      the generator failed
    │   ├── GenerationTypeError (TypeError)  it returned or yielded something that is not text
    │   └── GenerationTimeoutError (TimeoutError)   it was silent for longer than the policy allows
    ├── ScoringError                         the checker could not check
    │   ├── JudgeError                       a judge model gave no claims for an answer, or a judge broke its protocol
    │   ├── ModelLoadError                   an entailment model could not be loaded
    │   └── ScoringTimeoutError (TimeoutError)
    ├── CalibrationError                     labelled answers do not carry the promise that was asked for
    ├── DeadlineExceededError (TimeoutError) the whole run took longer than ``Policy.timeout_s``
    ├── RerankingError                       the reranker failed
    ├── HistoryError                         a file of recorded scores cannot be read or written
    └── RateLimitedError                     a limiter refused the request

A refusal is not an error: it is an :class:`~guardrail.types.Outcome`. Messages never contain the text of
questions, passages or answers.
"""

from __future__ import annotations

from typing import Any


class GuardrailError(Exception):
    """Base class of everything that guardrail raises on purpose.

    Attributes:
        outcome: If a run ended with this error: its :class:`~guardrail.types.Outcome`, with every attempt so far.
    """

    outcome: Any = None


class ConfigurationError(GuardrailError, ValueError):
    """A setting is wrong; the message names the setting and what to change."""


class PolicyError(ConfigurationError):
    """A policy field is out of range, or two fields contradict each other.

    Attributes:
        field: Name of the offending policy field.
    """

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"Policy.{field}: {message}")
        self.field = field


class GeneratorSignatureError(ConfigurationError, TypeError):
    """The generator has a required parameter that a run cannot fill."""


class MissingExtraError(ConfigurationError, ImportError):
    """An optional dependency is missing.

    Attributes:
        extra: The extra of the distribution ``guardrail-stream`` that brings it.
    """

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(f"{feature} needs an optional dependency: pip install 'guardrail-stream[{extra}]'")
        self.extra = extra


class InputError(GuardrailError, ValueError):
    """The question, the context or the answer is of a type or shape that cannot be used."""


class StreamStateError(GuardrailError, RuntimeError):
    """A stream was consumed by two readers, or read after it was closed."""


class GenerationError(GuardrailError):
    """The generator failed.

    The generator's own exception is the ``__cause__``.

    Attributes:
        attempt: Number of the attempt that failed, counted from 1.
    """

    def __init__(self, message: str, *, attempt: int = 1) -> None:
        super().__init__(message)
        self.attempt = attempt


class GenerationTypeError(GenerationError, TypeError):
    """The generator returned or yielded something that is not text; nothing of it was released."""


class GenerationTimeoutError(GenerationError, TimeoutError):
    """The generator was silent for longer than the policy allows.

    Attributes:
        limit: The policy field that was exceeded: ``first_token_timeout_s`` or ``token_timeout_s``.
        timeout_s: Its value in seconds.
    """

    def __init__(self, limit: str, timeout_s: float, *, attempt: int = 1) -> None:
        what = "sent nothing" if limit == "first_token_timeout_s" else "fell silent"
        super().__init__(
            f"the generator {what} for {timeout_s:g} s in attempt {attempt} (Policy.{limit})", attempt=attempt
        )
        self.limit = limit
        self.timeout_s = timeout_s


class ScoringError(GuardrailError):
    """The checker could not check; nothing may count as verified because of it.

    Attributes:
        scorer: The ``model_id`` of the entailment model that failed.
    """

    def __init__(self, message: str, *, scorer: str = "") -> None:
        super().__init__(message)
        self.scorer = scorer


class ModelLoadError(ScoringError):
    """An entailment model could not be loaded; the message names the file and the likely cause."""


class JudgeError(ScoringError):
    """A generative judge, or the model that breaks answers up into claims, gave nothing that can be used.

    Single claims that cannot be judged are not raised: they are counted, see
    :class:`~guardrail.evaluation.judging.Judgement`.

    Attributes:
        error: What went wrong, in the words of ``Judgement.error``.
    """

    def __init__(self, message: str, *, scorer: str = "", error: str = "failed") -> None:
        super().__init__(message, scorer=scorer)
        self.error = error


class ScoringTimeoutError(ScoringError, TimeoutError):
    """Scoring took longer than ``Policy.scoring_timeout_s``."""


class CalibrationError(GuardrailError):
    """No threshold keeps the promise that was asked for; the message says what would.

    Attributes:
        needed: How many hallucinated answers the promise needs, if there were too few; else ``None``.
    """

    def __init__(self, message: str, *, needed: int | None = None) -> None:
        super().__init__(message)
        self.needed = needed


class DeadlineExceededError(GuardrailError, TimeoutError):
    """The whole run took longer than ``Policy.timeout_s``.

    Attributes:
        timeout_s: The limit in seconds.
    """

    def __init__(self, timeout_s: float) -> None:
        super().__init__(f"the run took longer than {timeout_s:g} s (Policy.timeout_s)")
        self.timeout_s = timeout_s


class RerankingError(GuardrailError):
    """A reranker failed, or returned something that is not passages; the loop ends with what it has."""


class HistoryError(GuardrailError):
    """A file of recorded scores cannot be opened, read or written; the message says what to change."""


class RateLimitedError(GuardrailError):
    """A limiter refused the request.

    Attributes:
        retry_after_s: Seconds after which a retry can succeed, or ``None`` if the limiter does not know.
    """

    def __init__(self, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s
