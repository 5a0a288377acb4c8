"""Proper names in a claim that stand in no passage."""

from __future__ import annotations

from collections.abc import Sequence

from guardrail.scoring.names import Name, names_in
from guardrail.scoring.statements import analyse
from guardrail.text.language import language_of
from guardrail.text.tokens import tokens
from guardrail.types import Clash, ClashKind

_ALIGNED = 0.8  # share of the claim's other content words that a sentence must have to put its own name there
_OTHER_WORDS = 2
_NOUNS_ARE_CAPITALS = "de"
_PRONOUNS = frozenset("he she it they him them his her hers its their theirs this that these those who".split())


def name_clashes(
    claim: str,
    strangers: Sequence[Name],
    evidence: Sequence[str],
    *,
    question: str | None = None,
    all_is_known: bool = True,
) -> list[Clash]:
    """What is to be said against a claim that names somebody or something unknown to all passages.

    Args:
        claim: The claim.
        strangers: Its names that stand in no passage.
        evidence: Sentences of one window.
        question: What the user asked: who asks about a name may be answered with it.
        all_is_known: Whether the passages are long enough to name what they speak of; of a few sentences the name may
            stand in the title, and "she" in the text. Then only a contradiction counts.

    Returns:
        One clash per name. It contradicts if a sentence says the rest of the claim of another name: "Anna Berg founded
        the firm." beside "Carl Holm founded the firm.".

    Example:
        >>> from guardrail.scoring.names import names_in
        >>> claim, sentence = "The firm was founded by Anna Berg.", "The firm was founded by Carl Holm."
        >>> [clash.evidence_text for clash in name_clashes(claim, names_in(claim), [sentence])]
        ['Carl Holm']
    """
    asked = set(tokens(question or ""))
    new = [name for name in strangers if not asked.issuperset(part for word in name.words for part in tokens(word))]
    if not new or language_of(" ".join(evidence)) == _NOUNS_ARE_CAPITALS:
        return []
    found = (_clash(claim, name, evidence) for name in new)
    return [clash for clash in found if clash.contradicts or all_is_known]


def _clash(claim: str, name: Name, evidence: Sequence[str]) -> Clash:
    own = {part for word in name.words for part in tokens(word)}
    rest = {word.stem for word in analyse(claim).content() if not own.issuperset(tokens(word.text))}
    said = set(tokens(claim))
    leads = claim.startswith(name.text)
    for sentence in evidence if len(rest) >= _OTHER_WORDS else ():
        if len(rest & analyse(sentence).stems) < _ALIGNED * len(rest) or not _PRONOUNS.isdisjoint(tokens(sentence)):
            continue
        for other in names_in(sentence):
            new = said.isdisjoint(part for word in other.words for part in tokens(word))
            if new and (sentence.startswith(other.text) or not leads):  # a subject is contradicted by a subject
                return Clash(kind=ClashKind.NAME, claim_text=name.text, evidence_text=other.text)
    return Clash(kind=ClashKind.NAME, claim_text=name.text, contradicts=False)
