"""A chat that streams: each sentence is shown as soon as it has passed; a wrong one is never shown.

The model takes `released_text`, which says that it can continue an answer: after a failure it goes on from what the
reader already has.

Run: python examples/streaming_chat.py
"""

import asyncio

from guardrail import Guardrail

PASSAGES = [
    {"id": "route", "text": "Line 4 runs from the harbour to the airport. The ride takes 35 minutes."},
    {"id": "fares", "text": "A single ticket for line 4 costs 3.20 euro."},
]
FIRST = "Line 4 runs from the harbour to the airport. The ride takes 20 minutes. A single ticket costs 3.20 euro."
CONTINUED = "The ride takes 35 minutes. A single ticket for line 4 costs 3.20 euro."


async def model(question, context, released_text):
    """Stands for a chat model that streams tokens."""
    for word in (CONTINUED if released_text else FIRST).split(" "):
        await asyncio.sleep(0)
        yield word + " "


async def chat():
    guard = Guardrail()
    stream = guard.stream(model, question="How do I get to the airport?", context=PASSAGES)
    async with stream:
        async for text in stream:
            print(text, end="", flush=True)
        outcome = await stream.outcome()
    print()
    print(f"\n({outcome.status.value}, {len(outcome.attempts)} attempts, repaired by: {outcome.repair})")


def main():
    asyncio.run(chat())


if __name__ == "__main__":
    main()
