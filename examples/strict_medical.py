"""Strict mode, medical: nothing is shown before the whole answer has passed, and a wrong dose is refused.

Run: python examples/strict_medical.py
"""

from guardrail import Guardrail
from guardrail.policy import STRICT

LEAFLET = [
    {"id": "dose", "text": "Adults take one tablet of 5 mg twice a day. The daily dose must not exceed 10 mg."},
    {"id": "warnings", "text": "Do not take the tablets together with alcohol."},
]
POLICY = STRICT.override(
    name="medical",
    refusal="I cannot answer this from the leaflet. Please ask a doctor or a pharmacist.",
)


def careful(question, context):
    """A model that keeps to the leaflet."""
    return "Adults take one tablet of 5 mg twice a day. The daily dose must not exceed 10 mg."


def careless(question, context):
    """A model that is wrong about the dose, however often it is asked."""
    return "Adults take one tablet of 5 mg twice a day. The daily dose must not exceed 100 mg."


def main():
    guard = Guardrail(policy=POLICY)
    for model in (careful, careless):
        outcome = guard.run_sync(model, question="How much may I take?", context=LEAFLET)
        print(f"{model.__name__}: {outcome.text}")
        print(f"  {outcome.status.value} ({outcome.reason}), {len(outcome.attempts)} attempts")
        for verdict in outcome.attempts[-1].verdicts:
            if not POLICY.passes(verdict):
                print(f"  failed: {verdict.verdict.value}, evidence in {verdict.evidence[0].passage_id!r}")

    outcome = guard.run_sync(careful, question="How much may I take?", context=[])
    print(f"without a leaflet: {outcome.text}")
    print(f"  {outcome.status.value} ({outcome.reason}), {len(outcome.attempts)} attempts")


if __name__ == "__main__":
    main()
