"""A generative model as a judge of claims."""

from __future__ import annotations

import asyncio
import functools
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from dataclasses import replace
from typing import Any, Generic, Literal, TypeVar

from guardrail.errors import ConfigurationError, InputError
from guardrail.evaluation.judging.calls import CallFault, ModelCalls, PerLoop
from guardrail.evaluation.judging.leaving import leave
from guardrail.evaluation.judging.parsing import parse_verdict
from guardrail.evaluation.judging.prompts import JUDGE_VERSION, control_pair, judge_prompt, speaks_to_judge
from guardrail.evaluation.judging.usage import Usage
from guardrail.evaluation.judging.verdicts import Judge, Judgement, JudgeVerdict
from guardrail.protocols import Pair
from guardrail.scoring.entailment.identity import identity

__all__ = ["Control", "Judge", "JudgeVerdict", "Judgement", "LLMJudge"]

T = TypeVar("T")

Control = Literal["suspect", "always", "never"]
"""When a YES is confirmed by a control question."""

_INLINE_CHARS = 8_000
_SUSPECTS = 1_024
_CLOSE_GRACE_S = 1.0


class LLMJudge:
    """Asks a generative model per pair whether the premise supports the hypothesis.

    Nothing but the words YES, NO and PARTIAL counts as a verdict, see
    :func:`~guardrail.evaluation.judging.parsing.parse_verdict`; everything else is a judgement with an error. The texts
    travel as data that cannot change the question or the form of the reply, see
    :func:`~guardrail.evaluation.judging.prompts.judge_prompt`. A weak model may obey what it finds in them all the
    same. So where a text seems to speak to the judge, a YES has to be confirmed: if the evidence does, the model must
    not say YES to the claim with something added that no evidence can support; if the claim does, not to evidence that
    cannot support it. That finds commands in a few languages and models that obey them. It is no proof: a command that
    is not recognised, or that makes an exception for the control question, is not found.

    Pairs with a blank text are NO without being asked: nothing supports nothing. The same pair, in one call or in
    several at the same time, is asked once. One judge serves any number of event loops.

    Args:
        model: A callable that takes the prompt as one text and returns a text, sync or async; or a LangChain chat model
            (anything with ``ainvoke`` that takes a list of ``(role, text)`` messages). Synchronous code runs in a
            thread per call.
        max_concurrency: Most calls at a time, per event loop.
        timeout_s: Most seconds for one pair, with all tries and the pauses between them. Waiting for a place does not
            count.
        retries: Most further tries after errors of the connection or of a busy server (status 408, 409, 429, 500, 502,
            503, 504, 529), and after nothing else. ``Retry-After`` is heeded, or the pair given up at once if that
            would be after ``timeout_s``.
        price: Price of a million tokens sent and of a million tokens received, for :attr:`usage`.
        cache_size: How many verdicts to keep; the one that was used longest ago goes first. Errors are never kept.
        name: Name in results; ``None`` takes the model's.
        control: ``"suspect"`` confirms a YES if one of the texts seems to speak to the judge; ``"always"`` also if none
            does, with one further call per premise that does not; ``"never"`` leaves it out.
        sleep: Waits between tries; for tests.
        clock: Monotonic seconds; for tests.

    Raises:
        ConfigurationError: If the model cannot be called, or an argument is out of range.

    Example:
        >>> judge = LLMJudge(lambda prompt: "yes, but…" if "at ten" in prompt else "NO", name="example")
        >>> asked = [Pair("Entry is free.", "Entry is 5 euro."), Pair("Open from ten.", "It opens at ten.")]
        >>> for judgement in asyncio.run(judge.judge(asked)):
        ...     print(judgement.verdict or judgement.error)
        no
        unreadable
        >>> judge.usage.calls, dict(judge.usage.errors)
        (2, {'unreadable': 1})
    """

    def __init__(
        self,
        model: Any,
        *,
        max_concurrency: int = 8,
        timeout_s: float = 30.0,
        retries: int = 2,
        price: tuple[float, float] | None = None,
        cache_size: int = 10_000,
        name: str | None = None,
        control: Control = "suspect",
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if control not in ("suspect", "always", "never"):
            raise ConfigurationError(f"control must be 'suspect', 'always' or 'never', got {control!r}")
        self._calls = ModelCalls(
            model,
            max_concurrency=max_concurrency,
            timeout_s=timeout_s,
            retries=retries,
            price=price,
            sleep=sleep,
            clock=clock,
        )
        self._judge_id = name or f"judge:{self._calls.name}"
        self._control = control
        self._code = secrets.token_hex(8)
        self._known: _Known[JudgeVerdict] = _Known(cache_size)
        self._suspect: _Known[bool] = _Known(_SUSPECTS)
        self._running: PerLoop[_Running] = PerLoop(_Running)

    @property
    def judge_id(self) -> str:
        """The name that was given, or the model's after ``judge:``."""
        return self._judge_id

    @property
    def usage(self) -> Usage:
        """What was asked so far and what it cost, control questions included."""
        return self._calls.usage

    async def judge(self, pairs: Sequence[Pair]) -> list[Judgement]:
        """Judge pairs, in order; see :class:`Judge`.

        Args:
            pairs: Any number of pairs.

        Returns:
            One judgement per pair.

        Raises:
            InputError: If something else than pairs of texts is passed. What goes wrong with the model is not raised.

        Cancellation cancels the calls that are under way, unless another caller waits for the same pair.
        """
        asked = [_checked(pair) for pair in pairs]
        judged: dict[Pair, Judgement] = {}
        wanted = [pair for pair in dict.fromkeys(asked) if not self._settled(pair, judged)]
        judged |= await self._through({pair: functools.partial(self._decide, pair) for pair in wanted})
        seen: set[Pair] = set()
        results = []
        for pair in asked:
            judgement = judged[pair]
            if pair in seen and judgement.verdict is not None and not judgement.cached:
                judgement = replace(judgement, cached=True)
            if judgement.cached:
                self._calls.meter.spared()
            seen.add(pair)
            results.append(judgement)
        return results

    def _settled(self, pair: Pair, judged: dict[Pair, Judgement]) -> bool:
        """Whether a pair needs no model; its judgement is added to ``judged``."""
        if not pair.premise.strip() or not pair.hypothesis.strip():
            judged[pair] = Judgement(verdict=JudgeVerdict.NO)
        else:
            verdict = self._known.find(self._key(pair))
            if verdict is not None:
                judged[pair] = Judgement(verdict=verdict, cached=True)
        return pair in judged

    async def _through(
        self, wanted: dict[Pair, Callable[[], Coroutine[Any, Any, Judgement]]], *, control: bool = False
    ) -> dict[Pair, Judgement]:
        """Ask for pairs, or wait for those who are asking for them already."""
        if not wanted:
            return {}
        running = self._running.here()
        joined = {pair: running.join(self._key(pair, control=control), work) for pair, work in wanted.items()}
        try:
            await asyncio.wait([shared.task for shared, _ in joined.values()])
            return {pair: _result(shared.task, own=own) for pair, (shared, own) in joined.items()}
        finally:
            await running.leave(shared for shared, _ in joined.values())

    async def _decide(self, pair: Pair) -> Judgement:
        judgement = await self._ask(pair)
        if judgement.supported:
            judgement = await self._confirmed(pair, judgement)
        if judgement.verdict is not None:
            self._known.keep(self._key(pair), judgement.verdict)
        return judgement

    async def _ask(self, pair: Pair) -> Judgement:
        try:
            reply = await self._calls.ask(judge_prompt(pair))
        except CallFault as fault:
            return self._failed(fault.error)
        verdict = parse_verdict(reply.text) if reply.complete else None
        if verdict is JudgeVerdict.YES and any(parse_verdict(text) is verdict for text in pair):
            verdict = None  # the whole claim is "Yes.": a model that repeats it would have said the same
        return self._failed("unreadable") if verdict is None else Judgement(verdict=verdict)

    async def _confirmed(self, pair: Pair, judgement: Judgement) -> Judgement:
        """A YES that the texts may have commanded, after questions whose honest answer is not YES."""
        if self._control == "never":
            return judgement
        controls = []
        if await self._is_suspect(pair.premise):
            controls.append(control_pair(pair, self._code, change="extend_claim"))
        elif self._control == "always":
            controls.append(control_pair(pair, self._code, change="replace_claim"))
        if await self._is_suspect(pair.hypothesis):
            controls.append(control_pair(pair, self._code, change="replace_evidence"))
        answers = await self._through(
            {asked: functools.partial(self._ask_control, asked) for asked in controls}, control=True
        )
        for answer in answers.values():
            if answer.supported:
                return self._failed("misled")
            if answer.error:
                return Judgement(error=answer.error)
        return judgement

    async def _ask_control(self, pair: Pair) -> Judgement:
        key = self._key(pair, control=True)
        known = self._known.find(key)
        if known is not None:
            self._calls.meter.spared()
            return Judgement(verdict=known, cached=True)
        judgement = await self._ask(pair)
        if judgement.verdict is not None:
            self._known.keep(key, judgement.verdict)
        return judgement

    async def _is_suspect(self, text: str) -> bool:
        key = identity(text)
        found = self._suspect.find(key)
        if found is None:
            found = (
                await asyncio.to_thread(speaks_to_judge, text) if len(text) > _INLINE_CHARS else speaks_to_judge(text)
            )
            self._suspect.keep(key, found)
        return found

    def _failed(self, error: str) -> Judgement:
        self._calls.meter.failed(error)
        return Judgement(error=error)

    def _key(self, pair: Pair, *, control: bool = False) -> str:
        return identity(self._judge_id, JUDGE_VERSION, "control" if control else "", *pair)


class _Shared:
    """A question that is being asked, and how many wait for the answer."""

    def __init__(self, key: str, task: asyncio.Task[Judgement]) -> None:
        self.key = key
        self.task = task
        self.waiting = 0


class _Running:
    """The questions that are being asked in one event loop; each ends when it is answered or nobody waits any more."""

    def __init__(self) -> None:
        self._shared: dict[str, _Shared] = {}

    def join(self, key: str, work: Callable[[], Coroutine[Any, Any, Judgement]]) -> tuple[_Shared, bool]:
        """The question of that key, and whether this caller is the one that began it."""
        shared = self._shared.get(key)
        own = shared is None or shared.task.done()
        if shared is None or own:
            shared = self._shared[key] = _Shared(key, asyncio.get_running_loop().create_task(work()))
            shared.task.add_done_callback(functools.partial(self._ended, shared))
        shared.waiting += 1
        return shared, own

    async def leave(self, questions: Iterable[_Shared]) -> None:
        """Wait no more. A question that nobody waits for is cancelled, and is given a moment to end."""
        left = []
        for shared in questions:
            shared.waiting -= 1
            if not shared.waiting and not shared.task.done():
                self._forget(shared)  # whoever asks the same now must not join a question that is about to end
                left.append(shared.task)
        await leave(left, _CLOSE_GRACE_S)

    def _ended(self, shared: _Shared, task: asyncio.Task[Judgement]) -> None:
        self._forget(shared)
        if not task.cancelled():
            task.exception()  # somebody has looked: nobody may be waiting any more

    def _forget(self, shared: _Shared) -> None:
        if self._shared.get(shared.key) is shared:
            del self._shared[shared.key]


class _Known(Generic[T]):
    """What was found out last, by digest: no text stays in memory. Any number of threads may use it."""

    def __init__(self, size: int) -> None:
        if isinstance(size, bool) or not isinstance(size, int) or size < 0:
            raise ConfigurationError(f"cache_size must be an integer of at least 0, got {size!r}")
        self._size = size
        self._lock = threading.Lock()
        self._values: OrderedDict[str, T] = OrderedDict()

    def find(self, key: str) -> T | None:
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
            return self._values.get(key)

    def keep(self, key: str, value: T) -> None:
        with self._lock:
            self._values[key] = value
            self._values.move_to_end(key)
            while len(self._values) > self._size:
                self._values.popitem(last=False)


def _result(task: asyncio.Task[Judgement], *, own: bool) -> Judgement:
    if task.cancelled() or task.exception() is not None:
        return Judgement(error="failed")  # ended by somebody who is none of those that wait for it
    judgement = task.result()
    return judgement if own or judgement.verdict is None else replace(judgement, cached=True)


def _checked(pair: Any) -> Pair:
    try:
        premise, hypothesis = pair
    except (TypeError, ValueError):
        premise = hypothesis = None
    if not isinstance(premise, str) or not isinstance(hypothesis, str):
        raise InputError("a judge takes pairs of texts: Pair(premise, hypothesis)")
    return Pair(premise, hypothesis)
