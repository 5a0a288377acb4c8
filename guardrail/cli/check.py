"""``guardrail check``: one answer against passages, as a table or as one JSON object."""

from __future__ import annotations

import argparse
import json
from typing import Any

from rich.console import Console
from rich.text import Text

from guardrail.cli import EXIT_OK, EXIT_REJECTED
from guardrail.cli.console import count, describe_judge, open_console, score
from guardrail.cli.inputs import STDIN, read_passages, read_text
from guardrail.cli.profiles import chosen_policy
from guardrail.cli.tables import shorten, verdict_table
from guardrail.errors import InputError
from guardrail.policy import BALANCED, REFERENCE, Policy, as_policy
from guardrail.reasons import why_failed
from guardrail.scoring.languages import trained_languages
from guardrail.scoring.verifier import Verifier
from guardrail.types import CitationStatus, ClaimVerdict, Verification

_REASONS = {
    "claims_failed": "a claim did not pass",
    "no_claims": "it asserts nothing that could be checked",
    "abstained": "it says honestly that the passages have no answer",
    "no_context": "the passages hold no text to check it against",
    "empty_answer": "it is empty",
    "scoring_error": "the checker failed, so nothing counts as checked",
    "unsupported_language": "the checker was not trained for its language",
}


def check(arguments: argparse.Namespace) -> int:
    """Check an answer.

    Args:
        arguments: What :func:`guardrail.cli.arguments.build_parser` made of the command line.

    Returns:
        The exit status: 0 accepted, 1 rejected.

    Raises:
        InputError: If a file cannot be used.
        ConfigurationError: If δ is out of range, or a profile is for another model.
    """
    if arguments.context.count(STDIN) + (arguments.answer == STDIN) > 1:
        raise InputError("standard input (-) can be read only once: name a file for the rest")
    policy = _policy(arguments)
    answer = read_text(arguments.answer)
    passages = read_passages(arguments.context)
    verifier = Verifier(policy=policy)
    result = verifier.verify_sync(answer, passages, question=arguments.question)
    if arguments.json:
        print(json.dumps(as_json(result), ensure_ascii=False, allow_nan=False, indent=2))
    else:
        _print(open_console(no_color=arguments.no_color), result, verifier)
    return EXIT_OK if result.accepted else EXIT_REJECTED


def _policy(arguments: argparse.Namespace) -> Policy:
    """The named policy; another formula brings its own default δ, because a δ means nothing for the other formula."""
    formula = arguments.formula
    if arguments.profile is not None:
        if formula is not None or arguments.delta is not None:
            raise InputError("--profile brings its own formula and δ, which its promise is about: leave out the others")
        return chosen_policy(arguments)
    named = "strict" if arguments.strict else arguments.policy
    if named is None:
        named = "reference" if formula == "reference" else "balanced"
    policy = as_policy(named)
    if formula is not None and formula != policy.formula:
        base = REFERENCE if formula == "reference" else BALANCED
        policy = policy.override(formula=formula, delta=base.delta, lexical_weight=base.lexical_weight)
    return policy if arguments.delta is None else policy.override(delta=arguments.delta)


def as_json(result: Verification) -> dict[str, Any]:
    """A verification as plain values.

    Args:
        result: The verification.

    Returns:
        What ``guardrail check --json`` prints. For every entry of ``claims``, ``answer[start:end] == text``; its
        ``verdict`` and scores are ``None`` for what is not checked, and its ``language`` is ``None`` unless the checker
        was not trained for it. Only claims that a judge was asked about have ``screened`` and ``judged``.
    """
    return {
        "accepted": result.accepted,
        "reason": result.reason,
        "formula": result.formula,
        "policy": result.policy,
        "delta": result.delta,
        "scorer": result.scorer,
        "context_state": result.context_state.value,
        "delta_r": result.delta_r,
        "worst_delta_r": result.worst_delta_r,
        "rouge_l": result.rouge_l,
        "rouge_1": result.rouge_1,
        "rouge_2": result.rouge_2,
        "entailment": result.entailment,
        "faithfulness": result.faithfulness,
        "claims": [_claim_json(verdict) for verdict in result.claims],
    }


def _claim_json(verdict: ClaimVerdict) -> dict[str, Any]:
    segment = verdict.segment
    return {
        "text": segment.body,
        "start": segment.body_start,
        "end": segment.body_end,
        "kind": segment.kind.value,
        "verdict": None if verdict.verdict is None else verdict.verdict.value,
        "delta_r": verdict.delta_r,
        "rouge_l": verdict.rouge_l,
        "entailment": verdict.entailment,
        "contradiction": verdict.contradiction,
        "language": verdict.language,
        "citations": [
            {"status": c.status.value, "number": c.number, "passage": c.passage_id, "right": list(c.right)}
            for c in verdict.citations
        ],
        "evidence": [{"passage": e.passage_id, "start": e.start, "end": e.end} for e in verdict.evidence],
        **({"screened": verdict.screened, "judged": verdict.judged} if verdict.judged else {}),
    }


def _print(console: Console, result: Verification, verifier: Verifier) -> None:
    rows = [(str(n), verdict, False) for n, verdict in enumerate(result.claims, start=1)]
    if rows:
        console.print(verdict_table(rows))
        console.print()
    rules = f"policy {result.policy} · formula {result.formula} · δ {result.delta:g}"
    figures = f"mean ΔR {score(result.delta_r)} · faithfulness {score(result.faithfulness)}"
    console.print(Text(f"{rules} · {figures}", style="dim"))
    console.print(Text(f"judged by {describe_judge(result.scorer)}", style="dim"))
    for line in _citation_lines(result):
        console.print(Text(line, style="yellow"))
    strange = dict.fromkeys(v.language for v in result.claims if v.language is not None)
    if strange:
        trained = ", ".join(sorted(trained_languages(verifier.entailment) or ()))
        console.print(Text(f"language: {', '.join(strange)} (the checker is trained for {trained})", style="yellow"))
    closing = _closing_line(result, verifier.policy)
    console.print(closing, soft_wrap=not console.is_terminal)  # one line for grep and logs


def _citation_lines(result: Verification) -> list[str]:
    """What is wrong with the citations of an answer that cites."""
    cites = any(c.number is not None for verdict in result.claims for c in verdict.citations)
    lines = []
    for number, verdict in enumerate(result.claims, start=1):
        for citation in verdict.citations if cites else ():
            instead = f"; cite {', '.join(citation.right)}" if citation.right else ""
            if citation.status is CitationStatus.DANGLING:
                lines.append(f"#{number} cites [{citation.number}]: there is no such passage{instead}")
            elif citation.status is CitationStatus.WRONG:
                lines.append(f"#{number} cites [{citation.number}], which does not say so{instead}")
            elif citation.status is CitationStatus.MISSING:
                lines.append(f"#{number} cites nothing")
    return lines


def _closing_line(result: Verification, policy: Policy) -> Text:
    word = "Accepted" if result.accepted else "Rejected"
    line = Text.assemble((f"{word}: ", "bold green" if result.accepted else "bold red"))
    if result.formula == "reference" and result.delta_r is not None and result.reason not in _REASONS:
        return line.append(f"ΔR of the whole answer is {_compare(result.delta_r, result.delta)}.")
    scored = [(n, v) for n, v in enumerate(result.claims, start=1) if v.checked]
    if not scored:
        return line.append(f"{_REASONS.get(result.reason, result.reason)}.")
    number, worst = max(scored, key=lambda pair: (not policy.passes(pair[1]), pair[1].delta_r or 0.0, -pair[0]))
    label = "" if worst.verdict is None else worst.verdict.value
    where = f"worst of {count(len(scored), 'claim')} is #{number} “{shorten(worst.segment.body, 60)}”, "
    line.append(f"{where}{label}, ΔR {_compare(worst.delta_r or 0.0, result.delta)}")
    if not policy.passes(worst):
        line.append(f"; {_why(worst, policy)}")
    return line.append(".")


def _why(worst: ClaimVerdict, policy: Policy) -> str:
    if worst.language is not None and policy.on_unknown_language == "fail":
        return _REASONS["unsupported_language"]
    threshold = policy.strict_threshold
    if threshold is not None and worst.entailment is not None and worst.entailment < threshold and not worst.clashes:
        return f"its entailment {score(worst.entailment)} is below the strict threshold {threshold:g}"
    return why_failed(worst)


def _compare(value: float, delta: float) -> str:
    return f"{value:.2f} {'≤' if value <= delta else '>'} δ {delta:g}"
