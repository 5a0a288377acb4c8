"""A judge that knows the labels and errs now and then: what a cascade would be worth with a judge of that quality.

What it takes for true of the claims of an answer:

* The answer is labelled as grounded: every claim is supported.
* It is labelled as hallucinated, and ``detail.spans`` marks what is: claims that overlap a marked span are not
  supported, the others are. Spans whose only labels are harmless ("Benign", "Consistent") and spans whose offsets do
  not give their text mark nothing.
* It is labelled as hallucinated and no claim overlaps a span, or there are no spans: the claim that the model alone
  ranks as the worst is not supported, the others are. If the model is wrong about which one it is, so is the
  simulation.

The judge then errs about each claim with a fixed probability, the same way every time it is asked about it. It says YES
or NO, never PARTIAL, is never late and never fails. A real judge sees only the evidence that was selected for a claim,
and may rightly say NO where the support stands elsewhere; its errors gather where the evidence is hard to read, which
is where the model is in doubt too. So the figures are what is possible with that rate of errors, not what to expect of
a judge that has it on average.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from guardrail.context import as_passages
from guardrail.errors import ConfigurationError
from guardrail.evaluation.benchmarks.ranking import vetoed
from guardrail.evaluation.cascade.cascading import Cascade
from guardrail.evaluation.judging.verdicts import Judgement, JudgeVerdict
from guardrail.evaluation.labelled import LabelledAnswer
from guardrail.policy import Policy, as_policy
from guardrail.protocols import Pair
from guardrail.scoring.checks import claim_checks
from guardrail.scoring.citations import read_marks
from guardrail.scoring.claims import Preceding
from guardrail.scoring.evidence import EvidenceIndex
from guardrail.scoring.verifier import Verifier
from guardrail.text.segmenter import segment as cut
from guardrail.types import Segment, Verification

_HARMLESS = {"Benign", "Consistent"}
_RESOLUTION = 2**64


class LabelledJudge:
    """A judge that is told the truth about an answer before it is asked about its claims.

    Args:
        error_rate: Probability of the wrong verdict, in [0, 1].
        seed: Equal seeds give equal errors.

    Raises:
        ConfigurationError: If the rate is no number in [0, 1].

    Example:
        >>> judge = LabelledJudge(0.1)
        >>> judge.judge_id
        'simulated'
    """

    def __init__(self, error_rate: float, *, seed: int = 0) -> None:
        if isinstance(error_rate, bool) or not isinstance(error_rate, int | float) or not 0 <= error_rate <= 1:
            raise ConfigurationError(f"the error rate of a judge must be a number from 0 to 1, got {error_rate!r}")
        self.error_rate = float(error_rate)
        self.seed = seed
        self._supported: ContextVar[Mapping[str, bool]] = ContextVar("guardrail_simulated_truth")

    @property
    def judge_id(self) -> str:
        """``"simulated"``."""
        return "simulated"

    async def learn(self, row: LabelledAnswer, alone: Verification, policy: Policy) -> None:
        """Learn the truth about one answer, for what the current task asks from now on.

        Args:
            row: The answer with its label.
            alone: What the model alone says about it.
            policy: The policy that the answer will be checked with.
        """
        passages, _ = as_passages(row.context)
        index = await EvidenceIndex.build(passages)
        segments = cut(row.answer, max_chars=policy.max_segment_chars)
        bad = unsupported_claims(row, alone)
        truth: dict[str, bool] = {}
        for only in _evidence_asked(segments, [passage.id for passage in passages], policy):
            words = policy.evidence_words
            checks = claim_checks(segments, index, before=Preceding(), evidence_words=words, only=only)
            for segment, check in zip(segments, checks, strict=True):
                says_yes = (segment.start not in bad) != self._errs(row, segment.start)
                for window in check.windows:
                    hypothesis = check.pair(window).hypothesis
                    truth[hypothesis] = says_yes and truth.get(hypothesis, True)
        self._supported.set(truth)

    async def judge(self, pairs: Sequence[Pair]) -> list[Judgement]:
        """Say what was learned, with the errors. Claims of other answers are no verdicts: ``error="failed"``."""
        known = self._supported.get({})
        return [self._one(known.get(pair.hypothesis)) for pair in pairs]

    def _one(self, supported: bool | None) -> Judgement:
        if supported is None:
            return Judgement(error="failed")
        return Judgement(verdict=JudgeVerdict.YES if supported else JudgeVerdict.NO)

    def _errs(self, row: LabelledAnswer, start: int) -> bool:
        digest = hashlib.blake2b(f"{self.seed}\0{row.id}\0{start}".encode("utf-8", "surrogatepass"), digest_size=8)
        return int.from_bytes(digest.digest(), "big") < self.error_rate * _RESOLUTION


@dataclass(frozen=True, slots=True)
class Simulation:
    """A verifier that judges with a cascade, and the simulated judge in it.

    Attributes:
        judge: The judge.
        verifier: The verifier.
    """

    judge: LabelledJudge
    verifier: Verifier

    @classmethod
    def of(cls, error_rate: float, *, policy: Policy | str, model: Any = None, seed: int = 0) -> Simulation:
        """Simulate a cascade with the default band, and no limits of time or number.

        Args:
            error_rate: Probability that the judge is wrong about a claim, in [0, 1].
            policy: The policy, of the evidence formula.
            model: The screening model; ``None`` is the embedded one.
            seed: Equal seeds give equal errors.

        Raises:
            ConfigurationError: If the rate is no number in [0, 1], or the policy is of the reference formula, which has
                no claims.
        """
        policy = as_policy(policy)
        if policy.formula == "reference":
            raise ConfigurationError(
                "a judge is simulated claim by claim, and the reference formula has none: use another policy"
            )
        judge = LabelledJudge(error_rate, seed=seed)
        cascade = Cascade(judge, model=model, deadline_s=None, judgements_per_run=None, on_failure="raise")
        return cls(judge, Verifier(policy=policy, entailment=cascade))


def unsupported_claims(row: LabelledAnswer, alone: Verification) -> set[int]:
    """Which claims of an answer are taken as not supported; the rules are those of this module.

    Args:
        row: The answer with its label.
        alone: What the model alone says about it.

    Returns:
        The offsets at which their segments begin.
    """
    if row.grounded:
        return set()
    spans = _marked(row)
    claims = [claim for claim in alone.claims if claim.delta_r is not None]
    found = {c.segment.start for c in claims if any(_overlap(c.segment, start, end) for start, end in spans)}
    if found or not claims:
        return found
    worst = max(claims, key=lambda c: (vetoed(c, alone.delta), c.delta_r or 0.0))
    return {worst.segment.start}


def _evidence_asked(segments: Sequence[Segment], ids: Sequence[str], policy: Policy) -> Iterator[frozenset[str] | None]:
    """The passages that claims are checked against: all, and if citations are looked up, some of them alone.

    A claim is put in the notation of its evidence, so that the judge may know it in other words for each of them.
    """
    yield None
    cited = [
        frozenset(ids[number - 1] for mark in read_marks(s.text) for number in mark.numbers if 1 <= number <= len(ids))
        for s in segments
    ]
    if policy.cite in ("add", "fix") or (policy.cite == "check" and any(cited)):
        yield from map(frozenset, combinations(ids, 1))
        yield from map(frozenset, combinations(ids, 2))
        yield from (own for own in dict.fromkeys(cited) if len(own) > 2)


def _marked(row: LabelledAnswer) -> list[tuple[int, int]]:
    marked = []
    for span in row.detail.get("spans") or ():
        if not isinstance(span, Mapping):
            continue
        start, end, label = span.get("start"), span.get("end"), span.get("label")
        if not isinstance(start, int) or not isinstance(end, int):
            continue
        harmless = isinstance(label, list) and bool(label) and _HARMLESS.issuperset(map(str, label))
        if not harmless and row.answer[start:end] == span.get("text", row.answer[start:end]):
            marked.append((start, end))
    return marked


def _overlap(segment: Segment, start: int, end: int) -> bool:
    return start < segment.body_end and segment.body_start < end
