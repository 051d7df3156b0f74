"""LangChain: a retriever over a user's memory, and a chat history that is remembered.

rt = reverie.open("data")
retriever = ReverieRetriever(user=rt.user("ana"), k=5)
history = ReverieChatMessageHistory(rt.user("ana"), session="monday")
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from reverie.adapters import digest, needs_extra
from reverie.memory_graph.errors import InvalidMetadataError, InvalidValueError
from reverie.memory_graph.graph import number
from reverie.memory_graph.ids import check_id
from reverie.memory_graph.views import Hit, Item
from reverie.results import SearchOptions
from reverie.user import User

with needs_extra("langchain"):
    from langchain_core.callbacks import (
        AsyncCallbackManagerForRetrieverRun,
        CallbackManagerForRetrieverRun,
    )
    from langchain_core.chat_history import BaseChatMessageHistory
    from langchain_core.documents import Document
    from langchain_core.messages import (
        AIMessage,
        BaseMessage,
        ChatMessage,
        HumanMessage,
        SystemMessage,
        message_to_dict,
        messages_from_dict,
    )
    from langchain_core.retrievers import BaseRetriever
    from pydantic import Field

PAGE = 500  # turns that are read at once
MARK = "langchain"  # in the metadata of a turn: what a message has beside its text
CLEARED = "langchain_cleared"  # in that of a memory: what stands for the session
LAST = "langchain_last"  # and its last turn then
ROLES = {"human": "user", "ai": "assistant", "AIMessageChunk": "assistant"}
_CLASSES: dict[str, type[BaseMessage]] = {
    "user": HumanMessage,
    "assistant": AIMessage,
    "system": SystemMessage,
}
_SELDOM = (
    "kind",
    "valid_from",
    "valid_to",
    "importance",
    "confidence",
    "session",
    "speaker",
    "role",
    "told_by",
    "about",
    "group",
)


class ReverieRetriever(BaseRetriever):
    """What a user's memory holds for a question, best first.

    The metadata of each document has `id`, `type`, `score`, `parts`, `reasons`, `at` and
    `recorded_at` (seconds), what else the hit has of `valid_from`, `valid_to`, `kind`, `session`,
    `speaker` and the like, `sources`, and your own values as `metadata`.

    Attributes:
        user: whose memory.
        k: how many documents, 1 to 10,000; `invoke(question, k=3)` for one call.
        options: those of `User.search`: filters, types, as_of, valid_at and so on, but limit.
    """

    user: Any
    k: int = 10
    options: dict[str, Any] = Field(default_factory=dict)

    def model_post_init(self, context: Any, /) -> None:
        """Check what was given.

        Raises:
            InvalidValueError: `user` is none, or an option is unknown.
        """
        super().model_post_init(context)
        _checked(self.user)
        known = set(SearchOptions.__annotations__) - {"limit"}
        if unknown := sorted(set(self.options) - known):
            msg = f"a retriever has no option {', '.join(unknown)}"
            raise InvalidValueError(msg, what="options")

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        del run_manager
        return self._found(query, k)

    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,
        k: int | None = None,
    ) -> list[Document]:
        del run_manager
        return await asyncio.to_thread(self._found, query, k)

    def _found(self, query: str, k: int | None) -> list[Document]:
        limit = self.k if k is None else k
        return list(map(document, self.user.search(query, limit=limit, **self.options)))


def document(hit: Hit) -> Document:
    """Return a hit as a document."""
    metadata: dict[str, Any] = {
        "id": hit.id,
        "type": hit.type,
        "score": hit.score,
        "parts": dict(hit.parts),
        "reasons": list(hit.reasons),
        "at": hit.at,
        "recorded_at": hit.recorded_at,
        "status": hit.status,
    }
    metadata |= {name: value for name in _SELDOM if (value := getattr(hit, name)) is not None}
    for name in ("sources", "entities", "topics", "tags", "heard"):
        if values := getattr(hit, name):
            metadata[name] = list(values)
    if own := {name: value for name, value in (hit.metadata or {}).items() if name != MARK}:
        metadata["metadata"] = own
    return Document(page_content=hit.text, id=hit.id, metadata=metadata)


class ReverieChatMessageHistory(BaseChatMessageHistory):
    """The messages of one session of a user, which are remembered.

    Each message is a turn: on disk when `add_messages` returns, all of a call or none, and
    memories are extracted from what the user says. `clear` begins the conversation anew; what was
    said stays in the user's memory, and `user.forget()` erases it.

    Args:
        user: whose conversation.
        session: which one; turns of it that came in otherwise are messages too.
        infer: False keeps the messages and extracts no memories.
    """

    def __init__(self, user: User, session: str = "default", *, infer: bool = True) -> None:
        super().__init__()
        self.user = _checked(user)
        self.session = check_id(session, "session")
        self.infer = infer

    @property
    def messages(self) -> list[BaseMessage]:
        """The messages since the history was last cleared, in order."""
        return [_message(item) for item in self._turns(self._cleared())]

    @messages.setter
    def messages(self, value: Sequence[BaseMessage]) -> None:
        """Clear the history, and add these."""
        turns = [_turn(message) for message in value]
        self.clear()
        self._add(turns)

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Store messages, in order.

        Raises:
            InputError: one of them cannot be kept, such as one with over 16 KiB of JSON beside its
                text; nothing was stored.
        """
        self._add([_turn(message) for message in messages])

    def _add(self, turns: Sequence[dict[str, Any]]) -> None:
        if turns:
            self.user.add(turns, session=self.session, infer=self.infer)

    def clear(self) -> None:
        """Begin anew: no message until now is among `messages` any more."""
        last = None
        for item in self._turns(self._cleared()):
            last = item.id
        if last is None:
            return
        kept = self.user.remember(
            "A chat history was cleared.",
            importance=0.0,
            metadata={CLEARED: digest(self.session), LAST: last},
            again=True,
        )
        self.user.delete(kept.memory_id, reason="a mark of where the history begins")

    async def aget_messages(self) -> list[BaseMessage]:
        """Return `messages`, in a thread."""
        return await asyncio.to_thread(lambda: self.messages)

    async def aadd_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Store messages, in a thread; see `add_messages`."""
        await asyncio.to_thread(self.add_messages, messages)

    async def aclear(self) -> None:
        """Begin anew, in a thread; see `clear`."""
        await asyncio.to_thread(self.clear)

    def _cleared(self) -> str | None:
        """Return the id of the last turn that was cleared away."""
        marks = _all(
            self.user,
            None,
            filters={f"metadata.{CLEARED}": digest(self.session)},
            types="memory",
            include_retired=True,
            include_archived=True,
        )
        last = [str((mark.metadata or {})[LAST]) for mark in marks]
        return max(last, key=number, default=None)

    def _turns(self, after: str | None) -> Iterator[Item]:
        return _all(self.user, after, filters={"session": self.session}, types="message")


def _checked(user: object) -> User:
    if not isinstance(user, User):
        msg = "user must be what rt.user(...) returns; of an AsyncRuntime, rt.sync.user(...)"
        raise InvalidValueError(msg, what="user")
    return user


def _all(user: User, cursor: str | None, **options: Any) -> Iterator[Item]:
    while True:
        page = user.list(limit=PAGE, cursor=cursor, **options)
        yield from page.items
        if (cursor := page.cursor) is None:
            return


def _turn(message: object) -> dict[str, Any]:
    """Return a message as a turn for `User.add`; `_message` is the way back."""
    if not isinstance(message, BaseMessage):
        msg = f"a message must be one of LangChain's, not {type(message).__name__}"
        raise InvalidValueError(msg, what="messages")
    whole = message_to_dict(message)
    data = {k: v for k, v in whole["data"].items() if k != "type" and v not in (None, [], {}, "")}
    text = _text(message)
    if data.get("content") == text:
        del data["content"]
    elif isinstance(message.content, str):
        data["content"] = message.content
    mark: dict[str, Any] = {"type": whole["type"]}
    if data and data != {"role": message.type}:
        mark["data"] = data
    role = ROLES.get(message.type, message.type)
    if isinstance(message, ChatMessage):
        role = message.role
    return {"text": text, "role": role, "metadata": {MARK: mark}}


def _text(message: BaseMessage) -> str:
    """Return what a message says; where it says nothing, what it does."""
    content = message.content
    if isinstance(content, str):
        said = content
    else:
        parts = (part if isinstance(part, str) else part.get("text") for part in content)
        said = "\n".join(part for part in parts if isinstance(part, str))
    if said.strip():
        return said
    calls = getattr(message, "tool_calls", None) or ()
    names = ", ".join(str(call.get("name")) for call in calls)
    return f"(calls {names})" if names else "(no text)"


def _message(item: Item) -> BaseMessage:
    mark = (item.metadata or {}).get(MARK)
    if isinstance(mark, Mapping):
        data = {"content": item.text, **mark.get("data", {})}
        try:
            (message,) = messages_from_dict([{"type": mark["type"], "data": data}])
        except (KeyError, ValueError) as exc:
            msg = f"message {item.id} is of no kind that this version of LangChain knows"
            raise InvalidMetadataError(msg, message_id=item.id).because(exc) from exc
        return message
    role = item.role or "user"
    if role in _CLASSES:
        return _CLASSES[role](content=item.text, id=item.external_id)
    return ChatMessage(content=item.text, role=role, id=item.external_id)


__all__ = ["ReverieChatMessageHistory", "ReverieRetriever", "document"]
