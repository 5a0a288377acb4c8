"""Word overlap in the place of an entailment model: a declared baseline, not a judge."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from guardrail.protocols import Pair
from guardrail.scoring.entailment.worker import shared_worker
from guardrail.text.tokens import tokens
from guardrail.types import EntailmentScore

_STOP_WORDS = frozenset(
    "a an the this that these those it its he she they them his her their we you i of in on at to for from by with as "
    "and or is are was were be been being has have had do does did will would can could may might shall should must "
    "there here which who whom whose what when where how than then so also into over under about "
    "il lo la i gli le un uno una di a da in con su per tra fra e o è sono era ha hanno del dello della dei degli "
    "delle al allo alla ai agli alle dal dalla nel nella nei nelle sul sulla che chi si ci".split()
)
_QUESTION_WORDS = frozenset(
    "what when where who whom whose which why how many much long far often please tell me my your "
    "quanto quanti quante quale quali quando dove perché cosa come".split()
)
_STOP_WEIGHT = 0.1
_NUMBER_WEIGHT = 2.0
_NUMBER_WORDS = {
    word: str(value)
    for value, word in enumerate(
        "two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
        "eighteen nineteen twenty".split(),
        start=2,
    )
} | dict(zip("thirty forty fifty sixty seventy eighty ninety".split(), map(str, range(30, 100, 10)), strict=True))
_INLINE_CHARS = 8_000  # a fraction of a millisecond of work; more leaves the event loop


class LexicalEntailment:
    """Scores a pair by the share of the claim's words that the premise has.

    It cannot judge: it sees no negation, no order, no synonym, and never says "contradiction". It exists so that the
    package works without a model, and every verdict that rests on it names the scorer ``"lexical"``.

    The score is the weighted share of the claim's distinct words found in the premise: inflections folded, stop words
    at a tenth of the weight of others, numbers at twice the weight. Values are compared by the clash checks.

    Example:
        >>> import asyncio
        >>> pairs = [Pair("The plan costs 100 euros.", "The plan cost 50 euros.")]
        >>> round(asyncio.run(LexicalEntailment().score(pairs))[0].entailment, 3)
        0.608
    """

    @property
    def model_id(self) -> str:
        """``"lexical"``: no model judged."""
        return "lexical"

    async def score(self, pairs: Sequence[Pair]) -> list[EntailmentScore]:
        """Score pairs, in order; see :class:`~guardrail.protocols.Entailment`."""
        if sum(len(premise) + len(hypothesis) for premise, hypothesis in pairs) > _INLINE_CHARS:
            return await shared_worker().run(_score_all, pairs)
        return _score_all(pairs)


def coverage(premise_words: frozenset[str], hypothesis: str) -> float:
    """The share of a claim's words that a premise has, in [0, 1].

    Args:
        premise_words: Folded words of the premise, from :func:`words`.
        hypothesis: The claim.

    Returns:
        Weighted share of the words; 0.0 for a claim without words.
    """
    total = found = 0.0
    for token in dict.fromkeys(tokens(hypothesis)):
        weight = _STOP_WEIGHT if token in _STOP_WORDS else _NUMBER_WEIGHT if token[0].isdecimal() else 1.0
        total += weight
        found += weight * (fold_word(token) in premise_words)
    return found / total if total else 0.0


def words(text: str) -> frozenset[str]:
    """The distinct folded words of a text."""
    return frozenset(map(fold_word, tokens(text)))


def content_words(text: str) -> frozenset[str]:
    """The folded words of a text without stop words and question words."""
    return frozenset(fold_word(t) for t in tokens(text) if t not in _STOP_WORDS and t not in _QUESTION_WORDS)


@lru_cache(maxsize=16_384)
def fold_word(word: str) -> str:
    """Fold a token so that inflections of one word meet: plural, -ed, -ing, possessive, Italian endings.

    The result is a key and not a word. Numbers keep every digit (grouping commas aside); number words become digits.

    Example:
        >>> fold_word("policies") == fold_word("policy"), fold_word("planned") == fold_word("plans")
        (True, True)
        >>> fold_word("thirty"), fold_word("12,480")
        ('30', '12480')
    """
    if word[0].isdecimal():
        head, _, tail = word.rpartition(",")
        return head.replace(",", "") + tail if head and len(tail) == 3 else word
    if word in _NUMBER_WORDS:
        return _NUMBER_WORDS[word]
    if "'" in word:
        word = max(word.split("'"), key=len)
    if len(word) < 4:
        return word
    if word.endswith(("ies", "ied")):
        return word[:-3] + "y"
    for suffix in ("ing", "ed", "es", "s"):
        if word.endswith(suffix) and len(word) - len(suffix) >= 3 and not word.endswith(("ss", "us", "is")):
            word = word[: -len(suffix)]
            break
    if len(word) >= 4 and (word[-1] == "e" or (len(word) >= 5 and word[-1] in "aio")):
        word = word[:-1]
    if len(word) >= 4 and word[-1] == word[-2]:
        word = word[:-1]
    return word


def _score_all(pairs: Sequence[Pair]) -> list[EntailmentScore]:
    cache: dict[str, frozenset[str]] = {}
    scores = []
    for premise, hypothesis in pairs:
        premise_words = cache.get(premise)
        if premise_words is None:
            premise_words = cache[premise] = words(premise)
        scores.append(EntailmentScore(entailment=coverage(premise_words, hypothesis)))
    return scores
