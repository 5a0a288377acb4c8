"""Which words of a hypothesis differ from the sentence of the premise that it was made from."""

from __future__ import annotations

import difflib
import re

from guardrail.text.segmenter import segment
from guardrail.training.pairs import Span

_WORD = re.compile(r"\w+")
_ALIKE = 0.6
_MOST = 0.5


def changed_words(premise: str, hypothesis: str) -> tuple[Span, ...] | None:
    """Find the words that an edit has changed or added.

    For pairs that were made by editing one sentence of the premise, as data sets with swapped numbers, names or
    negations are.

    Args:
        premise: The evidence.
        hypothesis: A sentence of it, edited.

    Returns:
        Character ranges of the hypothesis; ``None`` if no sentence is like it, nothing but missing words tells them
        apart, or more than half of the words differ: then nobody knows which ones are wrong.

    Example:
        >>> claim = "The mill was sold in 1950."
        >>> [claim[start:end] for start, end in changed_words("Anna came. The mill was sold in 1932.", claim)]
        ['1950']
    """
    words = [(m.start(), m.end(), m.group().lower()) for m in _WORD.finditer(hypothesis)]
    own = [word for *_, word in words]
    nearest: tuple[float, difflib.SequenceMatcher[str]] | None = None
    for sentence in segment(premise):
        found = _WORD.findall(sentence.body.lower())
        matcher = difflib.SequenceMatcher(None, found, own, autojunk=False)
        if nearest is None or matcher.ratio() > nearest[0]:
            nearest = matcher.ratio(), matcher
    if nearest is None or nearest[0] < _ALIKE:
        return None
    changed = [
        (words[first][0], words[last - 1][1])
        for kind, _, _, first, last in nearest[1].get_opcodes()
        if kind in ("replace", "insert") and last > first
    ]
    touched = sum(any(a < end and start < b for a, b in changed) for start, end, _ in words)
    return tuple(changed) if changed and touched <= _MOST * len(words) else None
