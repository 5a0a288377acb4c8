"""What a claim must have copied exactly: addresses, phone numbers, versions, code, quotations."""

from __future__ import annotations

import re
from collections.abc import Sequence

from guardrail.scoring.statements import Statement
from guardrail.text.identifiers import same_length_fold, same_length_lower
from guardrail.text.tokens import tokens
from guardrail.text.values import Value, ValueKind, compatible
from guardrail.types import Clash, ClashKind

_MIN_QUOTE = 5  # words; shorter quotations are names and terms
_WHOLE = 0.9  # a claim that stands in quotation marks as a whole quotes nothing
_QUOTE = re.compile(
    r"\b(?:sa(?:ys?|id)|stat(?:es?|ed|ing)|wr(?:ites?|ote)|reads?|not(?:es|ed)|warn(?:s|ed)|adds?|added|declares?|declared"
    r"|according|quotes?|quoted|dice|sagt|dit|dice)\b[^\"\n]{0,40}\"([^\"\n]{12,400})\""
)


def code_clashes(code: str, evidence: Sequence[Statement]) -> list[Clash]:
    """Compare the names in a block of code with the evidence.

    Args:
        code: The code, without its fence.
        evidence: Evidence sentences, best first.

    Returns:
        One clash if a name or a command occurs nowhere in the evidence.
    """
    known = {word for statement in evidence for word in tokens(statement.text)}
    missing = [word for word in tokens(code) if word not in known and len(word) > 1]
    if not missing:
        return []
    shared = any(word in known for word in tokens(code))
    return [Clash(kind=ClashKind.IDENTIFIER, claim_text=" ".join(missing), contradicts=shared)]


def identifier_clash(value: Value, evidence: Sequence[Statement]) -> Clash | None:
    """Look for an address, a number to call, a version or code exactly as the claim has it.

    Args:
        value: An identifier of the claim.
        evidence: Evidence sentences, best first.

    Returns:
        A clash if the evidence does not have it; it contradicts if the evidence has another of its kind.
    """
    rivals: list[Value] = []
    for statement in evidence:
        for other in statement.values:
            answer = compatible(value, other)
            if answer:
                return None
            if answer is False:
                rivals.append(other)
        if value.kind in (ValueKind.CODE, ValueKind.VERSION) and _occurs(value.key, statement.text):
            return None
    if value.kind is ValueKind.CODE:
        first = value.key.split()[0]
        rivals = [rival for rival in rivals if rival.key.split()[0] == first and " " in value.key]
    rival = rivals[0] if rivals else None
    return Clash(
        kind=ClashKind.IDENTIFIER,
        claim_text=value.text,
        evidence_text=rival.text if rival else "",
        contradicts=rival is not None,
    )


def _occurs(key: str, text: str) -> bool:
    folded = " ".join(same_length_lower(same_length_fold(text)).split())
    return key.lower() in folded


def quote_clashes(claim: Statement, evidence: Sequence[Statement]) -> list[Clash]:
    """Find quotations that the evidence does not have: quotation marks promise the exact words.

    Args:
        claim: The claim.
        evidence: Evidence sentences, best first.

    Returns:
        At most one clash.
    """
    folded = same_length_fold(claim.text)
    if '"' not in folded:
        return []
    for match in _QUOTE.finditer(folded):
        quoted = [tokens(part) for part in re.split(r"\.\.\.|…|\[[^\]]*\]", match[1])]
        if sum(map(len, quoted)) < _MIN_QUOTE or len(match[1]) > _WHOLE * len(folded.strip()):
            continue
        sources = [" " + " ".join(tokens(statement.text)) + " " for statement in evidence]
        joined = "".join(sources)
        if not all(not part or f" {' '.join(part)} " in joined.replace("  ", " ") for part in quoted):
            return [Clash(kind=ClashKind.IDENTIFIER, claim_text=match[1], contradicts=False)]
    return []
