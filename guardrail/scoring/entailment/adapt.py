"""From whatever a user has to an :class:`~guardrail.protocols.Entailment`, with every returned value checked."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from guardrail.errors import ConfigurationError, ScoringError
from guardrail.protocols import Entailment, Pair, SelectiveEntailment
from guardrail.scoring.entailment.cross_encoder import CrossEncoderEntailment
from guardrail.scoring.entailment.labels import probability
from guardrail.scoring.entailment.lexical import LexicalEntailment
from guardrail.scoring.entailment.local import LocalEntailment
from guardrail.scoring.entailment.remote import RemoteEntailment
from guardrail.scoring.entailment.worker import ScoringWorker, shared_worker
from guardrail.types import EntailmentScore

_KEYS = frozenset({"entailment", "contradiction", "neutral", "unsupported"})
_FIELDS = ("entailment", "contradiction", "unsupported", "screened")


def as_entailment(obj: Any, *, worker: ScoringWorker | None = None) -> Entailment:
    """Make an entailment model of an object.

    Args:
        obj: An :class:`~guardrail.protocols.Entailment`; or an object with a ``score`` or ``predict`` method; or a
            callable. Method and callable take a list of ``(premise, hypothesis)`` pairs, may be sync or async, and
            return one item per pair: an :class:`~guardrail.types.EntailmentScore`, a number (the probability of
            entailment), or a mapping with ``"entailment"`` and optionally ``"contradiction"``, ``"neutral"`` and
            ``"unsupported"``.
            A sentence-transformers ``CrossEncoder`` is recognised and wrapped in :class:`CrossEncoderEntailment`. A
            string with an ``http://`` or ``https://`` address is a Text Embeddings Inference server, as for
            :class:`RemoteEntailment`.
        worker: Where synchronous code runs; ``None`` shares one thread per process.

    Returns:
        A model that raises :class:`~guardrail.errors.ScoringError` for every result of another shape: ``None``,
        ``{}``, a ``bool``, a string, a tuple, the wrong number of items, NaN, a value outside [0, 1].

    Raises:
        ConfigurationError: If the object can be used in none of these ways.

    Example:
        >>> import asyncio
        >>> model = as_entailment(lambda pairs: [float(p == h) for p, h in pairs])
        >>> asyncio.run(model.score([Pair("a", "a")]))
        [EntailmentScore(entailment=1.0, contradiction=None, unsupported=None, screened=None, judged='')]
    """
    if isinstance(obj, LocalEntailment | RemoteEntailment | LexicalEntailment | _Adapted):
        return obj
    if isinstance(obj, SelectiveEntailment) and not inspect.isclass(obj):
        return obj  # an adapter would hide what it can do; what it returns is checked by those who call it
    if isinstance(obj, str):
        if obj.startswith(("http://", "https://")):
            return RemoteEntailment(obj)
        raise ConfigurationError(
            "an entailment model given as a string must be an http:// or https:// address; "
            "make CrossEncoderEntailment(name) or OnnxEntailment(directory) for a name or a path"
        )
    if inspect.isclass(obj):
        raise ConfigurationError(f"an entailment model must be an instance, got the class {obj.__name__}")
    if type(obj).__module__.startswith("sentence_transformers.") and hasattr(obj, "predict"):
        return CrossEncoderEntailment(obj, worker=worker)
    for candidate in (getattr(obj, "score", None), getattr(obj, "predict", None), obj):
        if callable(candidate):
            return _Adapted(candidate, _name(obj), worker)
    raise ConfigurationError(
        f"{type(obj).__name__} is no entailment model: it has no score or predict method and cannot be called"
    )


class _Adapted:
    """Calls user code and believes nothing that it returns unchecked."""

    def __init__(self, call: Callable[[list[Pair]], Any], model_id: str, worker: ScoringWorker | None) -> None:
        self._call = call
        self._model_id = model_id
        self._worker = worker
        self._is_async = inspect.iscoroutinefunction(call) or inspect.iscoroutinefunction(
            getattr(call, "__call__", None)  # noqa: B004 - an instance with an async __call__, not a test for callable
        )

    @property
    def model_id(self) -> str:
        return self._model_id

    async def score(self, pairs: Sequence[Pair]) -> list[EntailmentScore]:
        asked = [Pair(premise, hypothesis) for premise, hypothesis in pairs]
        if not asked:
            return []
        try:
            if self._is_async:
                returned = await self._call(asked)
            else:
                returned = await (self._worker or shared_worker()).run(self._call, asked)
                if inspect.isawaitable(returned):  # a plain function that hands back a coroutine
                    returned = await returned
        except ScoringError as error:
            error.scorer = error.scorer or self._model_id
            raise
        except Exception as error:
            # The message of a foreign exception may quote the text: it stays in __cause__.
            raise ScoringError(f"{self._model_id} raised {type(error).__name__}", scorer=self._model_id) from error
        return self._checked(returned, len(asked))

    def _checked(self, returned: Any, count: int) -> list[EntailmentScore]:
        is_list = isinstance(returned, Sequence) and not isinstance(returned, str | bytes)
        if not is_list and not (getattr(returned, "ndim", None) == 1):
            raise ScoringError(
                f"{self._model_id} returned {type(returned).__name__} instead of a list of scores",
                scorer=self._model_id,
            )
        if len(returned) != count:
            raise ScoringError(
                f"{self._model_id} returned {len(returned)} scores for {count} pairs", scorer=self._model_id
            )
        return [self._item(item) for item in returned]

    def _item(self, item: Any) -> EntailmentScore:
        values: Mapping[str, Any] = {"entailment": item}
        if isinstance(item, EntailmentScore):
            values = {name: getattr(item, name) for name in _FIELDS}
        elif isinstance(item, Mapping):
            if "entailment" not in item or not _KEYS.issuperset(item):
                raise ScoringError(
                    f"{self._model_id} returned a mapping that is no score: its keys must be 'entailment' and, "
                    "optionally, 'contradiction', 'neutral' and 'unsupported'",
                    scorer=self._model_id,
                )
            values = item
        return EntailmentScore(
            entailment=probability(values["entailment"], scorer=self._model_id),
            contradiction=self._optional(values, "contradiction"),
            unsupported=self._optional(values, "unsupported"),
            screened=self._optional(values, "screened"),
            judged=item.judged if isinstance(item, EntailmentScore) else "",
        )

    def _optional(self, values: Mapping[str, Any], name: str) -> float | None:
        value = values.get(name)
        return None if value is None else probability(value, what=name, scorer=self._model_id)


def _name(obj: Any) -> str:
    model_id = getattr(obj, "model_id", None)
    if isinstance(model_id, str) and model_id:
        return model_id
    if inspect.isroutine(obj):
        return str(obj.__name__)
    return type(obj).__name__
