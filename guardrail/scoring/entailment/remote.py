"""Entailment by a model behind an HTTP endpoint (extra ``remote``)."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self
from urllib.parse import urlsplit, urlunsplit

from guardrail.errors import ConfigurationError, MissingExtraError, ScoringError
from guardrail.protocols import Pair
from guardrail.scoring.entailment.identity import identity
from guardrail.scoring.entailment.remote_apis import RemoteApi, TeiApi, TritonApi
from guardrail.types import EntailmentScore

if TYPE_CHECKING:
    import ssl

    import httpx

Api = Literal["tei", "triton"]
"""Text Embeddings Inference, or the Open Inference Protocol (KServe v2)."""

_BUSY = (429, 503)
_PAUSE_S = 0.25
_LONGEST_PAUSE_S = 2.0
_HINTS = {
    401: "check the headers",
    403: "check the headers",
    404: "check the path, and that the server has such a model",
    413: "a text is too long for the model, or batch_size too large for the server",
    422: "the server cannot read the request: check api",
    424: "the server's model failed, or is no sequence classifier",
}


class RemoteEntailment:
    """Judges pairs with a sequence classifier that another process serves.

    Args:
        url: Address of the server (``api="tei"``; ``/predict`` is added), or of a model on it (``api="triton"``:
            ``http://host:8000/v2/models/nli``; ``/infer`` is added).
        api: ``"tei"`` for Text Embeddings Inference, ``"triton"`` for the Open Inference Protocol of Triton, KServe and
            others; what is sent and expected is described in :mod:`guardrail.scoring.entailment.remote_apis`.
        labels: Index to label name, ``{0: "contradiction", 1: "entailment", 2: "neutral"}``. Needed for ``"triton"``,
            and for models whose labels are called ``LABEL_0`` and so on.
        timeout_s: Most seconds for one request, connecting included.
        max_concurrency: Most requests at a time, per event loop.
        batch_size: Most pairs per request; a server refuses more than it is configured for.
        headers: Sent with every request, such as ``{"Authorization": "Bearer …"}``.
        client: An ``httpx.AsyncClient`` to use; closing it stays with the caller. ``None`` opens one per event loop,
            which :meth:`aclose` closes.

    Texts are sent whole and never truncated: one that is too long for the model is an error. A request is tried a
    second time if the connection fails, or if the server is busy and asks for a pause of at most two seconds. Messages
    of errors name the host, and never a text or a header.

    Raises:
        ConfigurationError: If the address or a number cannot be used.

    Example::

        model = RemoteEntailment("http://localhost:8080")
        await model.score([Pair("The door opens at nine.", "The door opens at ten.")])
    """

    def __init__(
        self,
        url: str,
        *,
        api: Api = "tei",
        labels: Mapping[int, str] | None = None,
        timeout_s: float = 10.0,
        max_concurrency: int = 8,
        batch_size: int = 32,
        headers: Mapping[str, str] | None = None,
        client: httpx.AsyncClient | None = None,
    ) -> None:
        if max_concurrency < 1 or batch_size < 1:
            raise ConfigurationError(
                f"max_concurrency and batch_size must be at least 1, got {max_concurrency!r} and {batch_size!r}"
            )
        if not 0 < timeout_s < math.inf:
            raise ConfigurationError(f"timeout_s must be a number of seconds above 0, got {timeout_s!r}")
        self._host, parts = _address(url)
        self._api = self._choose(api, labels)
        path = self._api.path(parts)
        self._url = urlunsplit(parts._replace(path=path))
        self._fingerprint = identity(self._host, path, parts.query, api, repr(sorted((labels or {}).items())))
        self._timeout_s = timeout_s
        self._max_concurrency = max_concurrency
        self._batch_size = batch_size
        self._headers = {"Content-Type": "application/json", **_checked(headers or {})}
        self._given = client
        self._per_loop: dict[asyncio.AbstractEventLoop, _Connection] = {}

    @property
    def model_id(self) -> str:
        """Host of the server, after ``remote:``."""
        return f"remote:{self._host}"

    def fingerprint(self) -> str:
        """A hash of address, API and labels. Which weights answer there is known to the operator of the server only."""
        return self._fingerprint

    async def score(self, pairs: Sequence[Pair]) -> list[EntailmentScore]:
        """Score pairs, in order; see :class:`~guardrail.protocols.Entailment`.

        Cancellation ends the requests that are on their way.
        """
        asked = [Pair(premise, hypothesis) for premise, hypothesis in pairs]
        sent = [pair for pair in dict.fromkeys(asked) if pair.premise.strip() and pair.hypothesis.strip()]
        sent.sort(key=lambda pair: len(pair.premise) + len(pair.hypothesis))  # similar lengths together: less padding
        scores = dict(zip(sent, await self._batches(sent), strict=True)) if sent else {}
        nothing = EntailmentScore(entailment=0.0)  # a blank premise entails nothing, a blank hypothesis says nothing
        return [scores.get(pair, nothing) for pair in asked]

    async def aclose(self) -> None:
        """Close the connections of the running event loop; the next :meth:`score` opens new ones."""
        connection = self._per_loop.pop(asyncio.get_running_loop(), None)
        if connection is not None and self._given is None:
            await connection.client.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    async def _batches(self, pairs: Sequence[Pair]) -> list[EntailmentScore]:
        batches = [pairs[at : at + self._batch_size] for at in range(0, len(pairs), self._batch_size)]
        tasks = [asyncio.ensure_future(self._batch(batch)) for batch in batches]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
            for task in done:
                task.result()
            return [score for task in tasks for score in task.result()]
        finally:  # all at once, before a place that becomes free begins another request
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _batch(self, pairs: Sequence[Pair]) -> list[EntailmentScore]:
        connection = self._connection()
        if connection.client.is_closed:
            raise self._error("cannot be asked: the client that was given has been closed")
        async with connection.places:
            response = await self._post(connection.client, json.dumps(self._api.body(pairs)).encode("ascii"))
        try:
            answer = response.json()
        except ValueError as error:
            raise self._error("did not answer with JSON: is it the right address?") from error
        return self._api.scores(answer, len(pairs))

    async def _post(self, client: httpx.AsyncClient, body: bytes) -> httpx.Response:
        import httpx

        for last in (False, True):
            try:
                async with asyncio.timeout(self._timeout_s):
                    response = await client.post(self._url, content=body, headers=self._headers, timeout=None)
            except TimeoutError as error:
                raise self._error(f"did not answer within {self._timeout_s:g} s") from error
            except httpx.RequestError as error:
                if last:
                    raise self._error(f"cannot be asked ({type(error).__name__})") from error
                continue
            pause_s = _pause_s(response)
            if response.status_code not in _BUSY or last or pause_s > _LONGEST_PAUSE_S:
                break
            await asyncio.sleep(pause_s)
        if response.is_success:
            return response
        hint = _HINTS.get(response.status_code)
        raise self._error(f"answered with status {response.status_code}" + (f": {hint}" if hint else ""))

    def _connection(self) -> _Connection:
        loop = asyncio.get_running_loop()
        if loop not in self._per_loop:
            for ended in [other for other in tuple(self._per_loop) if other.is_closed()]:
                self._per_loop.pop(ended, None)
            self._per_loop[loop] = _Connection(self._given or _open_client(), self._max_concurrency)
        return self._per_loop[loop]

    def _choose(self, api: str, labels: Mapping[int, str] | None) -> RemoteApi:
        if api == "tei":
            return TeiApi(labels, self.model_id)
        if api == "triton":
            return TritonApi(labels, self.model_id)
        raise ConfigurationError(f"api must be 'tei' or 'triton', got {api!r}")

    def _error(self, what: str) -> ScoringError:
        return ScoringError(f"{self.model_id} {what}", scorer=self.model_id)


class _Connection:
    """A client and the places in it, both bound to one event loop."""

    def __init__(self, client: httpx.AsyncClient, places: int) -> None:
        self.client = client
        self.places = asyncio.Semaphore(places)


def _open_client() -> httpx.AsyncClient:
    try:
        import httpx
    except ImportError as error:
        raise MissingExtraError("RemoteEntailment", "remote") from error
    return httpx.AsyncClient(verify=_tls())


@lru_cache(maxsize=1)
def _tls() -> ssl.SSLContext:
    """Reading the certificates takes 20 ms, too long for every new event loop."""
    import httpx

    return httpx.create_ssl_context()


def _checked(headers: Mapping[str, str]) -> Mapping[str, str]:
    for name, value in headers.items():
        if not isinstance(value, str) or not value.isascii() or not value.isprintable() or value != value.strip():
            # Said here without the value: the error of the HTTP library would quote it.
            raise ConfigurationError(f"the header {name!r} must be printable ASCII text without a space at either end")
    return headers


def _address(url: str) -> tuple[str, Any]:
    """The host (and port) for messages, and the parts of the address; the address itself may hold a password."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except (ValueError, AttributeError, TypeError):
        host = None
    if not host or parts.scheme not in ("http", "https"):
        raise ConfigurationError(
            "url must be an http:// or https:// address with a host, such as http://localhost:8080"
        )
    name = f"[{host}]" if ":" in host else host
    return (f"{name}:{port}" if port else name), parts


def _pause_s(response: httpx.Response) -> float:
    """Seconds to wait before another try; a date instead of seconds counts as too long."""
    asked = response.headers.get("Retry-After")
    if asked is None:
        return _PAUSE_S
    return float(asked) if asked.isdecimal() else math.inf
