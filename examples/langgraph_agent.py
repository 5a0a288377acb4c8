"""An agent that searches, answers, and is not believed: its answer is checked against what its search tool found.

The first answer gets the opening hours wrong. It reaches neither the stream nor the agent's history; the model is
told what did not hold, and its second answer passes.

Run: python examples/langgraph_agent.py (needs pip install 'guardrail-stream[langchain]' langchain)
"""

import asyncio

from guardrail_langchain import GroundednessMiddleware
from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from guardrail import Guardrail

ANSWERS = [
    AIMessage("", tool_calls=[{"name": "search", "args": {"query": "opening hours"}, "id": "1"}]),
    AIMessage("The library is open from 8 am to 9 pm on weekdays. On Sundays it is closed."),
    AIMessage("The library is open from 8 am to 6 pm on weekdays. On Sundays it is closed."),
]


class Model(FakeMessagesListChatModel):
    """Stands for a chat model of a provider."""

    def bind_tools(self, tools, **kwargs):
        """Models of providers send the tools along."""
        return self


@tool
def search(query: str) -> str:
    """Search the documents of the library."""
    return "The library is open from 8 am to 6 pm on weekdays. On Saturdays it opens at 10 am. On Sundays it is closed."


async def main():
    agent = create_agent(
        Model(responses=ANSWERS),
        tools=[search],
        middleware=[GroundednessMiddleware(Guardrail())],
        checkpointer=InMemorySaver(),
    )
    thread = {"configurable": {"thread_id": "1"}}
    question = {"messages": [("human", "When is the library open?")]}
    async for mode, item in agent.astream(question, thread, stream_mode=["messages", "custom"]):
        if mode == "custom":
            print(f"  ... {item['guardrail']['event']}")
        elif item[0].type == "ai" and item[0].text:
            print(item[0].text)
    state = await agent.aget_state(thread)
    told = state.values["messages"][-1].response_metadata["guardrail"]
    print(
        f"({told['status']} after {told['attempts']} attempts; {len(state.values['messages'])} messages in the history)"
    )


if __name__ == "__main__":
    asyncio.run(main())
