"""The cascade (S3): an entailment model screens every claim, a generative judge decides the doubtful ones."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, get_args

from guardrail.errors import ConfigurationError, JudgeError
from guardrail.evaluation.cascade.budget import JudgeBudget
from guardrail.evaluation.cascade.deadline import judge_in_time
from guardrail.evaluation.judging.verdicts import Judge, Judgement, JudgeVerdict
from guardrail.protocols import Pair
from guardrail.scope import run_scope
from guardrail.scoring.asking import ask_model
from guardrail.scoring.delta_r import CONTRADICTION_THRESHOLD
from guardrail.scoring.entailment import as_entailment, default_entailment
from guardrail.scoring.entailment.declared import Declares
from guardrail.scoring.entailment.identity import fingerprint_of, identity
from guardrail.types import EntailmentScore

OnFailure = Literal["doubt", "model", "raise"]

LOW, HIGH = 0.2, 0.8
SUPPORTED = 0.85
"""N after a YES: enough for every shipped policy, and less than what counts as firm support against a contradiction."""
NOT_SUPPORTED = 0.05
"""N after a NO, a PARTIAL, or a doubt that nobody decided: too little for every shipped policy."""


class Cascade(Declares):
    """An entailment model whose doubtful scores a judge decides.

    **Which pairs are asked.** Those whose N lies in the band from ``low`` to ``high``, unless a verdict cannot turn
    with them. A :class:`~guardrail.scoring.verifier.Verifier` knows where a comparison of values has decided already,
    and that is a veto for every model and every judge. So is a contradiction that a model finds whose N is no fitted
    probability. A calibrated model (it declares ``missing_log_odds``) has put its objection into N, and a claim may
    pass in spite of it: there the judge is asked.

    **What an answer does.** YES lifts N to at least :data:`SUPPORTED` (0.85), but takes back no contradiction that the
    model finds: then N stays as it is. NO and PARTIAL press N to at most :data:`NOT_SUPPORTED` (0.05). The model's own
    N stays in ``EntailmentScore.screened``, what the judge said in ``judged``, and both are in the verdict of the
    claim.

    **When there is no answer**: ``on_failure`` decides about a judge that fails, is too late, is told by the text what
    to say, or writes something that is no verdict, and about a budget that is used up. ``"doubt"`` presses N as a NO
    does: nothing passes because nobody could decide. ``"model"`` lets the model's N stand. ``"raise"`` raises. The
    first two leave ``judged="error:timeout"`` and the like.

    **The band** was chosen with the embedded model on 300 held-out answers of the RAGTruth *train* split (2,234 claims,
    14 % of them marked as hallucinated). 14 % of the claims lie between 0.2 and 0.8 and 12 % are asked, 0.9 per answer.
    Of the 255 wrong decisions about claims that policy ``balanced`` makes, a judge that is always right corrects 99 (of
    295 with ``strict``: 96); one that is wrong in 10 % of the cases corrects 92 and makes 19 new ones. Up to 0.9 twice
    as many claims would be asked, and of those between 0.8 and 0.9 four in five are supported, so that a judge must be
    right more often than that to be of use. Another model needs a band of its own.

    Args:
        judge: The judge, such as :class:`~guardrail.evaluation.judging.LLMJudge`.
        model: The screening model: whatever ``Guardrail(entailment=…)`` takes; ``None`` is the embedded model. A
            :class:`~guardrail.scoring.entailment.shared_cache.SharedCache` belongs here, not around the cascade.
        low: Lower end of the band, in [0, 1].
        high: Upper end of the band, in [low, 1].
        deadline_s: Most seconds that the judge may add to a call of :meth:`score`, and 0.2 more if it ignores that its
            calls are cancelled; ``None`` for no limit. A judge must not block the event loop: nothing can interrupt it.
        judgements_per_run: How many pairs are asked about in one guarded run, all its attempts together; ``None`` for
            no limit. Outside of guarded runs it does not apply.
        budget: How many pairs are asked about in all: a number, or a :class:`JudgeBudget` that several cascades share.
            ``None`` for no limit.
        on_failure: See above.

    Raises:
        ConfigurationError: If one of them cannot be used.

    Where a budget does not reach for all, the pairs nearest to the middle of the band are asked first. What the judge
    knows without a call (``Judgement.cached``) is given back to the budgets. A pair that stands twice in a call is
    asked about once.

    A cascade serves any number of concurrent runs, threads and event loops. Closing model and judge stays with whoever
    made them.

    Example:
        >>> import asyncio
        >>> from guardrail.testing import ScriptedJudge
        >>> judge = ScriptedJudge({"Entry is free.": "yes"})
        >>> cascade = Cascade(judge, model=lambda pairs: [0.5 for _ in pairs])
        >>> asked = [Pair("Entry is free.", claim) for claim in ("Entry is free.", "Tours are free.")]
        >>> [(s.entailment, s.screened, s.judged) for s in asyncio.run(cascade.score(asked))]
        [(0.85, 0.5, 'yes'), (0.05, 0.5, 'no')]
    """

    def __init__(
        self,
        judge: Judge,
        *,
        model: Any = None,
        low: float = LOW,
        high: float = HIGH,
        deadline_s: float | None = 2.0,
        judgements_per_run: int | None = 8,
        budget: int | JudgeBudget | None = None,
        on_failure: OnFailure = "doubt",
    ) -> None:
        if isinstance(judge, type) or not isinstance(judge, Judge):
            raise ConfigurationError(
                f"Cascade needs a judge, an object with judge_id and async judge(pairs), not {_kind(judge)}; "
                "LLMJudge(model) makes one of a model"
            )
        if not (_is_number(low) and _is_number(high) and 0 <= low <= high <= 1):
            raise ConfigurationError(f"the band must satisfy 0 <= low <= high <= 1, got low={low!r}, high={high!r}")
        if deadline_s is not None and not (_is_number(deadline_s) and deadline_s > 0):
            raise ConfigurationError(f"deadline_s must be a number above 0 or None, got {deadline_s!r}")
        if on_failure not in get_args(OnFailure):
            raise ConfigurationError(f"on_failure must be one of {', '.join(get_args(OnFailure))}, got {on_failure!r}")
        if judgements_per_run is not None:
            JudgeBudget(judgements_per_run)  # it says what is wrong with the number
        self._judge = judge
        self._model = default_entailment() if model is None else as_entailment(model)
        self._given = self._model if model is None else model
        self._low, self._high = float(low), float(high)
        self._deadline_s = deadline_s
        self._per_run = judgements_per_run
        self._budget = budget if budget is None or isinstance(budget, JudgeBudget) else JudgeBudget(budget)
        self._on_failure: OnFailure = on_failure

    @property
    def model_id(self) -> str:
        """Names of both, joined by a plus sign."""
        return f"{self._model.model_id}+{self._judge.judge_id}"

    @property
    def budget(self) -> JudgeBudget | None:
        """What is left of the budget for all runs; ``None`` if there is no limit."""
        return self._budget

    def fingerprint(self) -> str:
        """What its scores depend on, as a hash: the model's own fingerprint or name, the judge's name, band and rules.

        Loads the model if it has a fingerprint, and raises what that raises. Deadline and budgets are left out.
        """
        model = fingerprint_of(self._given, self._model) or self._model.model_id
        rules = (self._low, self._high, SUPPORTED, NOT_SUPPORTED, self._on_failure)
        return identity("cascade", model, self._judge.judge_id, repr(rules))

    async def score(self, pairs: Sequence[Pair]) -> list[EntailmentScore]:
        """Score pairs, in order; see :class:`~guardrail.protocols.Entailment`.

        Raises:
            ScoringError: If the model cannot score a pair.
            JudgeError: If the judge cannot judge one and ``on_failure`` is ``"raise"``.

        Cancellation cancels the calls of the judge that are under way; what they took of budgets stays used.
        """
        return await self.score_selected(pairs, [True] * len(pairs))

    async def score_selected(self, pairs: Sequence[Pair], decisive: Sequence[bool]) -> list[EntailmentScore]:
        """:meth:`score`, but the judge is asked only about pairs that can change what is decided.

        Args:
            pairs: The pairs.
            decisive: One entry per pair.

        Raises:
            ValueError: If the lengths differ.
        """
        asked = [Pair(premise, hypothesis) for premise, hypothesis in pairs]
        matters = {pair for pair, decides in zip(asked, decisive, strict=True) if decides}
        screened = await ask_model(self._model, asked, decisive)
        own = dict(zip(asked, screened, strict=True))
        doubtful = {pair: own[pair].entailment for pair in own if pair in matters and self._doubts(own[pair])}
        judged = await self._decide(doubtful)
        return [
            self._combined(own[pair], judged[pair]) if pair in judged else score
            for pair, score in zip(asked, screened, strict=True)
        ]

    def _doubts(self, score: EntailmentScore) -> bool:
        # A calibrated model has put its objection into N: a claim may pass in spite of it, so it is as doubtful as N.
        settled = _objects(score) and self.missing_log_odds is None
        return self._low <= score.entailment <= self._high and not settled

    async def _decide(self, doubtful: Mapping[Pair, float]) -> dict[Pair, Judgement]:
        middle = (self._low + self._high) / 2
        order = sorted(doubtful, key=lambda pair: abs(doubtful[pair] - middle))
        budgets = [budget for budget in (self._of_run(), self._budget) if budget is not None]
        paid = [pair for pair in order if _take(budgets)]
        judgements = dict(zip(paid, await judge_in_time(self._judge, paid, self._deadline_s), strict=True))
        for budget in budgets:
            for judgement in judgements.values():
                if judgement.cached and judgement.verdict is not None:
                    budget.give_back()
        judgements |= {pair: Judgement(error="budget") for pair in order if pair not in judgements}
        failures = [judgement.error for judgement in judgements.values() if judgement.error]
        if failures and self._on_failure == "raise":
            raise JudgeError(
                f"the judge {self._judge.judge_id!r} gave no verdict about {len(failures)} of {len(order)} doubtful "
                f"pairs: {', '.join(sorted(set(failures)))}",
                scorer=self.model_id,
                error=failures[0],
            )
        return judgements

    def _of_run(self) -> JudgeBudget | None:
        """What is left of the budget of the guarded run that asks; ``None`` if there is no limit or no run."""
        scope = run_scope.get()
        if scope is None or self._per_run is None:
            return None
        found: JudgeBudget = scope.setdefault(self, JudgeBudget(self._per_run))
        return found

    def _combined(self, score: EntailmentScore, judgement: Judgement) -> EntailmentScore:
        said = judgement.verdict.value if judgement.verdict is not None else f"error:{judgement.error}"
        if judgement.verdict is JudgeVerdict.YES:
            value = score.entailment if _objects(score) else max(score.entailment, SUPPORTED)
        elif judgement.verdict is None and self._on_failure == "model":
            value = score.entailment
        else:
            value = min(score.entailment, NOT_SUPPORTED)
        return replace(score, entailment=value, screened=score.entailment, judged=said)


def _objects(score: EntailmentScore) -> bool:
    """Whether the model finds that the premise contradicts the claim."""
    against = score.contradiction
    return against is not None and against > max(CONTRADICTION_THRESHOLD, score.entailment)


def _take(budgets: Sequence[JudgeBudget]) -> bool:
    """One judgement of every budget, or of none."""
    taken: list[JudgeBudget] = []
    for budget in budgets:
        if not budget.take():
            for earlier in taken:
                earlier.give_back()
            return False
        taken.append(budget)
    return True


def _kind(value: object) -> str:
    """What a value is: never its repr, which may hold a key."""
    return f"the class {value.__name__}" if isinstance(value, type) else type(value).__name__


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
