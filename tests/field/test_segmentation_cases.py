"""Segmentation cases from the field, in every chunking."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail.text import Segmenter, repair_surrogates, segment
from guardrail.types import Segment

_FILE = Path(__file__).resolve().parents[3] / "shared" / "cases" / "cases.dev.jsonl"

pytestmark = [
    pytest.mark.shared_data,
    pytest.mark.skipif(not _FILE.parent.is_dir(), reason="the shared field cases are not beside the repository"),
]


def _load() -> dict[str, dict[str, Any]]:
    if not _FILE.parent.is_dir():
        return {}
    cases = map(json.loads, _FILE.read_text(encoding="utf-8").splitlines())
    return {case["id"]: case for case in cases if case["kind"] == "segmentation"}


CASES = _load()


def run(chunks: list[str]) -> list[Segment]:
    segmenter = Segmenter()
    return [s for chunk in chunks for s in segmenter.feed(chunk)] + segmenter.flush()


@pytest.mark.parametrize("case_id", CASES)
def test_case(case_id: str) -> None:
    case = CASES[case_id]
    chunks: list[str] = case["input"]["chunks"]
    text = "".join(chunks)
    segments = segment(text)
    assert "".join(s.text for s in segments) == repair_surrogates(text)
    assert run(chunks) == segments
    assert run(list(text)) == segments
    got = [s.body for s in segments]
    if "still open" in case["why"]:  # only what has been reported before the end counts
        segmenter = Segmenter()
        got = [s.body for chunk in chunks for s in segmenter.feed(chunk)]
    assert got in [case["expected"]["segments"], *case["expected"]["also_accept"]]


@given(data=st.data())
def test_random_chunkings(data: st.DataObject) -> None:
    case = CASES[data.draw(st.sampled_from(sorted(CASES)))]
    text = "".join(case["input"]["chunks"])
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=20)))
    edges = [0, *cuts, len(text)]
    chunks = [text[a:b] for a, b in pairwise(edges)]
    assert run(chunks) == segment(text)
