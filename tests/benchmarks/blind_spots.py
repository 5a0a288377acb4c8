"""What the shipped default makes of the known blind spots, counted by kind.

Run with ``python -m tests.benchmarks.blind_spots``; prints one line per policy and kind of case, as markdown. The
cases are in ``tests/blind_spots.py``: small, made to be hard, and too few for shares.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from guardrail import Verification, Verifier
from tests.blind_spots import CASES, Case, Kind, Result, result, verified

POLICIES = ("balanced", "strict")

Counts = Mapping[tuple[str, Kind], Counter[Result]]


def figures(verify: Callable[[str, Case], Verification]) -> dict[tuple[str, Kind], Counter[Result]]:
    """How often which result, per policy and kind."""
    return {
        (policy, kind): Counter(result(case, verify(policy, case)) for case in CASES if case.kind is kind)
        for policy in POLICIES
        for kind in Kind
    }


def table(counts: Counts) -> str:
    """The figures as a markdown table, with a sum per policy."""
    columns = tuple(Result)
    lines = [f"| policy | kind | cases | {' | '.join(columns)} |", "|---|---|---" + "|---" * len(columns) + "|"]
    for policy in POLICIES:
        rows = [(kind.value, counts[policy, kind]) for kind in Kind]
        rows.append(("all", sum((row for _, row in rows), Counter())))
        for name, row in rows:
            cells = [policy, name, row.total(), *(row[column] for column in columns)]
            lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def main() -> None:
    """Print the table."""
    verifiers = {policy: Verifier(policy=policy) for policy in POLICIES}
    print(f"{len(CASES)} cases, {verifiers[POLICIES[0]].scorer}\n")
    print(table(figures(lambda policy, case: verified(case, verifiers[policy]))))


if __name__ == "__main__":
    main()
