"""Strict mode, legal: an audit of finished answers against a contract, with the clause behind every verdict.

Run: python examples/strict_legal.py
"""

from guardrail import Verifier

CONTRACT = [
    {"id": "§ 4", "text": "The tenant may terminate the lease with a notice period of three months."},
    {"id": "§ 7", "text": "The deposit is 1,800 euro. It is returned within 60 days after the keys are returned."},
    {"id": "§ 9", "text": "The tenant shall not sublet the flat without written consent of the landlord."},
]
ANSWERS = {
    "true to the contract": "The tenant may terminate the lease with a notice period of three months. "
    "The deposit is 1,800 euro.",
    "another deadline": "The deposit is 1,800 euro. It is returned within 90 days after the keys are returned.",
    "nothing to check": "Hello! How can I help you?",
}


def main():
    verifier = Verifier(policy="strict")
    for name, answer in ANSWERS.items():
        result = verifier.verify_sync(answer, CONTRACT)
        print(f"{name}: {'accepted' if result.accepted else 'rejected'} ({result.reason})")
        for claim in result.claims:
            if claim.checked:
                print(f"  {claim.verdict.value:12} see {claim.evidence[0].passage_id}: {claim.segment.body}")
        print(f"  faithfulness {result.faithfulness:.2f}, judged by {result.scorer!r}")


if __name__ == "__main__":
    main()
