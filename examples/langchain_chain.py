"""A guard in a LangChain chain: wrap the part that answers, keep everything around it.

Run: python examples/langchain_chain.py
"""

from guardrail_langchain import GuardedRunnable
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate

# Stands for your model. The first time it gets the fee wrong.
SCRIPT = [
    AIMessage("The museum opens at ten. Entry costs 15 euro."),
    AIMessage("The museum opens at ten. Entry is free on Sundays."),
]
PASSAGES = ["The museum opens at ten.", "Entry is free on Sundays."]


def main():
    model = GenericFakeChatModel(messages=iter(SCRIPT))
    prompt = ChatPromptTemplate.from_template("Answer from these passages: {context}\n\n{question}")
    guarded = GuardedRunnable(bound=prompt | model)
    chain = guarded | StrOutputParser()

    asked = {"question": "When does the museum open, and what is the fee?", "context": PASSAGES}
    for sentence in chain.stream(asked):
        print(sentence, end="", flush=True)
    print()


if __name__ == "__main__":
    main()
