"""What callers hand in as context: ids, missing texts, scores, excerpts in the caller's own type."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

from guardrail.context import as_passages, excerpt, handed_back
from guardrail.errors import InputError
from guardrail.types import ContextState, Passage


def only(item: Any) -> Passage:
    (passage,), state = as_passages([item])
    assert state is ContextState.GIVEN
    return passage


# --- ids ------------------------------------------------------------------------------------------------------


def test_passages_without_an_id_are_numbered_by_their_place():
    passages, _ = as_passages(["One.", "", None, "Two.", {"text": "Three.", "id": None}, {"text": "Four.", "id": ""}])
    assert [p.id for p in passages] == ["1", "4", "5", "6"]


def test_ids_become_texts():
    assert [only({"text": "One.", "id": given}).id for given in (7, 0, "a")] == ["7", "0", "a"]


@pytest.mark.parametrize(
    "ids", [["a"] * 4, ["a", "a~2", "a"], ["a~2", "a", "a", "a"], ["2", None], ["a", "a", "a~2", "a~2~2", "a~2"]]
)
def test_ids_are_unique_and_the_first_of_each_is_kept(ids: list[Any]):
    passages, _ = as_passages([{"text": f"Text {n}.", "id": given} for n, given in enumerate(ids)])
    found = [p.id for p in passages]
    assert len(set(found)) == len(ids)
    assert [p.text for p in passages] == [f"Text {n}." for n in range(len(ids))]
    assert found[0] == ids[0]
    for given, own in zip(ids, found, strict=True):
        assert own.startswith(given or "2")


def test_the_time_for_equal_ids_grows_linearly():
    def seconds(count: int) -> float:
        chunks = [{"id": "doc", "text": f"chunk {i}"} for i in range(count)]
        best = float("inf")
        for _ in range(3):
            began = time.thread_time()
            passages, _ = as_passages(chunks)
            best = min(best, time.thread_time() - began)
            assert len({p.id for p in passages}) == count
        return best

    seconds(200)
    assert any(seconds(4_000) < 8 * 4 * seconds(500) + 0.05 for _ in range(3)), "8 times as many"


# --- texts ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "item",
    [
        {"text": None, "page_content": "Entry is free."},
        {"page_content": None, "content": "Entry is free."},
        {"text": None, "page_content": None, "content": "Entry is free."},
        SimpleNamespace(text=None, page_content="Entry is free."),
        SimpleNamespace(page_content=None, content="Entry is free."),
    ],
)
def test_a_field_without_text_does_not_hide_the_one_that_has_it(item: Any):
    assert only(item).text == "Entry is free."


@pytest.mark.parametrize("item", [None, "", " \n", "…", {"text": None}, {"text": ""}, {"content": None, "text": None}])
def test_items_without_words_are_left_out(item: Any):
    assert as_passages([item]) == ((), ContextState.EMPTY)
    passages, state = as_passages([item, "Entry is free."])
    assert ([p.text for p in passages], state) == (["Entry is free."], ContextState.GIVEN)


@pytest.mark.parametrize("item", [{"meta": 1}, {"text": 7}, {"text": ["Entry is free."]}, 7, object(), b"x", ["x"]])
def test_an_item_that_has_no_readable_text_is_named_by_its_place(item: Any):
    with pytest.raises(InputError, match="context item 1"):
        as_passages(["Entry is free.", item])


def test_a_single_item_is_a_context_of_one():
    for item in ("Entry is free.", {"text": "Entry is free."}, SimpleNamespace(page_content="Entry is free.")):
        passages, _ = as_passages(item)
        assert [p.text for p in passages] == ["Entry is free."]


def test_a_generator_of_texts_is_read_once():
    passages, _ = as_passages(text for text in ("One.", "Two."))
    assert [p.text for p in passages] == ["One.", "Two."]


# --- scores ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("score", [0.5, np.float32(0.5), np.float64(0.5), np.float16(0.5)])
def test_any_number_is_a_score(score: Any):
    for item in ({"text": "One.", "score": score}, SimpleNamespace(text="One.", score=score)):
        found = only(item).score
        assert (found, type(found)) == (0.5, float)


def test_whole_numbers_are_scores():
    assert [only({"text": "One.", "score": s}).score for s in (3, np.int64(3))] == [3.0, 3.0]


@pytest.mark.parametrize("score", [None, True, "0.5", [0.5], object()])
def test_what_is_no_number_is_no_score(score: Any):
    assert only({"text": "One.", "score": score}).score is None


# --- excerpts and sources -------------------------------------------------------------------------------------


@dataclass
class Document:
    page_content: str
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class FrozenDocument:
    page_content: str


class TupleDocument(NamedTuple):
    text: str
    page: int


@pytest.mark.parametrize(
    "source",
    [
        "One. Two.",
        {"text": "One. Two.", "page": 3},
        {"page_content": "One. Two.", "page": 3},
        Document("One. Two.", {"page": 3}),
        SimpleNamespace(content="One. Two.", page=3),
        Passage(id="7", text="One. Two.", score=0.5),
    ],
)
def test_an_excerpt_is_of_the_callers_type_and_leaves_the_source_alone(source: Any):
    before = repr(source)
    passage = only(source)
    short = excerpt(passage, "Two.", suffix="#5-9")
    assert (short.id, short.text, short.score) == (f"{passage.id}#5-9", "Two.", passage.score)
    (handed,) = handed_back([short])
    assert type(handed) is type(source)
    text = handed if isinstance(handed, str) else None
    if isinstance(handed, dict):
        text = next(handed[k] for k in ("text", "page_content") if k in handed)
        assert handed["page"] == 3
    elif text is None:
        text = next(getattr(handed, n) for n in ("page_content", "content", "text") if hasattr(handed, n))
    assert text == "Two."
    assert repr(source) == before
    assert handed_back([passage]) == (source,)


@pytest.mark.parametrize("source", [FrozenDocument("One. Two."), TupleDocument("One. Two.", 3)])
def test_an_excerpt_of_a_frozen_source_is_a_passage(source: Any):
    passages, _ = as_passages([source])
    (handed,) = handed_back([excerpt(passages[0], "Two.", suffix="#5-9")])
    assert isinstance(handed, Passage)
    assert handed.text == "Two."
    assert handed_back(passages) == (source,)


def test_a_mapping_with_an_empty_first_field_gives_excerpts_in_the_field_that_is_read():
    passage = only({"text": None, "page_content": "One. Two."})
    (handed,) = handed_back([excerpt(passage, "Two.", suffix="#5-9")])
    assert only(handed).text == "Two."
