"""What is written with signs instead of words: operators, ticks and crosses, names such as ``B12`` and ``C#``."""

from __future__ import annotations

import re
from collections.abc import Sequence

from guardrail.text.tokens import fold
from guardrail.types import Clash, ClashKind

# Signs that say opposite things, by group and side.
_OPPOSITES = {
    **dict.fromkeys(("≥", ">=", ">", "⩾"), ("order", 1)),
    **dict.fromkeys(("≤", "<=", "<", "⩽"), ("order", -1)),
    **dict.fromkeys(("==", "="), ("equality", 1)),
    **dict.fromkeys(("!=", "≠", "<>"), ("equality", -1)),
    **dict.fromkeys(("✅", "✔", "☑", "[x]"), ("mark", 1)),
    **dict.fromkeys(("❌", "✗", "✘", "✖", "☒", "[ ]"), ("mark", -1)),
}
_SIGN = re.compile(r">=|<=|==|!=|<>|[≥≤⩾⩽≠=]|(?<![-\w])[<>](?=\s?\d)|[✅✔☑❌✗✘✖☒]|\[[x ]\]")
# ± and × change the number that they stand before, an exponent the one behind which it stands.
_MODIFIED = re.compile(r"[±×]\s?\d+(?:[.,]\d+)*|(?<!\d)\d+\^\d+")
_TERM = re.compile(r"(?<![\w.])([a-z]{1,6})(\d{1,5}[a-z]?|\+\+|#)(?![\w+#])")


class Symbols:
    """The signs of one claim.

    Args:
        claim: The claim.

    Example:
        >>> [c.claim_text for c in Symbols("Take vitamin B12.").clashes(["Take vitamin B6 daily."])]
        ['b12']
    """

    def __init__(self, claim: str) -> None:
        text = fold(claim).lower()
        self._signs = _SIGN.findall(claim)
        self._modified = _MODIFIED.findall(text)
        self._terms = _TERM.findall(text)

    def clashes(self, evidence: Sequence[str]) -> list[Clash]:
        """Compare them with those of some sentences.

        Args:
            evidence: Evidence sentences, best first.

        Returns:
            A clash for each sign of which the evidence has only the opposite, for each number whose ±, × or exponent
            it does not have, and for each name of letters and digits of which it has only another of the same letters.
        """
        if not (self._signs or self._modified or self._terms):  # most claims: the evidence need not be read
            return []
        sources = [fold(sentence).lower() for sentence in evidence]
        return [*_signs(self._signs, evidence), *_modified(self._modified, sources), *_terms(self._terms, sources)]


def _signs(signs: Sequence[str], evidence: Sequence[str]) -> list[Clash]:
    known = {_OPPOSITES[sign]: sign for sentence in evidence[:1] for sign in _SIGN.findall(sentence)}
    found = []
    for sign in dict.fromkeys(signs):
        group, side = _OPPOSITES[sign]
        if (group, side) not in known and (group, -side) in known:
            rival = known[group, -side]
            found.append(Clash(kind=ClashKind.ANTONYM, claim_text=sign, evidence_text=rival))
    return found


def _modified(numbers: Sequence[str], evidence: Sequence[str]) -> list[Clash]:
    known = {_tight(match) for sentence in evidence for match in _MODIFIED.findall(sentence)}
    missing = [match for match in numbers if _tight(match) not in known]
    return [Clash(kind=ClashKind.VALUE, claim_text=match, contradicts=False) for match in missing]


def _terms(terms: Sequence[tuple[str, str]], evidence: Sequence[str]) -> list[Clash]:
    known = {_singular(match) for sentence in evidence for match in _TERM.findall(sentence)}
    words = {word for sentence in evidence for word in re.findall(r"[a-z]+", sentence)}
    found = []
    for letters, rest in dict.fromkeys(map(_singular, terms)):
        rivals = [other for name, other in known if name == letters]
        if (letters, rest) not in known and (rivals or letters in words):
            rival = letters + rivals[0] if rivals else letters
            found.append(
                Clash(
                    kind=ClashKind.IDENTIFIER, claim_text=letters + rest, evidence_text=rival, contradicts=bool(rivals)
                )
            )
    return found


def _singular(term: tuple[str, str]) -> tuple[str, str]:
    letters, rest = term
    return letters, rest.removesuffix("s")  # "the P60s"


def _tight(text: str) -> str:
    return text.replace(" ", "")
