from __future__ import annotations

import asyncio
import json
import math
import sys

import httpx
import pytest

from guardrail.errors import ConfigurationError, MissingExtraError, ModelLoadError, ScoringError
from guardrail.protocols import Pair
from guardrail.scoring.entailment import RemoteEntailment
from guardrail.types import EntailmentScore
from tests.model_servers import LABELS, PATHS, URLS, remote, served, tei

APIS = ["tei", "triton"]
PAIR = Pair("the confidential premise", "the confidential claim")
PAIRS = [Pair(f"premise {i}", f"claim {i}") for i in range(10)]
GOOD = {
    "tei": [[{"label": "ENTAILMENT", "score": 0.75}, {"label": "NEUTRAL", "score": 0.2},
             {"label": "CONTRADICTION", "score": 0.05}]],
    "triton": {"outputs": [{"name": "probabilities", "shape": [1, 3], "datatype": "FP32", "data": [0.05, 0.75, 0.2]}]},
}  # fmt: skip


def answers(api, *responses, **settings):
    """A model whose server gives these responses in turn, and the requests that it got."""
    requests, waiting = [], list(responses)

    def answer(request):
        requests.append(request)
        response = waiting.pop(0)
        if isinstance(response, Exception):
            raise response
        return response

    return remote(api, answer, **settings), requests


def json_answer(value):
    return httpx.Response(200, content=json.dumps(value))


@pytest.mark.parametrize("api", APIS)
async def test_what_is_sent_and_what_is_understood(api):
    model, requests = answers(api, json_answer(GOOD[api]), headers={"Authorization": "Bearer key"})
    assert await model.score([PAIR]) == [EntailmentScore(entailment=0.75, contradiction=0.05)]
    (request,) = requests
    assert str(request.url) == URLS[api].split("/v2")[0] + PATHS[api]
    assert request.headers["Authorization"] == "Bearer key"
    assert request.headers["Content-Type"] == "application/json"
    expected = {
        "tei": {"inputs": [list(PAIR)], "raw_scores": False, "truncate": False},
        "triton": {
            "inputs": [
                {"name": "premise", "shape": [1, 1], "datatype": "BYTES", "data": [PAIR.premise]},
                {"name": "hypothesis", "shape": [1, 1], "datatype": "BYTES", "data": [PAIR.hypothesis]},
            ]
        },
    }
    assert json.loads(request.content) == expected[api]


@pytest.mark.parametrize(
    ("api", "url", "sent"),
    [
        ("tei", "http://a:8080", "http://a:8080/predict"),
        ("tei", "https://a/", "https://a/predict"),
        ("tei", "https://a/nli/predict", "https://a/nli/predict"),
        ("tei", "https://a/nli?version=2", "https://a/nli/predict?version=2"),
        ("triton", "http://[::1]:8000/v2/models/nli", "http://[::1]:8000/v2/models/nli/infer"),
        ("triton", "http://a/v2/models/nli/versions/2/infer", "http://a/v2/models/nli/versions/2/infer"),
    ],
)
async def test_addresses(api, url, sent):
    seen = []

    def answer(request):
        seen.append(str(request.url))
        return json_answer(GOOD[api])

    client = httpx.AsyncClient(transport=httpx.MockTransport(answer))
    model = RemoteEntailment(url, api=api, labels=LABELS, client=client)
    assert len(await model.score([PAIR])) == 1
    assert seen == [sent]


@pytest.mark.parametrize("url", ["", "localhost:8080", "ftp://a", "http://", "http://a:port", "/predict", None, 3])
def test_other_addresses_are_refused(url):
    with pytest.raises(ConfigurationError, match="http://"):
        RemoteEntailment(url)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"api": "grpc"}, "api must be"),
        ({"api": "triton"}, "labels"),
        ({"api": "triton", "labels": LABELS}, "address of a model"),
        ({"batch_size": 0}, "batch_size"),
        ({"max_concurrency": 0}, "max_concurrency"),
        ({"timeout_s": 0}, "timeout_s"),
        ({"timeout_s": math.nan}, "timeout_s"),
        ({"headers": {"X-Key": "secret\n"}}, "X-Key"),
        ({"headers": {"X-Key": b"secret"}}, "X-Key"),
    ],
)
def test_settings_are_checked(settings, message):
    with pytest.raises(ConfigurationError, match=message) as caught:
        RemoteEntailment("http://a", **settings)
    assert "secret" not in str(caught.value)


def test_the_name_holds_no_password():
    assert RemoteEntailment("http://user:secret@a:81/x?key=secret").model_id == "remote:a:81"


async def test_pairs_are_sent_in_batches_each_once_and_blank_ones_never():
    sizes, seen = [], []

    def answer(request):
        body = json.loads(request.content)
        sizes.append(len(body["inputs"]))
        seen.extend(map(tuple, body["inputs"]))
        return json_answer(tei(body, lambda premise, hypothesis: int(premise.split()[1]) / 10))

    model = remote("tei", answer, batch_size=4)
    scores = await model.score([*PAIRS, PAIRS[3], Pair(" ", "claim"), Pair("premise 1", "\n")])
    assert [score.entailment for score in scores] == [*(i / 10 for i in range(10)), 0.3, 0.0, 0.0]
    assert sorted(sizes) == [2, 4, 4]
    assert sorted(seen) == PAIRS


async def test_no_more_requests_at_a_time_than_allowed():
    running, most, both = 0, [], asyncio.Event()

    async def answer(request):
        nonlocal running
        running += 1
        most.append(running)
        if running == 2:
            both.set()
        await both.wait()
        await asyncio.sleep(0)
        running -= 1
        return json_answer(tei(json.loads(request.content), lambda premise, hypothesis: 0.5))

    await remote("tei", answer, batch_size=1, max_concurrency=2).score(PAIRS)
    assert max(most) == 2


BAD = {
    "tei": [
        *({}, {"error": "no"}, "no", None, 3, [], [[]], [None], [[{"label": "entailment"}]], GOOD["tei"] * 2),
        [[{"label": "entailment", "score": math.nan}, {"label": "neutral", "score": 0.1}]],
        [[{"label": "entailment", "score": 3.5}, {"label": "neutral", "score": -3.1}]],
        [[{"label": "entailment", "score": 0.9}, {"label": "neutral", "score": 0.9}]],
        [[{"label": "entailment", "score": "high"}, {"label": "neutral", "score": "low"}]],
    ],
    "triton": [
        *({}, {"outputs": []}, {"outputs": [{"name": "scores", "shape": [1, 3], "data": [0, 1, 0]}]}, [], None),
        *({"outputs": [{"name": "logits", "shape": [1, 3], "data": data}]} for data in ([0, 1], [0, 1, None], "no")),
        *({"outputs": [{"name": "logits", "shape": shape, "data": [0, 1, 0]}]} for shape in ([3], [3, 1], [1, 2])),
        {"outputs": [{"name": "probabilities", "shape": [1, 3], "data": [0, 2, 0]}]},
        {"outputs": [{"name": "logits", "shape": [1, 3], "data": [0, math.nan, 0]}]},
    ],
}


@pytest.mark.parametrize(("api", "value"), [(api, value) for api, values in BAD.items() for value in values], ids=repr)
async def test_anything_else_is_an_error(api, value):
    model, requests = answers(api, json_answer(value))
    with pytest.raises(ScoringError, match=r"remote:models\.test|entailment"):
        await model.score([PAIR])
    assert len(requests) == 1


async def test_labels_may_differ_per_pair_in_order_only():
    rows = [
        [{"label": "entailment", "score": 0.9}, {"label": "not_entailment", "score": 0.1}],
        [{"label": "not_entailment", "score": 0.8}, {"label": "entailment", "score": 0.2}],
    ]
    model, _ = answers("tei", json_answer(rows), json_answer([rows[0], GOOD["tei"][0]]))
    assert [score.entailment for score in await model.score(PAIRS[:2])] == [0.9, 0.2]
    with pytest.raises(ScoringError, match="same labels"):
        await model.score(PAIRS[:2])


async def test_labels_without_names_need_a_map():
    anonymous = [[{"label": f"LABEL_{i}", "score": p} for i, p in enumerate((0.05, 0.75, 0.2))]]
    model, _ = answers("tei", json_answer(anonymous))
    with pytest.raises(ModelLoadError, match="labels="):
        await model.score([PAIR])
    model, _ = answers("tei", json_answer(anonymous), labels=LABELS)
    assert await model.score([PAIR]) == [EntailmentScore(entailment=0.75, contradiction=0.05)]


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ({"name": "logits", "shape": [2, 3], "data": [0, 0, 0, 0, 50, 0]}, [1 / 3, 1.0]),
        ({"name": "logits", "shape": [2, 3], "data": [[0, 0, 0], [0, 50, 0]]}, [1 / 3, 1.0]),
        ({"name": "probabilities", "shape": [2, 3], "data": [0.5, 0.25, 0.25, 0, 1, 0]}, [0.25, 1.0]),
    ],
)
async def test_tensors(output, expected):
    model, _ = answers("triton", json_answer({"outputs": [{"name": "other"}, output]}))
    assert [score.entailment for score in await model.score(PAIRS[:2])] == pytest.approx(expected)


async def test_a_tensor_of_one_class():
    output = {"name": "logits", "shape": [2], "data": [0.0, 50.0]}
    model, _ = answers("triton", json_answer({"outputs": [output]}), labels={0: "entailment"})
    scores = await model.score(PAIRS[:2])
    assert [(score.entailment, score.contradiction) for score in scores] == [(0.5, None), (1.0, None)]


@pytest.mark.parametrize("status", [301, 400, 401, 404, 413, 422, 424, 500])
async def test_other_answers_are_errors_that_quote_nothing(status):
    response = httpx.Response(status, json={"error": f"cannot read {PAIR.premise}"})
    model, requests = answers("tei", response, headers={"Authorization": "Bearer hidden-key"})
    with pytest.raises(ScoringError, match=rf"remote:models\.test:8080 answered with status {status}") as caught:
        await model.score([PAIR])
    assert caught.value.scorer == "remote:models.test:8080"
    assert len(requests) == 1
    assert_discreet(caught.value)


def assert_discreet(error):
    while error is not None:
        assert "confidential" not in f"{error} {error!r}"
        assert "hidden-key" not in f"{error} {error!r}"
        error = error.__cause__


async def test_too_long_says_what_to_look_at():
    model, _ = answers("tei", httpx.Response(413))
    with pytest.raises(ScoringError, match="too long for the model, or batch_size too large"):
        await model.score([PAIR])


async def test_an_answer_that_is_no_json():
    model, _ = answers("tei", httpx.Response(200, text="<html>confidential</html>"))
    with pytest.raises(ScoringError, match="right address") as caught:
        await model.score([PAIR])
    assert_discreet(caught.value)


@pytest.mark.parametrize(
    "failure",
    [
        httpx.ConnectError("refused"),
        httpx.RemoteProtocolError("closed"),
        httpx.Response(429, headers={"Retry-After": "0"}),
        httpx.Response(503, headers={"Retry-After": "0"}),
    ],
    ids=repr,
)
async def test_one_more_try(failure):
    model, requests = answers("tei", failure, json_answer(GOOD["tei"]))
    assert (await model.score([PAIR]))[0].entailment == 0.75
    assert len(requests) == 2
    model, requests = answers("tei", failure, failure)
    with pytest.raises(ScoringError, match=r"cannot be asked|status") as caught:
        await model.score([PAIR])
    assert len(requests) == 2
    assert_discreet(caught.value)


@pytest.mark.parametrize("pause", ["60", "Wed, 21 Oct 2026 07:28:00 GMT", "-1"])
async def test_a_long_pause_is_not_waited_for(pause):
    model, requests = answers("tei", httpx.Response(429, headers={"Retry-After": pause}))
    with pytest.raises(ScoringError, match="429"):
        await model.score([PAIR])
    assert len(requests) == 1


async def never(request):
    await asyncio.Event().wait()


async def test_a_server_that_does_not_answer():
    with pytest.raises(ScoringError, match=r"did not answer within 0\.01 s"):
        await remote("tei", never, timeout_s=0.01).score([PAIR])


async def test_cancellation_ends_the_requests():
    began, ended = asyncio.Event(), []

    async def answer(request):
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    task = asyncio.create_task(remote("tei", answer, batch_size=1, max_concurrency=1).score(PAIRS))
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == [True]


async def test_the_first_error_ends_the_other_requests():
    ended = []

    async def answer(request):
        if "claim 0" in request.content.decode():
            return httpx.Response(500)
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    with pytest.raises(ScoringError, match="500"):
        await remote("tei", answer, batch_size=5).score(PAIRS)
    assert ended == [True]


async def test_a_client_that_was_closed():
    model = served("tei", lambda premise, hypothesis: 0.5)
    await model._given.aclose()
    with pytest.raises(ScoringError, match="has been closed"):
        await model.score([PAIR])


class Server:
    """A server on this machine that answers every request with the same body."""

    def __init__(self):
        self.connections = 0

    async def __aenter__(self):
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        return self

    async def __aexit__(self, *_):
        self._server.close()
        await self._server.wait_closed()

    async def _serve(self, reader, writer):
        self.connections += 1
        body = json.dumps(GOOD["tei"]).encode()
        try:
            while head := (await reader.readuntil(b"\r\n\r\n")).decode().lower():
                await reader.readexactly(int(head.split("content-length: ")[1].split("\r\n")[0]))
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
                await writer.drain()
        except asyncio.IncompleteReadError:
            pass
        finally:
            writer.close()
            await writer.wait_closed()


async def test_its_own_client_keeps_the_connection_until_it_is_closed():
    async with Server() as server:
        async with RemoteEntailment(server.url) as model:
            for _ in range(3):
                assert (await model.score([PAIR]))[0].entailment == 0.75
            assert server.connections == 1
        await model.aclose()  # once more does no harm
        assert (await model.score([PAIR]))[0].entailment == 0.75
        assert server.connections == 2
        await model.aclose()


def test_one_model_serves_several_event_loops():
    held = []

    async def use(model):
        async with Server() as server:
            model = model or RemoteEntailment(server.url)
            model._url = f"{server.url}/predict"
            score = await model.score([PAIR])
            held.append(len(model._per_loop))
            await model._per_loop[asyncio.get_running_loop()].client.aclose()  # the entry stays
            return model, score

    model, first = asyncio.run(use(None))
    assert asyncio.run(use(model))[1] == first
    assert held == [1, 1]


async def test_nobody_listens():
    async with Server() as server:
        pass
    with pytest.raises(ScoringError, match=r"remote:127\.0\.0\.1:\d+ cannot be asked \(ConnectError\)"):
        await RemoteEntailment(server.url).score([PAIR])


async def test_a_missing_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(MissingExtraError, match=r"guardrail-stream\[remote\]"):
        await RemoteEntailment("http://models.test").score([PAIR])
