"""What model servers are sent and what they answer: Text Embeddings Inference, and the Open Inference Protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol
from urllib.parse import SplitResult

from guardrail.errors import ConfigurationError, ScoringError
from guardrail.protocols import Pair
from guardrail.scoring.entailment.labels import Activation, LabelMap, probabilities, resolve_labels
from guardrail.types import EntailmentScore


class RemoteApi(Protocol):
    """How one kind of server is spoken to."""

    def path(self, url: SplitResult) -> str:
        """Path of the endpoint, from the address that the user gave."""
        ...

    def body(self, pairs: Sequence[Pair]) -> Mapping[str, Any]:
        """What to send, as JSON."""
        ...

    def scores(self, answer: Any, count: int) -> list[EntailmentScore]:
        """One score per pair from the answer; raises ``ScoringError`` if it is not that."""
        ...


class TeiApi:
    """``POST /predict`` of Text Embeddings Inference with a sequence classifier.

    Sent: ``{"inputs": [[premise, hypothesis], ...], "raw_scores": false, "truncate": false}``. Answered: per pair a
    list of ``{"label", "score"}``, a probability for every class, in any order.
    """

    def __init__(self, labels: Mapping[int, str] | None, scorer: str) -> None:
        self._labels = labels
        self._scorer = scorer

    def path(self, url: SplitResult) -> str:
        """The path, ending in ``/predict``."""
        path = url.path.rstrip("/")
        return path if path.endswith("/predict") else f"{path}/predict"

    def body(self, pairs: Sequence[Pair]) -> Mapping[str, Any]:
        """Pairs, never to be truncated: a cut claim is another claim."""
        return {"inputs": [[premise, hypothesis] for premise, hypothesis in pairs], "raw_scores": False,
                "truncate": False}  # fmt: skip

    def scores(self, answer: Any, count: int) -> list[EntailmentScore]:
        """Scores by label name."""
        try:
            rows = [{str(item["label"]): item["score"] for item in row} for row in answer]
        except (TypeError, KeyError) as error:
            raise _malformed(self._scorer, "a list of labels and scores per pair") from error
        _check_count(len(rows), count, self._scorer)
        names = sorted(rows[0])
        if any(sorted(row) != names for row in rows):
            raise _malformed(self._scorer, "the same labels for every pair")
        labels = resolve_labels({i: self._named(name) for i, name in enumerate(names)}, model_id=self._scorer)
        table = [[row[name] for name in names] for row in rows]
        return _scores(table, count, labels, "sigmoid" if len(names) == 1 else "softmax", self._scorer)

    def _named(self, name: str) -> str:
        # A model without names of its own has LABEL_0, LABEL_1, …: only an explicit map says what they mean.
        for index, meaning in (self._labels or {}).items():
            if name in (f"LABEL_{index}", str(index)):
                return meaning
        return name


class TritonApi:
    """``POST /v2/models/{name}/infer`` of the Open Inference Protocol (KServe v2): Triton and others.

    Sent: the inputs ``premise`` and ``hypothesis``, both ``BYTES`` of shape ``[n, 1]``. Answered: a floating-point
    output of shape ``[n, classes]`` named ``logits`` (softmax is applied here, or sigmoid for one class) or
    ``probabilities`` (taken as they are). The server tokenises, and answers with an error instead of truncating.
    """

    def __init__(self, labels: Mapping[int, str] | None, scorer: str) -> None:
        if labels is None:
            raise ConfigurationError(
                "api='triton' needs labels, as its answers do not name the classes, e.g. "
                'labels={0: "contradiction", 1: "entailment", 2: "neutral"}'
            )
        self._labels = resolve_labels(labels, model_id=scorer)
        self._scorer = scorer

    def path(self, url: SplitResult) -> str:
        """The path of a model, ending in ``/infer``."""
        path = url.path.rstrip("/")
        if "/v2/models/" not in path:
            raise ConfigurationError(
                "api='triton' needs the address of a model, such as http://localhost:8000/v2/models/nli"
            )
        return path if path.endswith("/infer") else f"{path}/infer"

    def body(self, pairs: Sequence[Pair]) -> Mapping[str, Any]:
        """Two string tensors."""
        columns = {"premise": [p.premise for p in pairs], "hypothesis": [p.hypothesis for p in pairs]}
        return {
            "inputs": [
                {"name": name, "shape": [len(pairs), 1], "datatype": "BYTES", "data": data}
                for name, data in columns.items()
            ]
        }

    def scores(self, answer: Any, count: int) -> list[EntailmentScore]:
        """Scores from the tensor of classes."""
        try:
            outputs = {item["name"]: item for item in answer["outputs"]}
            name = next(name for name in ("probabilities", "logits") if name in outputs)
            shape, data = list(outputs[name]["shape"]), outputs[name]["data"]
        except (TypeError, KeyError, StopIteration) as error:
            raise _malformed(self._scorer, "an output named 'logits' or 'probabilities'") from error
        width = self._labels.size
        if shape not in ([count, width], *([[count]] if width == 1 else [])):
            raise ScoringError(
                f"{self._scorer} answered with shape {shape} for {count} pairs and {width} labels", scorer=self._scorer
            )
        activation: Activation | None = None
        if name == "probabilities":
            activation = "sigmoid" if width == 1 else "softmax"
        return _scores(_table(data, count, width, self._scorer), count, self._labels, activation, self._scorer)


def _table(data: Any, count: int, width: int, scorer: str) -> list[list[Any]]:
    """The rows of a tensor, whose data may be flat or nested."""
    if not isinstance(data, list):
        raise _malformed(scorer, "the data of a tensor as a list")
    flat = [value for item in data for value in (item if isinstance(item, list) else [item])]
    _check_count(len(flat), count * width, scorer)
    return [flat[start : start + width] for start in range(0, len(flat), width)]


def _scores(
    table: list[list[Any]], count: int, labels: LabelMap, activation: Activation | None, scorer: str
) -> list[EntailmentScore]:
    values = probabilities(table, rows=count, width=labels.size, activation=activation, scorer=scorer)
    return [
        EntailmentScore(
            entailment=float(row[labels.entailment]),
            contradiction=None if labels.contradiction is None else float(row[labels.contradiction]),
        )
        for row in values
    ]


def _check_count(found: int, expected: int, scorer: str) -> None:
    if found != expected:
        raise ScoringError(f"{scorer} answered with {found} values instead of {expected}", scorer=scorer)


def _malformed(scorer: str, expected: str) -> ScoringError:
    return ScoringError(f"{scorer} did not answer with {expected}", scorer=scorer)
