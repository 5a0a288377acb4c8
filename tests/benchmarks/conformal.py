"""Whether the promise of a calibration holds: calibrate on one half of labelled answers, count misses on the other.

Usage::

    python -m tests.benchmarks.conformal [--data FILE] [--cache FILE] [--splits 200] [--policy balanced]
    python -m tests.benchmarks.conformal --data FILE --test FILE [--cache FILE] [--test-cache FILE]

Every answer is scored once (minutes; ``--cache`` keeps the signals). Then answers are split at random, again and again,
and one half is calibrated by the code that ``guardrail calibrate`` runs. A *miss* is a hallucinated answer of the other
half that is accepted. For exchangeable answers its mean over splits is at most the target; a single split may be above,
about every second one is. ``PASS``: the mean is at most the target plus two standard errors of that mean over splits.
Most splits have to lead to a profile: those that do not count as kept promises, and nothing but them would be a
promise about nothing. The exit status is 1 if one line fails.

``answers`` splits answers; ``few`` calibrates on as few hallucinated ones as the promise needs, where one answer more
or less below δ shows at once; ``weight`` does so too and fits the lexical weight in every split; ``prompts`` keeps all
answers to one prompt (``detail.source_id``) in one half and calibrates on one answer of each; ``sure`` promises with
confidence 0.9 for the calibration at hand, so that few splits, not half of them, are above the target (more than a
tenth are, because a half of the answers does not show the miss rate exactly; more than 30 % are a ``FAIL`` too).

With ``--test`` there is one calibration per target on FILE, and its misses are counted on another file: that is what a
profile would do that was shipped, for answers that are not exchangeable with those it was made from. ``FAIL``: the
exact 95 % interval of the miss rate lies above the target.
"""

from __future__ import annotations

import argparse
import math
import random
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from guardrail.errors import CalibrationError
from guardrail.evaluation.calibration.acceptance import Acceptance, AnswerSignals
from guardrail.evaluation.calibration.conformal import binomial_interval
from guardrail.evaluation.calibration.fitting import Fitted, Wanted, fit
from guardrail.evaluation.labelled import LabelledAnswer
from guardrail.policy import Policy, as_policy
from guardrail.scoring.entailment import default_entailment
from guardrail.scoring.verifier import Verifier
from tests.benchmarks.conformal_cache import load
from tests.benchmarks.fit_calibration import held_out

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data" / "eval"
TARGETS = (0.05, 0.10, 0.20)
CONFIDENCE = 0.9
SURE_ABOVE = 0.3  # of the splits: about 18 % for halves of equal size, and half of them without the confidence
GROUP = "source_id"


@dataclass
class Remembered:
    """Signals of an answer that work out once per weight when it is accepted."""

    signals: AnswerSignals
    known: dict[float, Acceptance] = field(default_factory=dict)

    @property
    def hallucinated(self) -> bool:
        return self.signals.hallucinated

    @property
    def group(self) -> str | None:
        return self.signals.group

    def accepted(self, policy: Policy, lexical_weight: float) -> Acceptance:
        if lexical_weight not in self.known:
            self.known[lexical_weight] = self.signals.accepted(policy, lexical_weight)
        return self.known[lexical_weight]


@dataclass(frozen=True)
class Split:
    """What one calibration did on answers that it has not seen; shares of answers by weight."""

    missed: float
    released: float
    hallucinated: int
    bound: float


def main() -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=SHARED / "ragtruth_test.jsonl.gz")
    parser.add_argument("--cache", type=Path, default=None)
    parser.add_argument("--test", type=Path, default=None)
    parser.add_argument("--test-cache", type=Path, default=None)
    parser.add_argument("--held-out", action="store_true", help="of --data, what the embedded model was not trained on")
    parser.add_argument("--task", default=None, help="of --test, the answers of one detail.task_type")
    parser.add_argument("--splits", type=int, default=200)
    parser.add_argument("--policy", default="balanced")
    arguments = parser.parse_args()
    policy = as_policy(arguments.policy)
    keep = held_out if arguments.held_out else _all
    answers = [Remembered(own) for own in load(arguments.data, policy, cache=arguments.cache, group=_prompt, keep=keep)]
    weight = own_weight(policy)
    print(f"{arguments.data.name}: {_counts(answers)} · policy {policy.name}, lexical weight {weight:g}")
    if arguments.test is None:
        return _splits(answers, policy, weight, arguments.splits)

    def of_task(row: LabelledAnswer) -> bool:
        return arguments.task is None or row.detail.get("task_type") == arguments.task

    test = [Remembered(own) for own in load(arguments.test, policy, cache=arguments.test_cache, keep=of_task)]
    print(f"{arguments.test.name}: {_counts(test)}")
    return _between(answers, test, policy, weight)


def _all(row: LabelledAnswer) -> bool:
    return True


def _prompt(row: LabelledAnswer) -> str | None:
    found = row.detail.get(GROUP)
    return None if found is None else str(found)


def own_weight(policy: Policy) -> float:
    """The lexical weight of a policy with the embedded model."""
    model = default_entailment()
    if hasattr(model, "load"):
        model.load()
    return Verifier(policy=policy).lexical_weight


def _counts(answers: Sequence[Remembered]) -> str:
    return f"{len(answers)} answers, {sum(a.hallucinated for a in answers)} hallucinated"


def _splits(answers: Sequence[Remembered], policy: Policy, weight: float, splits: int) -> int:
    kinds = ["answers", "few", "weight", "sure"] + ["prompts"] * all(a.group is not None for a in answers)
    print(f"{splits} random splits half and half; ± is the standard error of the mean")
    print("split    target  hallucinated  bound   mean miss        one split ±  above target  released")
    failed = False
    for kind in kinds:
        for target in TARGETS:
            wanted = Wanted(target_miss=target, confidence=CONFIDENCE if kind == "sure" else None)
            found = [_split(kind, answers, wanted, policy, weight, seed) for seed in range(splits)]
            missed = [one.missed for one in found]
            mean, deviation = statistics.fmean(missed), statistics.stdev(missed)
            error = deviation / math.sqrt(splits)
            above = statistics.fmean(m > target for m in missed)
            made = sum(one.bound > 0.0 for one in found)
            passed = mean <= target + 2 * error and (kind != "sure" or above <= SURE_ABOVE) and 2 * made > splits
            failed |= not passed
            print(
                f"{kind:8s} {target:6.0%} {statistics.fmean(s.hallucinated for s in found):13.0f} "
                f"{statistics.fmean(s.bound for s in found):6.4f}  {mean:.4f} ± {error:.4f}  {deviation:11.4f} "
                f"{above:13.0%} "
                f"{statistics.fmean(s.released for s in found):9.1%}  {'PASS' if passed else 'FAIL'}",
                flush=True,
            )
    return int(failed)


def _split(kind: str, answers: Sequence[Remembered], wanted: Wanted, policy: Policy, weight: float, seed: int) -> Split:
    draw = random.Random(seed)
    used = policy if kind == "weight" else policy.override(lexical_weight=weight)
    if kind == "prompts":
        groups: dict[str, list[Remembered]] = defaultdict(list)
        for answer in answers:
            groups[str(answer.group)].append(answer)
        prompts = sorted(groups)
        draw.shuffle(prompts)
        half = len(prompts) // 2
        calibrating = [draw.choice(groups[prompt]) for prompt in prompts[:half]]
        testing = [(a, 1 / len(groups[prompt])) for prompt in prompts[half:] for a in groups[prompt]]
    else:
        shuffled = draw.sample(list(answers), len(answers))
        half = len(shuffled) // 2
        if kind == "few":
            bad = [at for at, answer in enumerate(shuffled) if answer.hallucinated]
            half = bad[min(wanted.needed, len(bad) - 1) - 1] + 1
        calibrating, testing = shuffled[:half], [(a, 1.0) for a in shuffled[half:]]
    try:
        fitted = _fit(calibrating, wanted, used, weight, seed)
    except CalibrationError:  # no profile accepts nothing, which the probability counts as a kept promise
        return Split(missed=0.0, released=0.0, hallucinated=sum(a.hallucinated for a in calibrating), bound=0.0)
    n = len(fitted.hallucinated)
    return Split(
        missed=_share(testing, fitted, used, hallucinated=True),
        released=_share(testing, fitted, used, hallucinated=False),
        hallucinated=n,
        bound=fitted.k / (n + 1),
    )


def _fit(answers: Sequence[Remembered], wanted: Wanted, policy: Policy, weight: float, seed: int) -> Fitted:
    return fit(answers, wanted, policy=policy, own_weight=weight, seed=seed)  # type: ignore[arg-type]


def _share(testing: Sequence[tuple[Remembered, float]], fitted: Fitted, policy: Policy, *, hallucinated: bool) -> float:
    def of_kind() -> Iterator[tuple[bool, float]]:
        for answer, share in testing:
            if answer.hallucinated is hallucinated:
                yield answer.accepted(policy, fitted.lexical_weight).at(fitted.delta), share

    found = list(of_kind())
    return math.fsum(share for accepted, share in found if accepted) / math.fsum(share for _, share in found)


def _between(answers: Sequence[Remembered], test: Sequence[Remembered], policy: Policy, weight: float) -> int:
    print("target  hallucinated  delta    weight          miss on the test file    released")
    failed = False
    for target in TARGETS:
        try:
            fitted = _fit(answers, Wanted(target_miss=target), policy, weight, 0)
        except CalibrationError as error:
            print(f"{target:6.0%}  {error}")
            continue
        testing = [(answer, 1.0) for answer in test]
        missed = _share(testing, fitted, policy, hallucinated=True)
        n = sum(a.hallucinated for a in test)
        low, high = binomial_interval(round(missed * n), n) or (0.0, 1.0)
        passed = low <= target
        failed |= not passed
        print(
            f"{target:6.0%} {len(fitted.hallucinated):13d}  {fitted.delta:<8g} {fitted.lexical_weight:g} "
            f"({fitted.weight_source})  {missed:8.1%} [{low:.1%}, {high:.1%}] "
            f"{_share(testing, fitted, policy, hallucinated=False):9.1%}  {'PASS' if passed else 'FAIL'}"
        )
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
