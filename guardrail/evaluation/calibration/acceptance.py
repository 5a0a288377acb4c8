"""At which δ a policy accepts an answer: everything that a calibration needs to know about it, collected once.

The *critical δ* of an answer is the smallest δ at which the policy accepts it. It is found by asking the policy,
never by a formula of its own: :func:`~guardrail.scoring.delta_r.judge` and :func:`~guardrail.policy.decide_answer`
change their mind only where δ passes the ΔR of a window of evidence, so it is enough to ask at those values. Between
two of them nothing changes.

Most answers are accepted at every δ from their critical one. Some are not: passages that disagree can be a conflict,
which is released, at one δ and a contradiction at a larger one. So the intervals are kept, and the critical δ is the
lower end of the first. Whatever the shape, *accepted at δ* implies *critical δ ≤ δ*, which is all that
:mod:`~guardrail.evaluation.calibration.conformal` relies on.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from guardrail.context import as_passages
from guardrail.errors import JudgeError
from guardrail.evaluation.benchmarks.ranking import answer_score, vetoed
from guardrail.evaluation.labelled import LabelledAnswer
from guardrail.policy import AnswerDecision, Policy, decide_answer
from guardrail.scoring.citations import read_marks
from guardrail.scoring.delta_r import ROUNDING, WindowSignals, judge
from guardrail.scoring.evidence import EvidenceIndex, Window
from guardrail.scoring.languages import untrained_language
from guardrail.scoring.markup import plain
from guardrail.scoring.verifier import Verifier
from guardrail.text.segmenter import segment
from guardrail.types import ClaimVerdict, Clash, ContextState, ReleaseMode, Segment, SegmentKind

Interval = tuple[float, float]
ALWAYS: Interval = (-math.inf, math.inf)
_UNKNOWN = ("no_context", "scoring_error")
_FAILED = "error:"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimSignals:
    """What the verdict about one scored segment follows from, without a character of it.

    Attributes:
        segment: The segment without its text.
        windows: Its windows of evidence with their signals, the joined evidence first; at least one.
        languages: Per window: the language, if the model was not trained for it.
    """

    segment: Segment
    windows: tuple[WindowSignals, ...]
    languages: tuple[str | None, ...]

    def verdict(self, delta: float, lexical_weight: float) -> ClaimVerdict:
        """The verdict at a δ and a lexical weight, as the verifier gives it, without texts."""
        label, ground = judge(self.windows, delta=delta, lexical_weight=lexical_weight)
        at = next(number for number, window in enumerate(self.windows) if window is ground)
        return ClaimVerdict(
            segment=self.segment,
            verdict=label,
            rouge_l=ground.rouge_l,
            entailment=ground.capped_entailment,
            contradiction=ground.contradiction,
            delta_r=ground.delta_r(lexical_weight),
            clashes=ground.clashes,
            language=self.languages[at],
        )

    def accepted(self, policy: Policy, lexical_weight: float) -> list[Interval]:
        """The intervals of δ, closed below and open above, in which a policy lets the segment pass."""
        turns = {0.0}
        for window in self.windows:
            own = window.delta_r(lexical_weight)
            turns |= {own, _smallest_that_reaches(own)}
        found: list[Interval] = []
        ends = sorted(turns)
        for start, end in zip(ends, [*ends[1:], math.inf], strict=True):
            if policy.override(delta=start).passes(self.verdict(start, lexical_weight)):
                joins = found and found[-1][1] == start
                found[-1:] = [(found[-1][0], end)] if joins else [*found[-1:], (start, end)]
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerSignals:
    """What the decision about one labelled answer follows from; independent of δ and the lexical weight.

    Attributes:
        hallucinated: What people said.
        group: What it shares with others, such as its prompt; ``None`` if that is not asked for.
        claims: Its scored segments, in order.
        decided: The decision about an answer that no δ changes, as nothing in it is scored, or a claim cannot be; else
            ``None``.
        state: Whether there was something to check against.
        cited: Of every segment with citation marks, how many claims are scored up to its end.
        avoidable: Whether it begins with an abstention although the passages plainly have the answer.
    """

    hallucinated: bool
    group: str | None = None
    claims: tuple[ClaimSignals, ...] = ()
    decided: AnswerDecision | None = None
    state: ContextState = ContextState.GIVEN
    cited: tuple[int, ...] = ()
    avoidable: bool = False

    def verdicts(self, delta: float, lexical_weight: float) -> list[ClaimVerdict]:
        """The verdicts about its scored segments."""
        return [claim.verdict(delta, lexical_weight) for claim in self.claims]

    def accepted(self, policy: Policy, lexical_weight: float) -> Acceptance:
        """At which δ a policy accepts it.

        Args:
            policy: The policy whose signals these are; its δ and its lexical weight do not count.
            lexical_weight: Exponent on ROUGE-L.
        """
        if self.decided is not None:
            return Acceptance(intervals=(ALWAYS,) if self.decided.accepted else (), reason=self.decided.reason)
        intervals: list[Interval] = [(0.0, math.inf)]
        for claim in self.claims:
            intervals = _both(intervals, claim.accepted(policy, lexical_weight))
        return Acceptance(intervals=tuple(i for i in intervals if self._passes(policy, i[0], lexical_weight)))

    def _passes(self, policy: Policy, delta: float, lexical_weight: float) -> bool:
        return decide_answer(policy.override(delta=delta), self.verdicts(delta, lexical_weight), self.state).accepted

    def score(self, policy: Policy, lexical_weight: float) -> float | None:
        """Where it stands in the order of being stopped.

        See :func:`~guardrail.evaluation.benchmarks.quality.answer_score`.

        As in a live run, the claims behind the first one that fails do not count, if it ends the attempt.

        Args:
            policy: The policy, with the δ to apply.
            lexical_weight: Exponent on ROUGE-L.

        Returns:
            The score; ``None`` where a live run with this answer would have none either, see
            :func:`~guardrail.evaluation.history.observer.first_attempt_score`: something in it cannot be checked, or
            the run stops before anything is known to be wrong.
        """
        if self.decided is not None and self.decided.reason in _UNKNOWN:
            return None
        observes = policy.release is ReleaseMode.OBSERVE
        if policy.strict and not observes and self.state is not ContextState.GIVEN:
            return None
        if self.avoidable and not observes and policy.max_attempts > 1:
            return None
        return _live_score(self.verdicts(policy.delta, lexical_weight), policy)

    def uncertain_score(self, policy: Policy, lexical_weight: float) -> float:
        """The lowest score at which live runs with this answer may differ from :meth:`score`; else infinite.

        Where citation marks are corrected, one that cannot be may stop a run.
        """
        if policy.on_wrong_citation != "fail" or policy.cite == "check":
            return math.inf
        scored = self.verdicts(policy.delta, lexical_weight)
        own = [(vetoed(verdict, policy.delta), verdict.delta_r or 0.0) for verdict in scored]
        return min((answer_score(own[:count]) for count in self.cited), default=math.inf)


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """At which δ a policy accepts one answer.

    Attributes:
        intervals: Of δ, closed below and open above, in order; from minus infinity if no δ stops the answer, and none
            if no δ lets it pass.
        reason: Why δ does not matter, as in :class:`~guardrail.types.Verification`; empty if it does.

    Example:
        >>> Acceptance(intervals=((0.4, float("inf")),)).critical_delta
        0.4
        >>> Acceptance(intervals=((0.4, 0.5), (0.7, float("inf")))).at(0.6)
        False
    """

    intervals: tuple[Interval, ...]
    reason: str = ""

    @property
    def critical_delta(self) -> float:
        """The smallest δ at which it is accepted: −∞ if it always is, ∞ if it never is."""
        return self.intervals[0][0] if self.intervals else math.inf

    def at(self, delta: float) -> bool:
        """Whether it is accepted at a δ."""
        return any(start <= delta < end for start, end in self.intervals)


async def signals_of(row: LabelledAnswer, verifier: Verifier, *, model: Any, group: str | None = None) -> AnswerSignals:
    """Collect the signals of one labelled answer.

    Args:
        row: The answer.
        verifier: Scores it; segments, evidence and comparisons are those of its policy.
        model: The entailment model as it was given to the verifier, for the languages that it declares.
        group: See :class:`AnswerSignals`.

    Raises:
        ScoringError: If the model fails, or a judge gave no verdict where it was asked.

    Cancellation drops scoring that has not begun.
    """
    policy = verifier.policy
    passages, state = as_passages(list(row.context))
    index = await EvidenceIndex.build(passages)
    segments = segment(row.answer, max_chars=policy.max_segment_chars)
    found = await verifier.signals(segments, index, state=state, question=row.question)

    def language(piece: Segment, window: Window) -> str | None:
        source = next(passage.text for passage in index.passages if passage.id in window.passage_ids)
        return untrained_language(model, plain(piece.body), window.premise, source)

    claims = tuple(
        ClaimSignals(
            segment=replace(piece, text=""),
            windows=tuple(_without_text(own) for _, own in windows),
            languages=tuple(language(piece, window) for window, _ in windows),
        )
        for piece, windows in zip(segments, found, strict=True)
        if windows
    )
    failed = {w.judged.removeprefix(_FAILED) for c in claims for w in c.windows if w.judged.startswith(_FAILED)}
    if failed:
        raise JudgeError(
            f"the judge gave no verdict about a claim of answer {row.id} ({', '.join(sorted(failed))}), and nothing is "
            "promised from answers that were not judged: give it more time or a larger budget for the calibration",
            scorer=verifier.scorer,
            error=min(failed),
        )
    abstains = next((at for at, piece in enumerate(segments) if piece.kind is SegmentKind.REFUSAL), None)
    begins_so = abstains is not None and not any(found[: abstains + 1])
    decided = None
    if not claims or any(piece.kind.checked and not windows for piece, windows in zip(segments, found, strict=True)):
        nothing = [
            ClaimVerdict.unscored(s, "no_context" if s.kind.checked else "kind", verifier.scorer) for s in segments
        ]
        decided = decide_answer(policy, nothing, state)
    return AnswerSignals(
        hallucinated=not row.grounded,
        group=group,
        claims=claims,
        decided=decided,
        state=state,
        cited=tuple(sum(map(bool, found[: at + 1])) for at, piece in enumerate(segments) if read_marks(piece.text)),
        avoidable=begins_so and await index.off_loop(lambda: index.plainly_answers(row.question)),
    )


async def score_with_citations(row: LabelledAnswer, signals: AnswerSignals, verifier: Verifier) -> float | None:
    """:meth:`AnswerSignals.score` of what a live run reads until a wrong citation stops it, if the policy fails these.

    Args:
        row: The answer.
        signals: Its signals.
        verifier: With the policy that is live.

    Raises:
        ScoringError: If the model fails.

    Cancellation drops scoring that has not begun.
    """
    policy, weight = verifier.policy, verifier.lexical_weight
    score = signals.score(policy, weight)
    if score is None or not signals.cited or policy.on_wrong_citation != "fail" or policy.cite != "check":
        return score
    segments = segment(row.answer, max_chars=policy.max_segment_chars)
    passages, state = as_passages(list(row.context))
    index = await EvidenceIndex.build(passages)
    found = await verifier.check(segments, index, state=state, question=row.question)
    return _live_score(found, policy)


def _live_score(verdicts: Sequence[ClaimVerdict], policy: Policy) -> float | None:
    """The score of what a live run reads of an answer; ``None`` if it stops at a language that it cannot judge."""
    stop = next((at for at, verdict in enumerate(verdicts) if not policy.passes(verdict)), None)
    if stop is not None and policy.release is not ReleaseMode.OBSERVE and policy.on_exhausted != "best":
        if verdicts[stop].language is not None and policy.on_unknown_language == "fail":
            return None
        verdicts = verdicts[: stop + 1]
    return answer_score((vetoed(v, policy.delta), v.delta_r) for v in verdicts if v.delta_r is not None)


def _without_text(window: WindowSignals) -> WindowSignals:
    clashes = tuple(
        Clash(kind=c.kind, claim_text="", evidence_text="", contradicts=c.contradicts) for c in window.clashes
    )
    return replace(window, clashes=clashes)


def _smallest_that_reaches(delta_r: float) -> float:
    """The smallest δ ≥ 0 that counts as reaching a ΔR where :data:`ROUNDING` is allowed for."""
    delta = max(0.0, delta_r - ROUNDING)
    while delta > 0.0 and math.nextafter(delta, 0.0) + ROUNDING >= delta_r:
        delta = math.nextafter(delta, 0.0)
    while delta + ROUNDING < delta_r:
        delta = math.nextafter(delta, math.inf)
    return delta


def _both(left: Sequence[Interval], right: Iterable[Interval]) -> list[Interval]:
    """What lies in an interval of either list."""
    others = list(right)
    overlaps = ((max(a, c), min(b, d)) for a, b in left for c, d in others)
    return sorted((start, end) for start, end in overlaps if start < end)
