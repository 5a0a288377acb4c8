"""Which windows of evidence a second opinion can turn a verdict with."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from guardrail.scoring.delta_r import WindowSignals, decisive, judge
from guardrail.types import Clash, ClashKind

VETO = Clash(kind=ClashKind.VALUE, claim_text="9", evidence_text="10", contradicts=True)
MISSING = Clash(kind=ClashKind.VALUE, claim_text="9", contradicts=False)


def window(name, *clashes, rouge_l=0.8, entailment=0.5):
    return WindowSignals(
        passage_ids=(name,), rouge_l=rouge_l, entailment=entailment, contradiction=None, clashes=clashes
    )


@pytest.mark.parametrize(
    ("windows", "expected"),
    [
        ([], []),
        ([window("joined")], [True]),
        ([window("joined"), window("a"), window("b")], [True, False, False]),
        ([window("joined", MISSING)], [False]),
        ([window("joined", MISSING), window("a"), window("b", MISSING)], [False, True, False]),
        ([window("joined", VETO), window("a")], [False, False]),
        ([window("joined"), window("a", VETO)], [False, False]),
        ([window("joined"), window("a", VETO, rouge_l=0.1)], [True, False]),
    ],
)
def test_a_verdict_can_turn_only_where_comparison_has_not_decided(windows, expected):
    assert decisive(windows) == expected


def test_what_is_not_decisive_changes_no_verdict():
    kinds = [(), (MISSING,), (VETO,)]
    for clashes in itertools.product(kinds, kinds, kinds):
        windows = [window(name, *own) for name, own in zip("jab", clashes, strict=True)]
        before = judge(windows, delta=0.74, lexical_weight=0.05)[0]
        for at, matters in enumerate(decisive(windows)):
            for other in () if matters else (0.05, 0.85):
                changed = [replace(w, entailment=other) if i == at else w for i, w in enumerate(windows)]
                assert judge(changed, delta=0.74, lexical_weight=0.05)[0] is before
