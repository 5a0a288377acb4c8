"""Why a claim did not pass, in words for people and prompts."""

from __future__ import annotations

from guardrail.types import CitationStatus, ClaimVerdict, ClashKind, VerdictLabel

_QUOTED = 120


def why_failed(verdict: ClaimVerdict) -> str:
    """One sentence about a failed claim, for the prompt of the next attempt."""
    clashes = [c for c in verdict.clashes if c.contradicts and c.evidence_text]
    if clashes:
        clash = clashes[0]
        if clash.kind is ClashKind.NEGATION:
            return f"the passages say the opposite about {clash.claim_text!r}"
        if clash.kind is ClashKind.ROLE:
            return "the passages have it the other way round"
        return f"the passages say {clash.evidence_text!r}, not {clash.claim_text!r}"
    if verdict.verdict is VerdictLabel.CONTRADICTED:
        return "the passages say otherwise"
    if verdict.verdict is VerdictLabel.CONFLICT:
        return "the passages disagree with each other about this"
    missing = [c.claim_text for c in verdict.clashes if c.claim_text]
    if missing:
        return f"the passages do not mention {missing[0]!r}"
    if verdict.language is not None:
        return f"it cannot be checked in this language ({verdict.language})"
    if verdict.wrongly_cited and verdict.verdict in (VerdictLabel.SUPPORTED, None):
        return why_wrongly_cited(verdict)
    return "the passages do not support it"


def why_wrongly_cited(verdict: ClaimVerdict) -> str:
    """One sentence about a claim whose citations mislead."""
    for citation in verdict.citations:
        if citation.status is CitationStatus.DANGLING:
            return f"it cites [{citation.number}], and there is no such passage"
    wrong = next(c for c in verdict.citations if c.status is CitationStatus.WRONG)
    # Not its number: the next attempt may see the passages in another order.
    said = next((span.text.strip() for span in verdict.evidence if span.passage_id in wrong.right), "")
    short = said if len(said) <= _QUOTED else f"{said[:_QUOTED].rstrip()}…"
    named = f"the one that says {short!r}" if short else ", ".join(wrong.right)
    instead = f"; {named} does" if named else ""
    return f"the cited passage [{wrong.number}] does not say so{instead}"
