"""Citations: the marks of an answer are looked up, corrected, and put where they are missing.

Run: python examples/cited_answers.py
"""

from guardrail import Guardrail, Policy

PASSAGES = [
    "The Orrin dam is 212 m high.",
    "The Orrin dam was finished in 1974.",
    "The lake behind the Orrin dam holds 90 million cubic metres of water.",
]


def answer(question, context):
    """Stands for a model that cites the wrong passage once, one that is not there, and forgets a mark."""
    return (
        "The Orrin dam is 212 m high [2]. It was finished in 1974 [7]. Its lake holds 90 million cubic metres of water."
    )


def main():
    for cite in ("check", "fix"):
        guard = Guardrail(policy=Policy(cite=cite))
        outcome = guard.run_sync(answer, question="What is known about the Orrin dam?", context=PASSAGES)
        print(f"{cite}: {outcome.text}")
        for verdict in outcome.verdicts:
            for citation in verdict.citations:
                cited = "nothing" if citation.number is None else f"[{citation.number}]"
                instead = f", should be {' and '.join(citation.right)}" if citation.right else ""
                print(f"  {cited}: {citation.status.value}{instead}")


if __name__ == "__main__":
    main()
