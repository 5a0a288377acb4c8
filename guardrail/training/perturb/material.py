"""What a document offers to a generator: sentences that stand alone, names, and values."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from guardrail.scoring.evidence import EvidenceIndex
from guardrail.text.values import Value, parse_values
from guardrail.training.perturb.draft import PLAIN
from guardrail.training.perturb.words import ORDERS, third, verbs
from guardrail.types import Passage

_NAME = re.compile(
    r"(?<![\w.&-])(?:[A-Z][\w'’-]*[\w]|[A-Z]\.)(?:[ -](?:of the |of |de |van |von |and the )?[A-Z][\w'’-]*\w)*(?![\w&])"
)
_NOT_NAMES = frozenset(
    "January February March April May June July August September October November December Monday Tuesday Wednesday "
    "Thursday Friday Saturday Sunday The A An This That These Those It He She They We You I In On At Step Tip Note "
    "However But And If When While For To As After Before Since What How Why Who CNN PM AM BC AD Mr Mrs Dr Ms Why "
    "Some Many Most All There Here His Her Their Its Not No Yes Also Other One Two Three First Second Use Do".split()
)
_ENGLISH = re.compile(r"\b(?:the|of|to|and|is|are|was|were|you|with|for|has|The|You)\b")
_VERB = re.compile(
    r"\b(?:is|are|was|were|has|have|had|will|would|can|could|may|might|must|should|do|does|did|\w{2,}ed|"
    + "|".join(sorted({f for form, forms in verbs().items() for f in (form, third(forms[0]))}))
    + r")\b|n[’']t\b"
)
_UNFIT = re.compile(
    r"[?\n•|<>{}\[\]_*#=…“”\"]|https?:|www\.|[a-z][.!?][A-Za-z]|\.\.|! |[a-z]{3}[.?] [a-z]|\b(?:I|my|My"
    r"|we|We|our|Our|us|me|I'm|I've)\b|^\W*\d+[ .)]"
    r"|^(?:Step|Tip|Note|Figure|Table|Image|Photo|Source|Click|See)\b|[a-z][A-Z]"
    r"|\s[-–—]\s.*\s[-–—]\s.*\s[-–—]\s|:$|: \d+ |;.*;"
    r"|\b\d [A-Z]|©|^[A-Z] [a-z]{1,2} [a-z] |[a-z0-9½)][.!?][A-Z]|^[\w ]{2,24}: |^(?:And|But|Or|So|Then"
    r"|Yes|No|Well|Also|Thus|Hence|This|That|These|Those|Such|Here|There)\b|[^\x00-\x7f–—’‘é½°ü]{2}"
)
_HE_SHE = re.compile(r"\b(?:He|She|he|she|his|her|him|His|Her)\b")
_LEANS = re.compile(r"^(?:It|They|Its|Their|He|She|His|Her|Another|Others|Both|Neither|Either)\b")
_PERSON_CUE = re.compile(r",? (?:who|said|says|told|wrote|added|stated|argued|claimed|explained|was born)\b")


@dataclass(slots=True)
class Document:
    """A context, read once.

    Attributes:
        passages: The texts.
        index: The evidence as it is searched when the guard runs.
        fit: Indices of the sentences that can serve as a claim.
        names: Names that stand inside sentences, with no duplicates.
        values: Values of the whole context.
        text: All of it.
    """

    passages: tuple[str, ...]
    index: EvidenceIndex
    fit: list[int] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    values: list[Value] = field(default_factory=list)
    text: str = ""
    _persons: dict[str, bool] = field(default_factory=dict)

    def sentence(self, index: int) -> str:
        """The wording of a sentence."""
        return self.index.sentences[index].said

    def neighbour(self, index: int) -> int | None:
        """The fit sentence that follows in the same passage."""
        following = index + 1
        if following in self.fit_set and self.passage_of(index) == self.passage_of(following):
            return following
        return None

    @property
    def fit_set(self) -> frozenset[int]:
        """The fit sentences, for look-ups."""
        return frozenset(self.fit)

    def passage_of(self, index: int) -> str:
        """Id of the passage of a sentence."""
        return self.index.sentences[index].span.passage_id

    def is_person(self, name: str) -> bool:
        """Whether the document treats a name as somebody."""
        if name not in self._persons:
            self._persons[name] = any(
                _PERSON_CUE.match(self.text, match.end()) for match in re.finditer(re.escape(name), self.text)
            )
        return self._persons[name]


def read_document(passages: Sequence[str]) -> Document:
    """Read a context.

    Args:
        passages: Its texts.

    Returns:
        The document with everything found.

    Example:
        >>> document = read_document(["The bridge was built by Anna Rossi in 1932. It crosses the river near Turin."])
        >>> document.names
        ['Anna Rossi', 'Turin']
    """
    texts = tuple(text for text in passages if text.strip())
    document = Document(
        passages=texts,
        index=EvidenceIndex([Passage(id=str(at), text=text) for at, text in enumerate(texts)]),
        text="\n".join(texts),
    )
    found: dict[str, None] = {}
    for sentence in document.index.sentences:
        said = sentence.said
        for start, end in names_in(said):
            if start:
                found[said[start:end]] = None
        if len(said) < 1000:
            document.values.extend(parse_values(said))
        if is_fit(said, sentence.count):
            document.fit.append(sentence.index)
    small = set(re.findall(r"(?<![\w'’-])[a-z]+", document.text))
    document.names = [name for name in found if name.lower() not in small and name not in PLAIN]
    return document


def is_fit(said: str, words: int) -> bool:
    """Whether a sentence is whole, plain prose, and can be said by a summary."""
    return (
        6 <= words <= 42
        and said[-1] in ".!"
        and said[0].isupper()
        and not _UNFIT.search(said)
        and bool(_ENGLISH.search(said))
        and bool(_VERB.search(said) or said.split(" ", 1)[0] in ORDERS)
        and said.count("(") == said.count(")")
        and (said.count("'") + said.count("’")) < 4
        and sum(c.isupper() for c in said) < len(said) / 5
        and not said.endswith((" etc.", " e.g.", "..."))
    )


def leans(said: str) -> bool:
    """Whether a sentence needs another one to say what it speaks of."""
    return bool(_LEANS.match(said))


def speaks_of_somebody(said: str) -> bool:
    """Whether a sentence has a pronoun for a person."""
    return bool(_HE_SHE.search(said))


def names_in(sentence: str) -> list[tuple[int, int]]:
    """Where names stand in a sentence; one word at its beginning is no sign of a name.

    Example:
        >>> text = "Yesterday the mayor of New York met Ed Koch."
        >>> [text[a:b] for a, b in names_in(text)]
        ['New York', 'Ed Koch']
    """
    found = []
    for match in _NAME.finditer(sentence):
        start, end = match.span()
        name = match[0]
        first, _, rest = name.partition(" ")
        while first in _NOT_NAMES or (start == 0 and (first in PLAIN or first.endswith("ly"))):
            start, name = start + len(first) + 1, rest
            first, _, rest = name.partition(" ")
        if not name[:1].isupper():
            continue
        if name.endswith(("'s", "’s")):
            end, name = end - 2, name[:-2]
        if name.split()[-1] in _NOT_NAMES or len(name) < 3 or (start == 0 and " " not in name):
            continue
        found.append((start, end))
    return found
