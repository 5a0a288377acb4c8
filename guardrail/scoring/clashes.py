"""Disagreements between a claim and its evidence that a comparison can find, without a model.

Precision comes first: a clash that is none rejects a true sentence. Whatever is not certain is left to the
entailment model.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from guardrail.scoring.identifier_clashes import code_clashes, quote_clashes
from guardrail.scoring.scope_clashes import scope_clashes
from guardrail.scoring.statements import Statement, analyse
from guardrail.scoring.symbol_clashes import symbol_clashes
from guardrail.scoring.value_clashes import question_context, value_clashes
from guardrail.scoring.wording_clashes import wording_clashes
from guardrail.text.tokens import fold, tokens
from guardrail.types import Clash, ClashKind

_FENCE = re.compile(
    r"(?:```|~~~)[^\S\n]*(?:(?:bash|sh|shell|console|python|py|json|yaml|text|js|ts)\b)?(.*?)(?:```|~~~|\Z)", re.S
)

_ANSWERS = {
    **dict.fromkeys(("yes", "true", "correct", "sì", "vero", "ja", "oui", "sí"), True),
    **dict.fromkeys(("no", "false", "incorrect", "falso", "nein", "non"), False),
}
_DENIAL = re.compile(
    r"\s*(?:it is|it's|it would be|it was|that is|that's) (?:not (?:true|correct|right|the case)|untrue|false|wrong|"
    r"incorrect)(?: to (?:say|claim|assume))? that ",
    re.IGNORECASE,
)
_LEAD = re.compile(r"^\s*(?:true or false|yes or no|is it true that|vero o falso)\s*[:,?]?\s*", re.IGNORECASE)


def find_clashes(claim: str, evidence: Sequence[str], *, question: str | None = None) -> tuple[Clash, ...]:
    """Find what in a claim cannot be what the evidence says.

    Args:
        claim: One sentence of an answer, list and citation marks allowed.
        evidence: Sentences of any passages, best-aligned first.
        question: What the user asked; it lends its words to an answer such as "12 euro.", and is never evidence.

    Returns:
        The clashes: ``contradicts`` is true where the evidence says otherwise, false where it has no such value, or
        says it with less certainty. Empty if nothing can be objected; that is no proof of support.

    The cost is linear in the claim times the evidence sentences; analyses of sentences are kept.

    Example:
        >>> [c.kind.value for c in find_clashes("The mast is 492 metres tall.", ["The mast is 150 m (492 ft) tall."])]
        ['unit']
        >>> find_clashes("The path is about 6.2 miles long.", ["The path is 10 km long."])
        ()
    """
    statements = [analyse(sentence) for sentence in evidence if sentence.strip()]
    if not statements:
        return ()
    code = _FENCE.search(claim)
    if code:
        return tuple(code_clashes(code[1], statements))
    if _is_copied(claim, statements):
        return ()
    denial = _DENIAL.match(claim)
    if denial:
        return _denied(denial[0], find_clashes(claim[denial.end() :], evidence, question=question))
    statement = analyse(claim)
    answer = _ANSWERS.get(" ".join(tokens(claim)))
    if answer is not None and question:
        statement = analyse(_as_statement(question, holds=answer))
    context = question_context(statement, analyse(question) if question else None)
    found = value_clashes(statement, statements, context) + wording_clashes(statement, statements)
    found += scope_clashes(statement, statements)
    found += quote_clashes(statement, statements) + symbol_clashes(claim, [s.text for s in statements])
    if question and claim.rstrip().endswith(":"):  # a lead-in repeats what was asked
        found = [c for c in found if c.contradicts or c.claim_text.casefold() not in question.casefold()]
    return tuple(dict.fromkeys(found))


def _denied(words: str, inner: tuple[Clash, ...]) -> tuple[Clash, ...]:
    """A denial ("It is not true that X") clashes with evidence to which X has no objection."""
    if any(clash.contradicts for clash in inner):
        return ()
    return (Clash(kind=ClashKind.NEGATION, claim_text=words.strip(), evidence_text=""), *inner)


def _as_statement(question: str, *, holds: bool) -> str:
    """What "yes" or "no" asserts: the words of the question, denied for a "no"."""
    asked = _LEAD.sub("", question).strip().rstrip("?")
    return asked if holds else f"not {asked}"


def _is_copied(claim: str, evidence: Sequence[Statement]) -> bool:
    """Whether the claim is a whole sentence of the evidence, up to case, spacing, typography and its end mark."""
    wording = _wording(claim)
    return any(_wording(statement.text) == wording for statement in evidence)


def _wording(text: str) -> str:
    """Signs, currencies and operators stay: they make another value of the same word."""
    return " ".join(fold(text).casefold().split()).strip("*_ ").rstrip(".!?;:, ")
