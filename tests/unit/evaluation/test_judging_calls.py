"""Any callable or chat model becomes one async call, with a limit, a deadline, and retries where they help."""

from __future__ import annotations

import asyncio
import functools
import threading

import httpx
import pytest
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import AIMessage

from guardrail.errors import ConfigurationError
from guardrail.evaluation.judging.calls import CallFault, ModelCalls
from guardrail.evaluation.judging.prompts import judge_prompt
from guardrail.protocols import Pair
from guardrail.testing import ManualClock

PROMPT = judge_prompt(Pair("Entry is free.", "Entry is free."))
REQUEST = httpx.Request("POST", "http://localhost/v1")


def status_error(status, **headers):
    answer = httpx.Response(status, request=REQUEST, headers=headers)
    return httpx.HTTPStatusError("no", request=REQUEST, response=answer)


class Script:
    """An async model that returns or raises one thing after the other."""

    def __init__(self, *said):
        self.said = said
        self.prompts = []

    async def __call__(self, prompt):
        self.prompts.append(prompt)
        now = self.said[min(len(self.prompts), len(self.said)) - 1]
        if isinstance(now, BaseException):
            raise now
        return now


class Time:
    """A clock that moves by what is slept."""

    def __init__(self):
        self.clock = ManualClock()
        self.pauses = []

    async def sleep(self, seconds):
        self.pauses.append(seconds)
        self.clock.advance(seconds)


def calls(model, **options):
    time = Time()
    made = ModelCalls(model, **{"sleep": time.sleep, "clock": time.clock, **options})
    return made, time


async def fault_of(model, **options):
    made, time = calls(model, **options)
    with pytest.raises(CallFault) as caught:
        await made.ask(PROMPT)
    return caught.value, made, time


class Instance:
    def __call__(self, prompt):
        return "YES"


class AsyncInstance:
    async def __call__(self, prompt):
        return "YES"


async def says_yes(prompt):
    return "YES"


async def says_what(what, prompt):
    return what


@pytest.mark.parametrize(
    "model",
    [
        lambda prompt: "YES",
        lambda prompt: says_yes(prompt),
        says_yes,
        functools.partial(says_what, "YES"),
        Instance(),
        AsyncInstance(),
        Instance().__call__,
        FakeListChatModel(responses=["YES"]),
        lambda prompt: AIMessage("YES"),
    ],
)
async def test_whatever_can_be_called(model):
    made, _ = calls(model)
    reply = await made.ask(PROMPT)
    assert (reply.text, reply.complete, reply.tokens) == ("YES", True, None)
    assert made.usage.calls == made.usage.unmetered == 1


async def test_synchronous_code_runs_in_a_thread_and_sees_the_whole_prompt():
    seen = []
    made, _ = calls(lambda prompt: seen.append((threading.current_thread(), prompt)) or "NO")
    await made.ask(PROMPT)
    ((thread, prompt),) = seen
    assert thread is not threading.main_thread()
    assert thread.daemon
    assert prompt == f"{PROMPT.system}\n\n{PROMPT.user}"


class Chat:
    """What a chat model looks like from outside."""

    model_name = "chat-1"

    def __init__(self, message):
        self.message = message
        self.asked = []

    async def ainvoke(self, messages):
        self.asked.append(messages)
        return self.message


async def test_a_chat_model_gets_messages_and_reports_usage():
    usage = {"input_tokens": 900, "output_tokens": 2, "total_tokens": 902}
    model = Chat(AIMessage("YES", usage_metadata=usage))
    made, _ = calls(model, price=(2.0, 8.0))
    reply = await made.ask(PROMPT)
    assert model.asked == [[("system", PROMPT.system), ("human", PROMPT.user)]]
    assert (reply.text, reply.tokens) == ("YES", (900, 2))
    used = made.usage
    assert (used.calls, used.prompt_tokens, used.completion_tokens, used.unmetered) == (1, 900, 2, 0)
    assert used.cost == pytest.approx(0.001816)
    assert made.name == "chat-1"


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ([{"type": "text", "text": "YES"}], "YES"),
        (["Y", "ES"], "YES"),
        ([{"type": "thinking", "thinking": "YES"}, {"type": "text", "text": "NO"}], "NO"),
        ([{"type": "reasoning", "text": "YES"}, "NO"], "NO"),
        ([{"type": "tool_use", "name": "f", "input": {}}], ""),
        ([{"type": "text", "text": None}], ""),
        ([], ""),
    ],
)
async def test_content_may_be_a_list_of_blocks(content, text):
    message = AIMessage("x")
    message.content = content
    made, _ = calls(Chat(message))
    assert (await made.ask(PROMPT)).text == text


@pytest.mark.parametrize(
    "metadata", [{"finish_reason": "length"}, {"stop_reason": "max_tokens"}, {"finish_reason": "MAX_TOKENS"}]
)
async def test_a_reply_that_was_cut_off_is_not_complete(metadata):
    made, _ = calls(Chat(AIMessage("YES", response_metadata=metadata)))
    assert not (await made.ask(PROMPT)).complete


@pytest.mark.parametrize(
    "usage", [None, "many", {}, {"input_tokens": 1}, {"input_tokens": -1, "output_tokens": 1}, {"input_tokens": True}]
)
async def test_usage_that_cannot_be_read_counts_as_not_metered(usage):
    message = type("Message", (), {"content": "NO", "usage_metadata": usage})()
    made, _ = calls(Chat(message), price=(1, 1))
    assert (await made.ask(PROMPT)).tokens is None
    assert (made.usage.unmetered, made.usage.cost) == (1, 0.0)


def generates(prompt):
    yield "YES"


async def generates_async(prompt):
    yield "YES"


@pytest.mark.parametrize(
    "model",
    [
        lambda prompt: None,
        lambda prompt: b"YES",
        lambda prompt: ["YES"],
        lambda prompt: {"verdict": "YES"},
        lambda prompt: True,
        lambda prompt: lambda: "YES",
        generates,
        generates_async,
        functools.partial(says_what, None),
        functools.partial(says_what, says_yes),
        Chat(None),
        Chat(b"YES"),
        Chat(type("Message", (), {"content": None})()),
        Chat(type("Message", (), {"content": b"YES"})()),
    ],
)
async def test_anything_but_a_text_is_a_failure_and_is_not_tried_again(model):
    fault, made, time = await fault_of(model)
    assert fault.error == "failed"
    assert (made.usage.calls, time.pauses) == (1, [])


async def test_a_coroutine_that_nobody_awaits_is_closed():
    async def inner(prompt):
        return "YES"

    async def outer(prompt):
        return inner(prompt)

    fault, _, _ = await fault_of(outer)  # an unawaited coroutine would be a warning, and so an error
    assert fault.error == "failed"


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ConnectionResetError(), "transport"),
        (TimeoutError(), "timeout"),
        (httpx.ConnectError("x"), "transport"),
        (status_error(429), "rate_limited"),
        (status_error(503), "transport"),
    ],
    ids=repr,
)
async def test_errors_of_the_transport_are_tried_again(error, kind):
    model = Script(error, error, "NO")
    made, time = calls(model, retries=2)
    assert (await made.ask(PROMPT)).text == "NO"
    assert len(model.prompts) == made.usage.calls == 3
    assert 0.25 <= time.pauses[0] <= 0.5
    assert 0.5 <= time.pauses[1] <= 1.0
    fault, made, time = await fault_of(Script(error), retries=1)
    assert (fault.error, made.usage.calls, len(time.pauses)) == (kind, 2, 1)


@pytest.mark.parametrize(
    "error",
    [ValueError("x"), KeyError(), status_error(400), status_error(401), status_error(403), FileNotFoundError()],
    ids=repr,
)
async def test_other_errors_are_not_tried_again(error):
    fault, made, time = await fault_of(Script(error, "YES"))
    assert (fault.error, made.usage.calls, time.pauses) == ("failed", 1, [])
    assert fault.__cause__ is error
    assert "x" not in str(fault).split()


async def test_errors_in_a_thread_are_told_apart_too():
    def model(prompt):
        raise ConnectionResetError

    fault, made, _ = await fault_of(model, retries=1)
    assert (fault.error, made.usage.calls) == ("transport", 2)

    def leaves(prompt):
        raise SystemExit

    fault, _, _ = await fault_of(leaves)
    assert fault.error == "failed"


async def test_retry_after_is_heeded():
    made, time = calls(Script(status_error(429, **{"Retry-After": "7"}), "NO"))
    assert (await made.ask(PROMPT)).text == "NO"
    assert time.pauses == [7.0]


async def test_a_wait_beyond_the_deadline_is_not_begun():
    model = Script(status_error(429, **{"Retry-After": "31"}), "YES")
    fault, made, time = await fault_of(model, timeout_s=30)
    assert (fault.error, made.usage.calls, time.pauses) == ("rate_limited", 1, [])


async def test_no_retries_means_one_call():
    fault, made, _ = await fault_of(Script(ConnectionResetError(), "YES"), retries=0)
    assert (fault.error, made.usage.calls) == ("transport", 1)


async def test_a_model_that_never_answers_is_given_up():
    closed = []

    async def model(prompt):
        try:
            await asyncio.Event().wait()
        finally:
            closed.append(True)

    fault, _, _ = await fault_of(model, timeout_s=0.01)
    assert (fault.error, str(fault), closed) == ("timeout", "model did not answer within 0.01 s", [True])


async def test_a_pause_that_does_not_end_is_cut_by_the_deadline():
    async def sleeps(seconds):
        await asyncio.Event().wait()

    model = Script(status_error(429, **{"Retry-After": "0"}), "YES")
    fault, made, _ = await fault_of(model, timeout_s=0.02, sleep=sleeps)
    assert (fault.error, made.usage.calls) == ("timeout", 1)


async def test_a_stuck_thread_is_left_behind():
    release = threading.Event()
    fault, _, _ = await fault_of(lambda prompt: release.wait(60), timeout_s=0.02)
    release.set()
    assert fault.error == "timeout"


async def test_a_model_that_cancels_itself_has_failed():
    fault, made, _ = await fault_of(Script(asyncio.CancelledError(), "YES"))
    assert (fault.error, made.usage.calls) == ("failed", 1)


async def test_cancellation_reaches_the_model():
    begun, ended = asyncio.Event(), []

    async def model(prompt):
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended.append(True)
            raise

    made, _ = calls(model)
    task = asyncio.create_task(made.ask(PROMPT))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == [True]


async def test_no_more_calls_than_allowed_run_at_once():
    now, most = 0, 0

    async def model(prompt):
        nonlocal now, most
        now += 1
        most = max(most, now)
        for _ in range(3):
            await asyncio.sleep(0)
        now -= 1
        return "NO"

    made, _ = calls(model, max_concurrency=3)
    await asyncio.gather(*(made.ask(PROMPT) for _ in range(12)))
    assert (most, made.usage.calls) == (3, 12)


def test_a_limit_of_one_loop_is_not_used_in_the_next():
    async def model(prompt):
        await asyncio.sleep(0)
        return "NO"

    made = ModelCalls(model, max_concurrency=1)

    async def crowd():
        return [reply.text for reply in await asyncio.gather(*(made.ask(PROMPT) for _ in range(4)))]

    assert asyncio.run(crowd()) == asyncio.run(crowd()) == ["NO"] * 4


@pytest.mark.parametrize(
    ("model", "options", "said"),
    [
        (None, {}, "NoneType is no judge model"),
        ("gpt", {}, "str is no judge model"),
        (Chat, {}, "got the class Chat"),
        (says_yes, {"max_concurrency": 0}, "max_concurrency"),
        (says_yes, {"max_concurrency": True}, "max_concurrency"),
        (says_yes, {"retries": -1}, "retries"),
        (says_yes, {"timeout_s": 0}, "timeout_s"),
        (says_yes, {"timeout_s": float("nan")}, "timeout_s"),
        (says_yes, {"timeout_s": "3"}, "timeout_s"),
        (says_yes, {"price": (1.0,)}, "price"),
        (says_yes, {"price": (1.0, -1.0)}, "price"),
        (says_yes, {"price": 3}, "price"),
    ],
)
def test_wrong_arguments_are_named(model, options, said):
    with pytest.raises(ConfigurationError, match=said):
        ModelCalls(model, **options)
