"""The public names, and that each of them is documented."""

from __future__ import annotations

import importlib
import inspect
import pkgutil

import pytest

import guardrail

PUBLIC = {
    "Attempt", "Budget", "CalibrationError", "HistoryError", "Citation", "CitationStatus", "ClaimVerdict", "JudgeError",
    "ConfigurationError", "ContextState", "DeadlineExceededError", "Decision",
    "Entailment", "EntailmentScore", "EvidenceSpan", "FailedClaim", "GenerationError", "GenerationRequest",
    "GenerationTimeoutError", "GenerationTypeError", "GeneratorSignatureError", "GuardedGenerator", "GuardedStream",
    "Guardrail", "GuardrailError", "InputError", "Limit", "LocalLimiter", "MissingExtraError", "ModelLoadError",
    "Outcome", "OutcomeStatus", "Pair", "Passage", "Policy", "PolicyError", "RateLimitedError", "RateLimiter",
    "ReceiptRange", "ReceiptStatus", "RedisLimiter", "RedisRegenerationBudget", "RegenerationBudget", "ReleaseMode",
    "Reranker", "RerankingError", "ScoringError", "ScoringTimeoutError", "Segment", "SegmentKind", "SettlingLimiter",
    "SharedCache",
    "StreamStateError", "VerdictLabel", "Verification", "Verifier", "__version__",
}  # fmt: skip

MODULES = sorted(m.name for m in pkgutil.walk_packages(guardrail.__path__, "guardrail.") if "__main__" not in m.name)


def _public(module):
    """Public classes and functions that a module defines itself."""
    for name, value in vars(module).items():
        if name.startswith("_") or getattr(value, "__module__", None) != module.__name__:
            continue
        if inspect.isclass(value) or inspect.isfunction(value):
            yield f"{module.__name__}.{name}", value


def test_the_public_names_are_these():
    assert set(guardrail.__all__) == PUBLIC
    assert len(guardrail.__all__) == len(PUBLIC)


def test_nothing_public_is_missing_from_all():
    visible = {n for n in dir(guardrail) if not n.startswith("_") and not inspect.ismodule(getattr(guardrail, n))}
    assert visible - {"annotations"} == PUBLIC - {"__version__"}


def test_a_star_import_gives_every_public_name():
    namespace: dict[str, object] = {}
    exec("from guardrail import *", namespace)
    assert namespace.keys() >= PUBLIC


@pytest.mark.parametrize("name", MODULES)
def test_every_module_says_what_it_is_for(name):
    assert len((importlib.import_module(name).__doc__ or "").split()) >= 3


@pytest.mark.parametrize("name", MODULES)
def test_every_public_object_has_a_docstring(name):
    silent = []
    for path, value in _public(importlib.import_module(name)):
        if not inspect.getdoc(value):
            silent.append(path)
        if inspect.isclass(value):
            methods = {n: m for n, m in vars(value).items() if not n.startswith("_")}
            silent += [f"{path}.{n}" for n, m in methods.items() if inspect.isfunction(m) and not inspect.getdoc(m)]
    assert not silent


@pytest.mark.parametrize("name", sorted(PUBLIC - {"__version__"}))
def test_public_signatures_are_annotated(name):
    value = getattr(guardrail, name)
    callables = [m for n, m in vars(value).items() if inspect.isfunction(m) and not n.startswith("_")]
    for method in callables:
        signature = inspect.signature(method)
        parameters = [p for p in signature.parameters.values() if p.name not in ("self", "cls")]
        bare = [p.name for p in parameters if p.annotation is p.empty]
        assert not bare, method.__qualname__
        assert signature.return_annotation is not signature.empty, method.__qualname__
