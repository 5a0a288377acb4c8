"""Disagreements between a claim and its evidence that a comparison can find, without a model.

Precision comes first: a clash that is none rejects a true sentence. Whatever is not certain is left to the
entailment model.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property

from guardrail.scoring.identifier_clashes import code_clashes, quote_clashes
from guardrail.scoring.scope_clashes import scope_clashes
from guardrail.scoring.statements import Statement, analyse, wording
from guardrail.scoring.symbol_clashes import Symbols
from guardrail.scoring.value_clashes import question_context, value_clashes
from guardrail.scoring.wording_clashes import wording_clashes
from guardrail.text.tokens import tokens
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
    """Find what in a claim cannot be what the evidence says; see :class:`Comparison` for one claim and much evidence.

    Args:
        claim: One sentence of an answer, list and citation marks allowed.
        evidence: Sentences of any passages, best-aligned first.
        question: What the user asked; it lends its words to an answer such as "12 euro.", and is never evidence.

    Returns:
        The clashes: ``contradicts`` is true where the evidence says otherwise, false where it has no such value, or
        says it with less certainty. Empty if nothing can be objected; that is no proof of support.

    Example:
        >>> [c.kind.value for c in find_clashes("The mast is 492 metres tall.", ["The mast is 150 m (492 ft) tall."])]
        ['unit']
        >>> find_clashes("The path is about 6.2 miles long.", ["The path is 10 km long."])
        ()
    """
    return Comparison(claim, question).clashes(evidence)


class Comparison:
    """A claim, read once, to be compared with any evidence.

    Args:
        claim: See :func:`find_clashes`.
        question: See :func:`find_clashes`.

    The cost is linear in the claim times the evidence sentences; analyses of sentences are kept.

    Example:
        >>> open_at_ten = Comparison("The desk opens at ten.")
        >>> [len(open_at_ten.clashes([sentence])) for sentence in ("The desk opens at 10:00.", "The desk opens at 9.")]
        [0, 1]
    """

    def __init__(self, claim: str, question: str | None = None) -> None:
        self._claim = claim
        self._question = question
        self._code = _FENCE.search(claim)
        self._wording = wording(claim)
        self._symbols = Symbols(claim)

    @cached_property
    def _statement(self) -> Statement:
        answer = _ANSWERS.get(" ".join(tokens(self._claim))) if self._question else None
        if answer is None or not self._question:
            return analyse(self._claim)
        return analyse(_as_statement(self._question, holds=answer))

    @cached_property
    def _context(self) -> frozenset[str]:
        return question_context(self._statement, analyse(self._question) if self._question else None)

    @cached_property
    def _denial(self) -> tuple[str, Comparison] | None:
        """The words of a denial, and the comparison of what it denies."""
        match = _DENIAL.match(self._claim)
        return (match[0], Comparison(self._claim[match.end() :], self._question)) if match else None

    def clashes(self, evidence: Sequence[str]) -> tuple[Clash, ...]:
        """What cannot be what some sentences say; see :func:`find_clashes`.

        Args:
            evidence: Sentences of any passages, best-aligned first.
        """
        statements = [analyse(sentence) for sentence in evidence if sentence.strip()]
        if not statements:
            return ()
        if self._code:
            return tuple(code_clashes(self._code[1], statements))
        # A whole sentence of the evidence, up to case, spacing, typography and its end mark.
        if any(statement.wording == self._wording for statement in statements):
            return ()
        if self._denial:
            denied, comparison = self._denial
            return _denied(denied, comparison.clashes(evidence))
        claim = self._statement
        found = value_clashes(claim, statements, self._context) + wording_clashes(claim, statements)
        found += scope_clashes(claim, statements) + quote_clashes(claim, statements)
        found += self._symbols.clashes([statement.text for statement in statements])
        if self._question and self._claim.rstrip().endswith(":"):  # a lead-in repeats what was asked
            asked = self._question.casefold()
            found = [c for c in found if c.contradicts or c.claim_text.casefold() not in asked]
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
