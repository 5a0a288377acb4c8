"""What a promise rests on, in words for people who did not calibrate."""

from __future__ import annotations

from guardrail.evaluation.calibration.conformal import binomial_cdf
from guardrail.evaluation.calibration.fitting import Wanted
from guardrail.policy import Policy
from guardrail.types import ReleaseMode


def assumptions(
    policy: Policy,
    wanted: Wanted,
    *,
    n: int,
    group: str | None,
    fingerprint: str | None,
    repeated: int = 0,
    judged: bool = False,
) -> tuple[str, ...]:
    """The assumptions behind a promise, the most important ones first.

    Args:
        policy: The calibrated policy.
        wanted: What is promised.
        n: How many hallucinated answers δ was set on.
        group: What answers were grouped by, if they were.
        fingerprint: That of the model, if it has one.
        repeated: How many of the labelled answers that were used stand there again.
        judged: Whether a generative judge decided about some of their claims.
    """
    found = [
        f"New hallucinated answers are like the {n} labelled ones that δ was set on: same generator, same kind of "
        "questions and documents, as if all had been drawn from one pot (exchangeable). Nothing is promised for "
        "others. When one of these changes, label new answers and calibrate again.",
        _reading(wanted, n),
        *([_repeated(repeated)] if repeated else []),
        "The labels are right: what people called grounded counts as grounded.",
        "This calibration was not picked among several on the same answers because of its result. Who tries targets or "
        "policies until one pleases needs fresh answers for the last one.",
        _grouping(group),
        "An answer is missed if it is accepted, one answer at a time. An attempt that is generated after a failed one "
        "is an answer of another kind, and over several attempts a run has several chances to miss."
        if policy.max_attempts > 1
        else "An answer is missed if it is accepted, one answer at a time.",
    ]
    if policy.release in (ReleaseMode.AUTO, ReleaseMode.SENTENCE):
        found.append(
            "While an answer streams, sentences before the one that fails have reached the reader; the promise is "
            "about whole answers."
        )
    found.append(_no_profile(wanted))
    if judged:
        found.append(
            "A judge decided about doubtful claims, and about each of them. Where it fails to in production, or its "
            'budget is used up, on_failure="doubt" refuses more and breaks nothing; "model" is outside the promise.'
        )
    found += [text for applies, text in _ways_around(policy) if applies]
    if fingerprint is None:
        found.append("The entailment model is known by its name only: its weights must not change behind it.")
    return tuple(found)


def _reading(wanted: Wanted, n: int) -> str:
    if wanted.confidence is None:
        k = wanted.rank(n)
        above = binomial_cdf(k - 1, n, wanted.target_miss)
        return (
            "The probability is over the draw of the labelled answers and the new one together. The miss rate of one "
            f"calibration with as many varies around {100 * k / (n + 1):.2g} %, and with a probability of up to "
            f"{100 * above:.2g} % it is above {100 * wanted.target_miss:.4g} %."
        )
    return (
        f"With confidence {100 * wanted.confidence:.4g} % over the draw of the labelled answers, the miss rate of this "
        f"one calibration is at most {100 * wanted.target_miss:.4g} %. For this, answers are drawn independently."
    )


def _repeated(count: int) -> str:
    return (
        f"{count} of the labelled answers are word for word like one before, for the same question and context, and "
        "each counts as a draw of its own. If they were copied or labelled twice, less is known than it seems: keep "
        "one of each and calibrate again."
    )


def _no_profile(wanted: Wanted) -> str:
    cost = "" if wanted.max_refusal is None else f", or had it cost more than {100 * wanted.max_refusal:.4g} % refusals"
    return (
        f"Had no δ kept the promise on the labelled answers{cost}, there would be no profile. The probability counts "
        "such calibrations as kept promises."
    )


def _grouping(group: str | None) -> str:
    if group is None:
        return (
            "Each labelled answer is a draw of its own. If several of them answer the same prompt they are not: "
            "calibrate with a group then."
        )
    return (
        f"Answers that share detail.{group} count as one draw, of which one was taken at random: the promise is about "
        "a random answer to a new prompt."
    )


def _ways_around(policy: Policy) -> list[tuple[bool, str]]:
    return [
        (
            policy.release is ReleaseMode.OBSERVE,
            "This policy observes: it delivers what it does not accept, so the promise is about its verdicts only.",
        ),
        (
            policy.on_exhausted == "best",
            "This policy delivers the best attempt when none was accepted, marked as such; that delivery is outside "
            "the promise.",
        ),
        (
            "pass_marked" in (policy.on_error, policy.no_context),
            "This policy delivers answers that could not be checked, marked as such; they are outside the promise.",
        ),
        (
            policy.on_wrong_citation == "fail",
            "Citations did not count in the calibration. This policy also refuses answers that cite wrongly: that "
            "never breaks the promise, and costs refusals that are not in the figures.",
        ),
    ]
