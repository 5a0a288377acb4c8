"""The smallest use: an ordinary function that returns an answer, guarded and read whole.

Run: python examples/plain_callable.py
"""

from guardrail import Guardrail

PASSAGES = [
    "The city library is open from 9:00 to 18:00 on weekdays.",
    "A library card costs 12 euro a year. Children under 14 get it free of charge.",
]


def answer(question, context, attempt):
    """Stands for a call of your model. The first time it gets the price wrong."""
    if attempt == 1:
        return "A library card costs 20 euro a year."
    return "A library card costs 12 euro a year. Children under 14 get it free of charge."


def main():
    guard = Guardrail()
    outcome = guard.run_sync(answer, question="What does a library card cost?", context=PASSAGES)

    print(outcome.text)
    print()
    print(f"{outcome.status.value} after {len(outcome.attempts)} attempts, judged by {guard.verifier.scorer!r}")
    for verdict in outcome.verdicts:
        print(f"  {verdict.verdict.value}, ΔR {verdict.delta_r:.2f}: {verdict.segment.body}")


if __name__ == "__main__":
    main()
