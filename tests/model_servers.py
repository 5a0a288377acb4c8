"""Model servers in this process: what Text Embeddings Inference and the Open Inference Protocol answer."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx

from guardrail.scoring.entailment import RemoteEntailment

LABELS = {0: "contradiction", 1: "entailment", 2: "neutral"}
URLS = {"tei": "http://models.test:8080", "triton": "http://models.test:8000/v2/models/nli"}
PATHS = {"tei": "/predict", "triton": "/v2/models/nli/infer"}


def tei(request: dict[str, Any], score: Callable[[str, str], float]) -> Any:
    """The answer of ``/predict``: per pair a list with the most likely label first."""
    assert set(request) == {"inputs", "raw_scores", "truncate"}
    assert request["raw_scores"] is False
    assert request["truncate"] is False
    found = [(score(premise, hypothesis)) for premise, hypothesis in request["inputs"]]
    rows = [{"entailment": p, "neutral": 1.0 - p, "contradiction": 0.0} for p in found]
    return [
        [{"score": p, "label": label} for label, p in sorted(row.items(), key=lambda item: -item[1])] for row in rows
    ]


def triton(request: dict[str, Any], score: Callable[[str, str], float]) -> Any:
    """The answer of ``/infer``: one tensor of probabilities, its data flat."""
    columns = {tensor["name"]: tensor for tensor in request["inputs"]}
    assert set(columns) == {"premise", "hypothesis"}
    count = len(columns["premise"]["data"])
    assert all(t["datatype"] == "BYTES" and t["shape"] == [count, 1] for t in columns.values())
    pairs = zip(columns["premise"]["data"], columns["hypothesis"]["data"], strict=True)
    flat = [value for premise, hypothesis in pairs for p in [score(premise, hypothesis)] for value in (0.0, p, 1.0 - p)]
    tensor = {"name": "probabilities", "datatype": "FP32", "shape": [count, 3], "data": flat}
    return {"model_name": "nli", "outputs": [tensor]}


def served(api: str, score: Callable[[str, str], float], **settings: Any) -> RemoteEntailment:
    """A remote model whose server is in this process; ``score`` gives P(entailment)."""

    def answer(request: httpx.Request) -> httpx.Response:
        assert (request.method, request.url.path) == ("POST", PATHS[api])
        answer = {"tei": tei, "triton": triton}[api](json.loads(request.content), score)
        return httpx.Response(200, content=json.dumps(answer))  # not json=: it refuses NaN, which a test sends

    return remote(api, answer, **settings)


def remote(api: str, answer: Callable[[httpx.Request], Any], **settings: Any) -> RemoteEntailment:
    """A remote model that is answered by a function."""
    settings.setdefault("labels", LABELS if api == "triton" else None)
    client = httpx.AsyncClient(transport=httpx.MockTransport(answer))
    return RemoteEntailment(URLS[api], api=api, client=client, **settings)
