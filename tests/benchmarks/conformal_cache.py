"""Signals of labelled answers in a file, so that a benchmark asks the model once."""

from __future__ import annotations

import asyncio
import hashlib
import json
import sys
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import guardrail
from guardrail.evaluation.calibration.acceptance import AnswerSignals, ClaimSignals, signals_of
from guardrail.evaluation.labelled import LabelledAnswer, read_answers
from guardrail.policy import AnswerDecision, Policy
from guardrail.scoring.delta_r import WindowSignals
from guardrail.scoring.entailment import default_entailment
from guardrail.scoring.verifier import Verifier
from guardrail.types import Clash, ClashKind, ContextState, Segment, SegmentKind

_OWN = {field.name for field in fields(WindowSignals)} - {"passage_ids", "twins", "clashes"}


def load(
    path: Path,
    policy: Policy,
    *,
    cache: Path | None,
    group: Callable[[LabelledAnswer], str | None] = lambda row: None,
    keep: Callable[[LabelledAnswer], bool] = lambda row: True,
) -> list[AnswerSignals]:
    """The signals of labelled answers, from the cache if it was written for the same file, model, policy and code."""
    model: Any = default_entailment()
    fingerprint = model.fingerprint() if hasattr(model, "fingerprint") else model.model_id
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    key = [_code(), fingerprint, digest, repr(policy.override(delta=0.5, lexical_weight=None))]
    rows = [row for row in read_answers(path) if keep(row)]
    key.append(str(len(rows)))
    if cache is not None and cache.is_file():
        head, *lines = cache.read_text(encoding="utf-8").splitlines()
        if json.loads(head) == key and len(lines) == len(rows):
            return [_from_json(json.loads(line)) for line in lines]
    found = asyncio.run(_collect(rows, Verifier(policy=policy), model, group))
    if cache is not None:
        lines = [json.dumps(key), *(json.dumps(_to_json(own)) for own in found)]
        cache.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return found


def _code() -> str:
    """A hash of the package: whatever in it changes may change signals."""
    digest = hashlib.sha256()
    for path in sorted(Path(guardrail.__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


async def _collect(
    rows: list[LabelledAnswer], verifier: Verifier, model: Any, group: Callable[[LabelledAnswer], str | None]
) -> list[AnswerSignals]:
    found = []
    for number, row in enumerate(rows, start=1):
        found.append(await signals_of(row, verifier, model=model, group=group(row)))
        if number % 100 == 0:
            print(f"{number} of {len(rows)} answers scored", file=sys.stderr, flush=True)
    return found


def _to_json(own: AnswerSignals) -> dict[str, Any]:
    decided = own.decided
    return {
        "hallucinated": own.hallucinated,
        "group": own.group,
        "state": own.state.value,
        "decided": None if decided is None else [decided.accepted, decided.reason],
        "cited": own.cited,
        "avoidable": own.avoidable,
        "claims": [
            {
                "kind": claim.segment.kind.value,
                "languages": claim.languages,
                "windows": [
                    {name: getattr(window, name) for name in _OWN}
                    | {"clashes": [[clash.kind.value, clash.contradicts] for clash in window.clashes]}
                    for window in claim.windows
                ],
            }
            for claim in own.claims
        ],
    }


def _from_json(own: dict[str, Any]) -> AnswerSignals:
    decided = own["decided"]
    return AnswerSignals(
        hallucinated=own["hallucinated"],
        group=own["group"],
        state=ContextState(own["state"]),
        cited=tuple(own["cited"]),
        avoidable=own["avoidable"],
        decided=None
        if decided is None
        else AnswerDecision(accepted=decided[0], reason=decided[1], delta_r=None, worst_delta_r=None),
        claims=tuple(
            ClaimSignals(
                segment=Segment(start=0, end=0, text="", kind=SegmentKind(claim["kind"])),
                languages=tuple(claim["languages"]),
                windows=tuple(_window(**values) for values in claim["windows"]),
            )
            for claim in own["claims"]
        ),
    )


def _window(clashes: list[tuple[str, bool]], **own: Any) -> WindowSignals:
    found = tuple(Clash(kind=ClashKind(kind), claim_text="", contradicts=against) for kind, against in clashes)
    return WindowSignals(passage_ids=(), clashes=found, **own)
