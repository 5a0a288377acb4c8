"""Which sentences of which passages a claim is checked against."""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, pairwise
from typing import TYPE_CHECKING, TypeVar

from guardrail.scoring.entailment.lexical import content_words
from guardrail.scoring.entailment.worker import ScoringWorker
from guardrail.scoring.markup import plain
from guardrail.scoring.structured import units
from guardrail.text.bodies import bodies
from guardrail.text.tokens import fold, tokens
from guardrail.types import Clash, EvidenceSpan, Passage

if TYPE_CHECKING:
    from guardrail.scoring.record_clashes import RecordIndex

T = TypeVar("T")
_COMMON_SHARE = 0.3
_MANY_SENTENCES = 60
_SEPARATE_WINDOWS = 2
_RELEVANT_SHARE = 0.4
_SAID_AGAIN = 0.3
"""What a word of the claim is still worth after a chosen sentence has it: a second sentence about the same thing adds
less than a first one about the rest of the claim."""
_MOST_CONSIDERED = 60
_reading = ScoringWorker()
_INLINE_CHARS = 400
_START = 5


@dataclass(frozen=True, kw_only=True)
class Sentence:
    """A sentence of a passage, ready for comparison.

    Attributes:
        index: Position over all passages.
        span: Where it stands.
        said: The sentence; for structured passages the fact in words.
        words: Its tokens.
        count: How many words it counts for in the evidence budget.
    """

    index: int
    span: EvidenceSpan
    said: str = field(repr=False)
    words: tuple[str, ...] = field(repr=False)
    count: int

    @cached_property
    def content(self) -> frozenset[str]:
        """Its content words, folded."""
        return content_words(self.said)


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Evidence for one claim: what a model gets as one premise.

    Attributes:
        premise: The sentences in the order of the document.
        sentences: The same sentences, best first.
        words: Tokens of the premise.
        twins: Ids of other passages that have one of the sentences, word for word.
        objections: What the records of the context object to in the claim, wherever in a record it stands.
    """

    premise: str = field(repr=False)
    sentences: tuple[Sentence, ...]
    words: tuple[str, ...] = field(repr=False)
    twins: tuple[str, ...] = ()
    objections: tuple[Clash, ...] = ()

    @property
    def passage_ids(self) -> tuple[str, ...]:
        """Ids of the passages in it, best first."""
        return tuple(dict.fromkeys(s.span.passage_id for s in self.sentences))


class EvidenceIndex:
    """The sentences of a context, searchable by word.

    Building it is linear in the context. It is read-only afterwards, so any number of runs may share it.

    Args:
        passages: The context.
    """

    def __init__(self, passages: Sequence[Passage]) -> None:
        self.passages = tuple(passages)
        self.sentences: list[Sentence] = []
        postings: dict[str, list[int]] = defaultdict(list)
        self._twins: dict[int, list[str]] = {}
        seen: dict[tuple[str, ...], int] = {}
        structured: list[Passage] = []
        for passage in passages:
            pieces, is_structured = _pieces(passage.text)
            if is_structured:
                structured.append(passage)
            for start, end, said in pieces:
                words = tuple(tokens(said))
                if not words:
                    continue
                wording = tuple(fold(said).casefold().split())
                if wording in seen:
                    self._twins.setdefault(seen[wording], []).append(passage.id)
                    continue
                seen[wording] = len(self.sentences)
                self._add(passage, start, end, said, words, postings)
        self._shortest = min((sentence.count for sentence in self.sentences), default=1)
        total = len(self.sentences)
        # Hundreds of tuples of numbers per run: the garbage collector, which stops the event loop, passes them over.
        self._postings = {word: tuple(found) for word, found in postings.items()}
        self._idf = {word: math.log(1 + total / len(found)) for word, found in self._postings.items()}
        self._records = _records(structured) if structured else None

    def _add(
        self,
        passage: Passage,
        start: int,
        end: int,
        said: str,
        words: tuple[str, ...],
        postings: Mapping[str, list[int]],
    ) -> None:
        index = len(self.sentences)
        span = EvidenceSpan(passage_id=passage.id, start=start, end=end, text=passage.text[start:end])
        count = max(1, len(said.split()))
        # "(Document 7)" of three passages is content, as it is in a claim.
        said = plain(said, mentions=len(self.passages))
        self.sentences.append(Sentence(index=index, span=span, said=said, words=words, count=count))
        for word in {beginning(word) for word in words}:
            postings[word].append(index)

    @classmethod
    async def build(cls, passages: Sequence[Passage]) -> EvidenceIndex:
        """Build an index without blocking the event loop.

        One index at a time, in a thread: a millisecond for each of the runs that begin together would add up, and
        several threads would keep the interpreter from the loop for several of its turns. A few sentences are indexed
        at once, as the thread would cost more.
        """
        return cls(passages) if _is_small(passages) else await _reading.run(cls, passages)

    async def off_loop(self, work: Callable[[], T]) -> T:
        """Do something that reads the index: in the thread where indexes are built, unless it is a few sentences.

        Args:
            work: A millisecond or so per claim; of many streams that go on in one turn of the loop they would add up.
        """
        return work() if _is_small(self.passages) else await _reading.run(work)

    def select(
        self,
        claim: str,
        *,
        before: str = "",
        max_words: int = 110,
        under_label: str = "",
        only: frozenset[str] | None = None,
    ) -> list[Window]:
        """Choose the evidence for a claim.

        Args:
            claim: The claim, without markup.
            before: Text that precedes it in the answer; its words count half, so that pronouns find their subject.
            max_words: Budget of one window.
            under_label: The claim with the label that it stands under in a list, if it has one.
            only: Ids of the passages to choose from; ``None`` for all.

        Returns:
            First the best sentences of all passages joined; then, if several passages speak of the same thing, a
            window for each of the best passages alone, so that one passage cannot silence another. Empty if the
            context has no sentence at all, or ``only`` has none that shares a word with the claim.

        The cost is linear in the claim and in the sentences that share a word with it, but for a logarithm.
        """
        if not self.sentences:
            return []
        weights = self._weights(claim, before)
        shared = self._shared(weights)
        if only is not None:
            shared = {i: words for i, words in shared.items() if self._stands_in(i, only)}
        if not shared:
            return (
                []
                if only is not None
                else self._objected(
                    [self._window(range(min(3, len(self.sentences))), max_words)], claim, under_label, only
                )
            )
        scores = {i: self._gain(i, words, weights) for i, words in shared.items()}
        windows = [self._window(self._covering(shared, weights, scores), max_words)]
        ranked = sorted(scores, key=lambda i: (-scores[i], i))
        by_passage: dict[str, dict[int, list[str]]] = defaultdict(dict)
        for i in ranked:
            if scores[i] >= scores[ranked[0]] * _RELEVANT_SHARE:
                by_passage[self.sentences[i].span.passage_id][i] = shared[i]
        if len(by_passage) > 1:
            best_passages = list(by_passage.values())[: _SEPARATE_WINDOWS + 1]
            windows += [self._window(self._covering(own, weights, scores), max_words // 2) for own in best_passages]
        return self._objected(_distinct(windows), claim, under_label, only)

    def _objected(
        self, windows: list[Window], claim: str, under_label: str, only: frozenset[str] | None
    ) -> list[Window]:
        """The windows with what the records object to: in the first one of all passages, and in those from the same."""
        if self._records is None:
            return windows
        found = self._records.clashes(claim) or (self._records.clashes(under_label) if under_label else ())
        if not found:
            return windows
        return [
            replace(
                window,
                objections=tuple(
                    clash
                    for source, clash in found
                    if (at == 0 and only is None) or source in window.passage_ids or source in window.twins
                ),
            )
            for at, window in enumerate(windows)
        ]

    def knows(self, word: str) -> bool:
        """Whether a word stands in any passage, in any form.

        Example:
            >>> index = EvidenceIndex([Passage(id="1", text="The Americans left Bergen. WiFi is free.")])
            >>> [index.knows(word) for word in ("America", "Bergen's", "Wi-Fi", "Oslo")]
            [True, True, True, False]
        """
        parts = [part for part in tokens(word) if len(part) > 1]
        return "".join(parts) in self._written_as_one or all(map(self._knows_part, parts))

    def _knows_part(self, part: str) -> bool:
        return beginning(part) in self._postings or (len(part) > _START and part[:_START] in self._starts)

    @cached_property
    def _starts(self) -> frozenset[str]:
        """The first letters of all long words: "American" for "America"."""
        return frozenset(word[:_START] for s in self.sentences for word in s.words if len(word) >= _START)

    @cached_property
    def _written_as_one(self) -> frozenset[str]:
        """Short words, and two of them as one: "WiFi" and "Wi-Fi"."""
        short = frozenset(word for s in self.sentences for word in s.words if len(word) <= 2 * _START)
        pairs = (pair for s in self.sentences for pair in pairwise(s.words) if len(pair[0]) < _START > len(pair[1]))
        return short.union(map("".join, pairs))

    def plainly_answers(self, question: str) -> bool:
        """Whether one sentence has every content word of a question and something more to say about it.

        Args:
            question: What the user asked.

        Returns:
            ``True`` only if the question has at least two content words and a sentence has them all.

        Example:
            >>> index = EvidenceIndex([Passage(id="1", text="Goats have four stomach chambers.")])
            >>> index.plainly_answers("How many stomach chambers does a goat have?")
            True
            >>> index.plainly_answers("How many horns does a goat have?")
            False
        """
        wanted = content_words(question)
        if len(wanted) < 2:
            return False
        return any(wanted < s.content for s in self.sentences)

    def _weights(self, claim: str, before: str) -> dict[str, float]:
        """What each stem of the claim is worth; words that stand in most of a large context tell nothing apart."""
        wanted: dict[str, float] = {beginning(word): 0.5 for word in tokens(before)} if before else {}
        wanted.update((beginning(word), 1.0) for word in tokens(claim))
        total = len(self.sentences)
        return {
            word: weight * self._idf[word]
            for word, weight in wanted.items()
            if word in self._idf and not (total > _MANY_SENTENCES and len(self._postings[word]) > _COMMON_SHARE * total)
        }

    def _shared(self, weights: Iterable[str]) -> dict[int, list[str]]:
        """Per sentence, the stems that it shares with the claim; sentences without any are left out."""
        shared: dict[int, list[str]] = defaultdict(list)
        for word in weights:
            for index in self._postings[word]:
                shared[index].append(word)
        return shared

    def _stands_in(self, index: int, ids: frozenset[str]) -> bool:
        return self.sentences[index].span.passage_id in ids or not ids.isdisjoint(self._twins.get(index, ()))

    def _gain(self, index: int, words: Iterable[str], weights: Mapping[str, float]) -> float:
        return sum(map(weights.__getitem__, words)) / (1.0 + 0.01 * len(self.sentences[index].words))

    def _covering(
        self, shared: Mapping[int, Sequence[str]], weights: Mapping[str, float], scores: Mapping[int, float]
    ) -> Iterator[int]:
        """Sentences, each time the one that adds most to those before it.

        Gains only fall as words are covered, so the top of a heap is current if nothing was chosen since it was pushed
        (lazy evaluation; Minoux 1978): a few evaluations per choice instead of one per sentence.
        """
        left = dict(weights)
        heap = [(-scores[index], index, 0) for index in shared]
        heapq.heapify(heap)
        chosen = 0
        while heap and chosen < _MOST_CONSIDERED:
            _, index, known = heapq.heappop(heap)
            if known < chosen:
                heapq.heappush(heap, (-self._gain(index, shared[index], left), index, chosen))
                continue
            yield index
            chosen += 1
            for word in shared[index]:
                left[word] *= _SAID_AGAIN

    def _window(self, ranked: Iterable[int], max_words: int) -> Window:
        chosen: list[Sentence] = []
        used = 0
        for index in ranked:
            sentence = self.sentences[index]
            if chosen and used + sentence.count > max_words:
                continue
            chosen.append(sentence)
            used += sentence.count
            if used + self._shortest > max_words:
                break  # there is no room for any other
        ordered = sorted(chosen, key=lambda s: s.index)
        return Window(
            premise=" ".join(s.said for s in ordered),
            sentences=tuple(chosen),
            words=tuple(chain.from_iterable(s.words for s in ordered)),
            twins=tuple(pid for s in chosen for pid in self._twins.get(s.index, ())),
        )


def beginning(word: str) -> str:
    """The beginning of a long word, so that its forms find each other.

    Coarser than the stems by which sentences are compared: a search may find too much, a comparison must not.

    Example:
        >>> beginning("cooking") == beginning("cooked"), beginning("goat")
        (True, 'goat')
    """
    return word[: max(4, len(word) - 3)] if len(word) > 5 else word


def _records(passages: Sequence[Passage]) -> RecordIndex:
    # Only contexts with records pay for the patterns that these compile.
    from guardrail.scoring.record_clashes import RecordIndex
    from guardrail.scoring.record_facts import record_facts

    return RecordIndex([fact for passage in passages for fact in record_facts(passage.text, source=passage.id)])


def _is_small(passages: Sequence[Passage]) -> bool:
    return sum(len(passage.text) for passage in passages) <= _INLINE_CHARS


def _pieces(text: str) -> tuple[list[tuple[int, int, str]], bool]:
    """The sentences of a passage with their offsets, facts in words if it is a record or a table; and if it is."""
    facts = units(text)
    if facts is not None:
        return [(fact.start, fact.end, fact.said) for fact in facts], True
    return bodies(text), False


def _distinct(windows: Sequence[Window]) -> list[Window]:
    unique: dict[frozenset[int], Window] = {}
    for window in windows:
        unique.setdefault(frozenset(s.index for s in window.sentences), window)
    return list(unique.values())
