"""The LangChain retriever and chat history."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from support import START, Factory

from reverie import Runtime, errors
from reverie.adapters import needs_extra

pytest.importorskip("langchain_core", reason="needs the extra 'langchain'")

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)

from reverie.adapters.langchain import ReverieChatMessageHistory, ReverieRetriever

TALK: list[BaseMessage] = [
    SystemMessage("You are kind."),
    HumanMessage("I live in Oslo. 我喜欢绿茶。", id="one", name="Ana"),
    AIMessage("", tool_calls=[{"name": "look", "args": {"a": [1, "是"]}, "id": "c1"}]),
    ToolMessage("42", tool_call_id="c1", name="look", artifact={"deep": [None]}, status="error"),
    AIMessage(
        [{"type": "text", "text": "It is 42."}, {"type": "text", "text": "好的。"}],
        response_metadata={"model": "m", "took": 1.5},
        usage_metadata={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3},
    ),
    ChatMessage(content="A door opens.", role="narrator"),
    HumanMessage(" \n"),
    HumanMessage("", additional_kwargs={"x": {"y": 1}}),
]


@pytest.fixture
def rt(factory: Factory) -> Runtime:
    return factory(background=False)


# -- the history ------------------------------------------------------------------------


def test_messages_come_back_as_they_were(factory: Factory, rt: Runtime) -> None:
    history = ReverieChatMessageHistory(rt.user("ana"), "monday")
    history.add_messages(TALK[:3])
    history.add_messages(TALK[3:])
    assert history.messages == TALK
    rt.close()
    again = ReverieChatMessageHistory(factory(background=False).user("ana"), "monday")
    assert again.messages == TALK
    assert asyncio.run(again.aget_messages()) == TALK


def test_what_the_user_says_is_remembered(rt: Runtime) -> None:
    ana = rt.user("ana")
    ReverieChatMessageHistory(ana, "monday").add_messages(TALK)
    rt.drain()
    texts = [item.text for item in ana.list().items]
    assert any("Oslo" in text for text in texts)
    assert not any("calls look" in text or "42" in text for text in texts)
    ReverieChatMessageHistory(ana, "tuesday", infer=False).add_user_message("I live in Rome.")
    rt.drain()
    assert not any("Rome" in item.text for item in ana.list().items)


def test_sessions_and_users_are_apart(rt: Runtime) -> None:
    one = ReverieChatMessageHistory(rt.user("ana"), "1")
    one.add_user_message("Hello")
    for other in (
        ReverieChatMessageHistory(rt.user("ana"), "10"),
        ReverieChatMessageHistory(rt.user("bo"), "1"),
    ):
        assert other.messages == []
        other.add_ai_message("Hi 你好")
        other.clear()
        assert other.messages == []
    assert one.messages == [HumanMessage("Hello")]


def test_clear_begins_anew_and_forgets_nothing(factory: Factory, rt: Runtime) -> None:
    ana = rt.user("ana")
    history = ReverieChatMessageHistory(ana)
    history.clear()
    assert ana.stats().memories == 0
    history.add_messages(TALK[:2])
    rt.drain()
    known = [item.text for item in ana.list().items]
    history.clear()
    asyncio.run(history.aclear())
    assert history.messages == []
    asyncio.run(history.aadd_messages(TALK[1:2]))  # the same message again
    assert history.messages == TALK[1:2]
    rt.close()
    ana = factory(background=False).user("ana")
    assert ReverieChatMessageHistory(ana).messages == TALK[1:2]
    assert [item.text for item in ana.list().items] == known
    assert all("cleared" not in hit.text for hit in ana.search("cleared history"))


def test_messages_can_be_set(rt: Runtime) -> None:
    history = ReverieChatMessageHistory(rt.user("ana"))
    history.add_messages(TALK)
    history.messages = TALK[-2:]
    assert history.messages == TALK[-2:]
    with pytest.raises(errors.InvalidValueError):
        history.messages = ["not a message"]  # type: ignore[list-item]
    assert history.messages == TALK[-2:]


def test_turns_that_came_in_otherwise_are_messages_too(rt: Runtime) -> None:
    ana = rt.user("ana")
    turns = [("user", "One"), ("assistant", "Two"), ("system", "Three"), ("guard", "四")]
    ana.add([{"role": role, "text": text} for role, text in turns], session="s", infer=False)
    assert ReverieChatMessageHistory(ana, "s").messages == [
        HumanMessage("One"),
        AIMessage("Two"),
        SystemMessage("Three"),
        ChatMessage(content="四", role="guard"),
    ]


def test_what_cannot_be_kept_is_refused_whole(rt: Runtime) -> None:
    history = ReverieChatMessageHistory(rt.user("ana"))
    big = {"type": "image_url", "image_url": {"url": "data:," + "A" * 20_000}}
    bad: list[Any] = [
        HumanMessage([big]),
        HumanMessage("a\0b"),
        AIMessage("x", response_metadata={"n": float("nan")}),
        "text",
    ]
    for message in bad:
        with pytest.raises(errors.InputError):
            history.add_messages([HumanMessage("fine"), message])
    assert history.messages == []
    with pytest.raises(errors.InvalidIdError):
        ReverieChatMessageHistory(rt.user("ana"), "")
    with pytest.raises(errors.InvalidValueError):
        ReverieChatMessageHistory("ana")  # type: ignore[arg-type]


# -- the retriever ----------------------------------------------------------------------


def test_documents_say_why_they_were_found(rt: Runtime) -> None:
    ana = rt.user("ana")
    ana.remember("Ana drinks 绿茶 in Oslo.", metadata={"room": "kitchen"}, tags=["drink"])
    ana.remember("The boat is red.")
    retriever = ReverieRetriever(user=ana, k=1)
    (found,) = retriever.invoke("What does Ana drink? 绿茶")
    (hit,) = ana.search("What does Ana drink? 绿茶", limit=1)
    assert (found.page_content, found.id) == (hit.text, hit.id)
    assert found.metadata["score"] == pytest.approx(hit.score, abs=0.2)  # it was read before
    assert found.metadata["reasons"]
    assert found.metadata["at"] == found.metadata["recorded_at"] == START
    assert found.metadata["metadata"] == {"room": "kitchen"}
    assert found.metadata["tags"] == ["drink"]
    json.dumps(found.metadata)
    assert len(retriever.invoke("Ana and the boat", k=2)) == 2
    (other,) = asyncio.run(retriever.ainvoke("a red boat"))
    assert other.page_content == "The boat is red."


def test_options_of_the_search(factory: Factory, rt: Runtime) -> None:
    ana = rt.user("ana")
    old = ana.remember("Ana lives in Oslo.")
    factory.clock.advance(60)
    ana.update(old.memory_id, "Ana lives in Rome.")
    ana.add("I am in Rome, Ana says.", infer=False)
    options = {"types": "memory", "as_of": START + 1}
    texts = [d.page_content for d in ReverieRetriever(user=ana, options=options).invoke("Ana?")]
    assert texts == ["Ana lives in Oslo."]
    assert ReverieRetriever(user=rt.user("bo")).invoke("Ana?") == []


@pytest.mark.parametrize(
    "settings", [{"user": "ana"}, {"options": {"limit": 3}}, {"options": {"filter": {}}}]
)
def test_a_retriever_that_cannot_work(rt: Runtime, settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"user must be|no option"):
        ReverieRetriever(**{"user": rt.user("ana"), **settings})


def test_errors_of_a_search_reach_the_caller(rt: Runtime) -> None:
    retriever = ReverieRetriever(user=rt.user("ana"))
    with pytest.raises(errors.InvalidTextError):
        retriever.invoke(" ")
    with pytest.raises(errors.InvalidLimitError):
        retriever.invoke("Ana?", k=0)


def test_a_missing_library_is_named() -> None:
    with pytest.raises(errors.ConfigError, match=r"reverie\[langchain\]"), needs_extra("langchain"):
        raise ModuleNotFoundError(name="langchain_core")
    with pytest.raises(ModuleNotFoundError), needs_extra("langchain"):
        raise ModuleNotFoundError(name="reverie.gone")
