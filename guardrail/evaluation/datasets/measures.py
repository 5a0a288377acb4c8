"""How the metrics with a name are computed from an item and its verification.

What could not be measured has an error and no score: no context, a checker that failed, an answer without claims. Only
faithfulness and the judge's share of an answer without claims are a number, 0, because they are defined so.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Any

from guardrail.context import as_passages
from guardrail.errors import JudgeError
from guardrail.evaluation.datasets.items import Item
from guardrail.evaluation.datasets.measurement import ItemInProgress, Measurement
from guardrail.policy import REFERENCE
from guardrail.scoring.rouge import reference_tokens, rouge_l_f1
from guardrail.scoring.verifier import Verifier
from guardrail.types import ClaimVerdict, VerdictLabel, Verification

if TYPE_CHECKING:
    from guardrail.evaluation.citations import CitationQuality

_UNMEASURED = ("scoring_error", "no_context")
_WITHOUT_CLAIMS = ("abstained", "no_claims", "empty_answer")
_INLINE_CHARS = 20_000


async def faithfulness(item: ItemInProgress) -> Measurement:
    """S2: the mean entailment of the claims."""
    found = await item.verification()
    if found.reason in _UNMEASURED:
        return Measurement(error=found.reason)
    claims = _claims(found)
    detail: dict[str, Any] = {"claims": claims}
    if not claims:
        detail["reason"] = found.reason
    return Measurement(score=found.faithfulness, detail=detail)


async def delta_r(item: ItemInProgress) -> Measurement:
    """The mean ΔR of the claims, or that of the whole answer with the reference formula."""
    found = await item.verification()
    error = _error(found)
    return Measurement(error=error) if error else Measurement(score=found.delta_r, detail={"claims": _claims(found)})


async def worst_delta_r(item: ItemInProgress) -> Measurement:
    """The largest ΔR of a claim, and where in the answer that claim stands."""
    found = await item.verification()
    error = _error(found)
    if error:
        return Measurement(error=error)
    detail: dict[str, Any] = {"claims": _claims(found)}
    scored = [claim for claim in found.claims if claim.delta_r is not None]
    if scored:
        worst = max(scored, key=lambda claim: claim.delta_r or 0.0).segment
        detail["worst"] = [worst.body_start, worst.body_end]
    return Measurement(score=found.worst_delta_r, detail=detail)


async def accepted(item: ItemInProgress) -> Measurement:
    """Whether the policy accepts the answer."""
    found = await item.verification()
    error = _error(found)
    return (
        Measurement(error=error) if error else Measurement(score=float(found.accepted), detail={"reason": found.reason})
    )


async def contradicted(item: ItemInProgress) -> Measurement:
    """The share of the claims that are contradicted."""
    return _share_of(await item.verification(), VerdictLabel.CONTRADICTED)


async def unverifiable(item: ItemInProgress) -> Measurement:
    """The share of the claims that nothing speaks of."""
    return _share_of(await item.verification(), VerdictLabel.UNVERIFIABLE)


def _share_of(found: Verification, label: VerdictLabel) -> Measurement:
    error = _error(found)
    if error:
        return Measurement(error=error)
    verdicts = Counter(claim.verdict for claim in _scored(found))
    detail = {"claims": verdicts.total()} | {each.value: verdicts[each] for each in VerdictLabel if verdicts[each]}
    return Measurement(score=verdicts[label] / verdicts.total(), detail=detail)


async def contradiction(item: ItemInProgress) -> Measurement:
    """S3: the share of the claims that some or all passages contradict."""
    from guardrail.evaluation.contradiction import Contradiction, levels

    error = _error(await item.verification())
    if error:
        return Measurement(error=error)
    own = item.item
    found = await item.once(
        "levels", lambda: levels(own.answer, own.context, verifier=item.verifier, question=own.question or None)
    )
    if not found:
        return Measurement(error="no_claims")
    counts = Counter(level.contradiction for level in found)
    detail = {"claims": len(found)} | {each.value: counts[each] for each in Contradiction}
    return Measurement(score=1 - counts[Contradiction.NONE] / len(found), detail=detail)


async def judged(item: Item, judge: Any, decomposer: Any = None) -> Measurement:
    """S4: the share of the claims that a judge finds supported.

    A claim whose verdict cannot be read counts as not supported; one that the judge was never heard on leaves the item
    without a score.
    """
    from guardrail.evaluation.judging.decompose import judge_answer

    if not as_passages(item.context)[0]:
        return Measurement(error="no_context")
    try:
        found = await judge_answer(
            item.answer, item.context, judge=judge, decomposer=decomposer, question=item.question
        )
    except JudgeError as error:
        return Measurement(error=f"judge_{error.error}")
    errors = Counter(claim.judgement.error for claim in found.claims if claim.judgement.error)
    unheard = sorted(errors.keys() - {"unreadable"}, key=lambda error: (error == "misled", error))
    if unheard:
        return Measurement(error=f"judge_{unheard[0]}", detail={"errors": dict(sorted(errors.items()))})
    if errors and errors.total() == len(found.claims):
        return Measurement(error="judge_unreadable", detail={"errors": dict(errors)})
    detail = {"claims": len(found.claims), "supported": found.supported, "partial": found.partial}
    return Measurement(score=found.score, detail=detail | ({"errors": dict(errors)} if errors else {}))


async def citation_precision(item: ItemInProgress) -> Measurement:
    """S5: the share of the citations that are supported."""
    return await _citations(item, "precision")


async def citation_recall(item: ItemInProgress) -> Measurement:
    """S5: the share of the claims that are supported by a passage they cite."""
    return await _citations(item, "recall")


async def citation_f1(item: ItemInProgress) -> Measurement:
    """S5: the harmonic mean of precision and recall."""
    return await _citations(item, "f1")


async def _citations(item: ItemInProgress, figure: str) -> Measurement:
    error = _error(await item.verification())
    if error:
        return Measurement(error=error)
    found = await item.once("citations", lambda: _citation_quality(item))
    if not found.claims:
        return Measurement(error="no_claims")
    detail = {
        "claims": found.claims,
        "supported_claims": found.supported_claims,
        "citations": found.citations,
        "supported_citations": found.supported_citations,
        "dangling": found.dangling,
    }
    return Measurement(score=getattr(found, figure), detail=detail)


async def _citation_quality(item: ItemInProgress) -> CitationQuality:
    from guardrail.evaluation.citations import citation_quality, cited_claims

    own = item.item
    claims = cited_claims(own.answer, own.context)
    return await citation_quality(claims, own.context, entailment=item.verifier.entailment)


async def reference_delta_r(item: ItemInProgress) -> Measurement:
    """S1: ΔR of the whole answer against the whole context."""
    own = item.item
    verifier = Verifier(policy=REFERENCE.override(on_error="raise"), entailment=item.verifier.entailment)
    found = await item.once(
        "reference", lambda: verifier.verify(own.answer, own.context, question=own.question or None)
    )
    if found.reason in ("no_context", "empty_answer"):
        return Measurement(error=found.reason)
    return Measurement(score=found.delta_r, detail={"rouge_l": found.rouge_l, "entailment": found.entailment})


async def rouge_l(item: ItemInProgress) -> Measurement:
    """S1: ROUGE-L F1 of the whole answer against the whole context."""
    passages, _ = as_passages(item.item.context)
    context, answer = "\n".join(passage.text for passage in passages), item.item.answer
    if not passages or not answer.strip():
        return Measurement(error="empty_answer" if passages else "no_context")

    def overlap() -> float:
        return rouge_l_f1(reference_tokens(answer), reference_tokens(context))

    small = len(answer) + len(context) <= _INLINE_CHARS
    return Measurement(score=round(overlap() if small else await asyncio.to_thread(overlap), 4))


def _scored(found: Verification) -> list[ClaimVerdict]:
    return [claim for claim in found.claims if claim.checked]


def _claims(found: Verification) -> int:
    """How many claims were scored; the reference formula takes the whole answer for one."""
    if found.formula == "reference":
        return int(found.reason not in _WITHOUT_CLAIMS)
    return len(_scored(found))


def _error(found: Verification) -> str:
    """Why an answer has no scores; empty if it has."""
    if found.reason in _UNMEASURED:
        return found.reason
    if _claims(found):
        return ""
    return found.reason if found.reason in _WITHOUT_CLAIMS else "no_claims"
