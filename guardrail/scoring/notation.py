"""One value, one notation: a claim with its values written the way the evidence writes them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from guardrail.text.tokens import fold
from guardrail.text.values import Value, compatible, parse_values

_DECIMALS = re.compile(r"\d\.\d")


def in_evidence_notation(claim: str, evidence: Sequence[str]) -> str:
    """Write the values of a claim as its evidence writes the same values.

    Entailment models read text, not quantities: to them "12480" and "12,480" are two numbers. What comparison knows to
    be one value is therefore shown to them in one notation. A value that the evidence does not have is left alone, and
    so are bounds, ranges and identifiers.

    Args:
        claim: A claim without markup.
        evidence: Evidence sentences, best first.

    Returns:
        The claim, with at most its values changed.

    Example:
        >>> in_evidence_notation("The archive holds 12480 photographs.", ["It holds 12,480 photographs."])
        'The archive holds 12,480 photographs.'
        >>> in_evidence_notation("The archive holds 1248 photographs.", ["It holds 12,480 photographs."])
        'The archive holds 1248 photographs.'
    """
    values = [value for value in parse_values(claim) if _is_plain(value)]
    if not values:
        return claim
    known = [other for sentence in evidence for other in parse_values(sentence) if _is_plain(other)]
    wordings = {_wording(other) for other in known}
    parts: list[str] = []
    done = 0
    for value in values:
        if _wording(value) in wordings:
            continue
        twin = next((other for other in known if _is_same(value, other)), None)
        if twin is not None:
            parts += [claim[done : value.start], _fitted(value.text, twin.text)]
            done = value.end
    return "".join([*parts, claim[done:]])


def _is_plain(value: Value) -> bool:
    return not value.kind.is_identifier and value.bound is None and value.high is None


def _is_same(value: Value, other: Value) -> bool:
    """Whether two values are one: each could stand for the other, or the claim rounds it and says so.

    A wording that may mean several things ("degrees", a decade cut to its year) takes no clear one's place, a span of
    time not that of its beginning or end, and "3.0" not that of the three in "three guests".
    """
    if other.times_to and not value.times_to:
        return False
    if _DECIMALS.search(other.text) and not (_DECIMALS.search(value.text) or value.approximate):
        return False
    if not compatible(value, other) or len(other.readings) > 1 or (other.dates and other.text.isdecimal()):
        return False
    return value.approximate or bool(compatible(other, value))


def _wording(value: Value) -> str:
    return " ".join(fold(value.text).casefold().split())


def _fitted(mine: str, its: str) -> str:
    """The other wording with the white space that this one had around it."""
    body = _without_stop(its.strip()) + ("." if mine.rstrip() != _without_stop(mine.rstrip()) else "")
    return mine[: len(mine) - len(mine.lstrip())] + body + mine[len(mine.rstrip()) :]


def _without_stop(text: str) -> str:
    """Without the end mark of a sentence, which "11 PM." has swallowed and "11 p.m." has not."""
    return text[:-1] if text.endswith(".") and text.count(".") == 1 else text
