"""Which parameter of a generator gets what: named, positional, variable, optional, fixed beforehand."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest

from guardrail.generation import bind
from guardrail.types import GenerationRequest, Passage

PASSAGES = (Passage(id="a", text="Entry is free."), Passage(id="b", text="Dogs may come in."))
TEXTS = [p.text for p in PASSAGES]
REQUEST = GenerationRequest(
    question="What is the fee?",
    passages=PASSAGES,
    context=tuple(TEXTS),
    attempt=2,
    released_text="Hello! ",
    failed_claims=(),
)
Q = REQUEST.question

SEEN: list[Any] = []


def keep(*values: Any) -> str:
    SEEN.append(values)
    return "text"


async def given(generator: Callable[..., Any]) -> tuple[Any, ...]:
    """What a generator was called with."""
    SEEN.clear()
    chunks = [chunk.text async for chunk in bind(generator).chunks(REQUEST)]
    assert chunks == ["text"]
    (seen,) = SEEN
    return seen


def variable_after_question(question: str, *args: Any) -> str:
    return keep(question, args)


def variable_after_both(question: str, context: Any, *args: Any) -> str:
    return keep(question, context, args)


def variable_after_context(context: Any, *args: Any) -> str:
    return keep(context, args)


def variable_after_attempt(attempt: int, *args: Any) -> str:
    return keep(attempt, args)


def variable_of_both_kinds(*args: Any, **kwargs: Any) -> str:
    return keep(args, kwargs)


def question_and_the_rest(question: str, **kwargs: Any) -> str:
    return keep(question, sorted(kwargs))


def unnamed_and_the_rest(a: str, **kwargs: Any) -> str:
    return keep(a, sorted(kwargs))


def positional_only(q: str, docs: Any, /, attempt: int) -> str:
    return keep(q, docs, attempt)


THE_REST = ["attempt", "context", "failed_claims", "passages", "released_text"]
VARIABLE: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (variable_after_question, (Q, (TEXTS,))),
    (variable_after_both, (Q, TEXTS, ())),
    (variable_after_context, (TEXTS, (Q,))),
    (variable_after_attempt, (2, (Q, TEXTS))),
    (variable_of_both_kinds, ((Q, TEXTS), {})),
    (question_and_the_rest, (Q, THE_REST)),
    (unnamed_and_the_rest, (Q, THE_REST)),
    (positional_only, (Q, TEXTS, 2)),
]


@pytest.mark.parametrize(("generator", "expected"), VARIABLE, ids=lambda value: getattr(value, "__name__", ""))
async def test_variable_parameters_get_what_no_other_parameter_has(
    generator: Callable[..., Any], expected: tuple[Any, ...]
):
    assert await given(generator) == expected


async def test_an_optional_alias_keeps_its_default_beside_the_parameter_it_means():
    assert await given(lambda question, context, prompt="SYSTEM": keep(question, prompt)) == (Q, "SYSTEM")
    assert await given(lambda query, docs, input=None: keep(query, docs, input)) == (Q, TEXTS, None)
    assert await given(lambda question, context=None, documents="none": keep(context, documents)) == (TEXTS, "none")
    assert await given(lambda documents="none", context=None: keep(context, documents)) == (TEXTS, "none")
    assert await given(lambda prompt="SYSTEM", *, question: keep(question, prompt)) == (Q, "SYSTEM")


async def test_an_optional_alias_is_filled_if_nothing_else_takes_its_value():
    assert await given(lambda prompt="": keep(prompt)) == (Q,)
    assert await given(lambda question, documents=None: keep(question, documents)) == (Q, TEXTS)
    assert await given(lambda question="", context=(): keep(question, context)) == (Q, TEXTS)


class WithDefaults:
    def __call__(self, question: str, documents: Any = None, context: Any = None) -> str:
        return keep(question, documents, context)


async def test_an_object_with_two_names_for_the_context():
    assert await given(WithDefaults()) == (Q, None, TEXTS)


def two_names(question: str, prompt: str) -> str:
    return keep(question, prompt)


def with_tenant(question: str, tenant: str, context: Any) -> str:
    return keep(question, tenant, context)


async def test_what_a_partial_fixes_is_left_alone():
    assert await given(functools.partial(two_names, prompt="SYSTEM")) == (Q, "SYSTEM")
    assert await given(functools.partial(with_tenant, tenant="a")) == (Q, "a", TEXTS)
    assert await given(functools.partial(lambda tenant, question: keep(tenant, question), "a")) == ("a", Q)
    assert await given(functools.partial(functools.partial(with_tenant, tenant="a"), context="c")) == (Q, "a", "c")
    assert await given(functools.partial(question_and_the_rest, question="fixed")) == ("fixed", THE_REST)


async def test_other_optional_parameters_are_left_alone():
    assert await given(lambda question, temperature=0.5, *, top=3: keep(question, temperature, top)) == (Q, 0.5, 3)


async def test_the_context_is_a_list_of_its_own():
    def changes(context: list[Any]) -> str:
        context.clear()
        return keep()

    assert await given(changes) == ()
    assert await given(lambda context: keep(context)) == (TEXTS,)


@pytest.mark.parametrize(
    ("generator", "continues"),
    [
        (lambda question: "", False),
        (lambda question, released_text: "", True),
        (lambda question, released_text="": "", True),
        (lambda **kwargs: "", True),
        (lambda *args: "", False),
        (functools.partial(lambda question, released_text: "", released_text=""), False),
    ],
)
def test_taking_the_released_text_is_the_promise_to_continue(generator: Callable[..., Any], continues: bool):
    assert bind(generator).can_continue is continues


def test_binding_twice_changes_nothing():
    bound = bind(lambda question: "")
    assert bind(bound) is bound
