"""What records object to reaches every window that could hide it, and no score outweighs it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from guardrail.policy import as_policy
from guardrail.protocols import Pair
from guardrail.scoring.evidence import EvidenceIndex
from guardrail.scoring.verifier import Verifier
from guardrail.types import EntailmentScore, Passage, VerdictLabel

BISTRO = """{"name": "Corner Bistro", "attributes": {"RestaurantsTakeOut": true, "WiFi": "no",
 "RestaurantsDelivery": null, "BusinessParking": {"garage": false, "street": true}}}"""


def objections(passages: list[Passage], claim: str, labelled: str = "") -> list[list[str]]:
    windows = EvidenceIndex(passages).select(claim, under_label=labelled)
    return [[clash.evidence_text for clash in window.objections] for window in windows]


def test_every_window_of_the_record_has_its_objections() -> None:
    prose = Passage(id="a", text="The Elm Inn has a pool, an old house and a garden.")
    record = Passage(id="b", text='{"name": "Elm Inn", "has_a_pool": false, "tags": ["garden"]}')
    claim = "The Elm Inn has a pool."
    assert objections([prose, record], claim) == [["has a pool: no"], [], ["has a pool: no"]]
    assert objections([record], claim) == [["has a pool: no"]]
    assert objections([prose], claim) == [[]]
    assert objections([record], "Pool", labelled="Amenities: Pool") == [["has a pool: no"]]
    assert objections([record], "The Elm Inn has a garden.") == [[]]


class _Credulous:
    model_id = "credulous"

    async def score(self, pairs: Sequence[Pair]) -> list[EntailmentScore]:
        return [EntailmentScore(entailment=0.99, contradiction=0.0) for _ in pairs]


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        ("Corner Bistro offers takeout and free WiFi.", VerdictLabel.CONTRADICTED),
        ("Corner Bistro offers takeout and delivery.", VerdictLabel.UNVERIFIABLE),
        ("Corner Bistro offers takeout and street parking.", VerdictLabel.SUPPORTED),
    ],
)
def test_no_score_outweighs_the_record(answer: str, verdict: VerdictLabel) -> None:
    policy = replace(as_policy("balanced"), lexical_weight=0.0)
    result = Verifier(policy=policy, entailment=_Credulous()).verify_sync(answer, [BISTRO])
    assert [claim.verdict for claim in result.claims] == [verdict]
