"""Claude exports: conversations.json, alone or in the .zip.

The messages stand in order. Where they name their parents and the conversation names its last one
(`current_leaf_message_uuid`), only that branch is read; messages of others are counted. Calls of
tools, their answers and thinking are left out and counted; so are attachments.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from reverie.importers.messages import Conversation, text_or
from reverie.importers.records import Entry, Options, digest, unusable, usable_id

NAME = re.compile(r"conversations(-\d+)?\.json", re.IGNORECASE)
_ROLES = {"human": "user", "user": "user", "assistant": "assistant"}
_LEFT_OUT = {
    "tool_use": "calls of tools",
    "tool_result": "tool messages",
    "thinking": "reasoning",
    "redacted_thinking": "reasoning",
}


def turns_of(number: int, where: str, fields: dict[str, Any], options: Options) -> Iterator[Entry]:
    """Yield the turns of a conversation in order."""
    messages = fields.get("chat_messages")
    if not isinstance(messages, list):
        yield unusable(number, where, "it has no list of 'chat_messages'")
        return
    named = text_or(fields.get("uuid"))
    title = " ".join(text_or(fields.get("name")).split())
    created = fields.get("created_at")
    talk = Conversation(
        number,
        where,
        session=usable_id(named) if named else f"claude-{digest(number, title, str(created))}",
        title=title,
        source="claude",
        options=options,
    )
    talk.at(created)
    branch = _branch(messages, text_or(fields.get("current_leaf_message_uuid")))
    for place, message in enumerate(messages, 1):
        name = message.get("uuid") if isinstance(message, dict) else None
        if branch is not None and name not in branch:
            talk.leave_out("messages of other branches")
            continue
        name = name if isinstance(name, str) and name else f"number {place}"
        yield from _message(talk, name, message)


def _branch(messages: list[Any], leaf: str) -> set[str] | None:
    """Return the ids of the branch that ends in `leaf`, None where that says nothing."""
    parents = {
        m["uuid"]: m.get("parent_message_uuid")
        for m in messages
        if isinstance(m, dict) and isinstance(m.get("uuid"), str)
    }
    if leaf not in parents:
        return None
    found: set[str] = set()
    here: Any = leaf
    while isinstance(here, str) and here in parents and here not in found:
        found.add(here)
        here = parents[here]
    return found


def _message(talk: Conversation, name: str, message: Any) -> Iterator[Entry]:
    sender = message.get("sender") if isinstance(message, dict) else None
    role = _ROLES.get(sender) if isinstance(sender, str) else None
    if not isinstance(message, dict) or role is None:
        yield talk.unusable(name, "it has no sender that is 'human' or 'assistant'")
        return
    said_at = talk.at(message.get("created_at"))
    for kind in ("attachments", "files"):
        if isinstance(given := message.get(kind), list):
            talk.options.left_out["images and files"] += len(given)
    text = _text(talk, message)
    if text.strip():
        yield talk.turn(text, role, said_at, usable_id(f"{talk.session}/{name}"))
    else:
        talk.leave_out("messages without text")


def _text(talk: Conversation, message: dict[str, Any]) -> str:
    """Return the text blocks of a message; `text`, of older exports, where there are none."""
    found: list[str] = []
    blocks = message.get("content")
    for block in blocks if isinstance(blocks, list) else []:
        kind = block.get("type") if isinstance(block, dict) else None
        if kind == "text" and isinstance(text := block.get("text"), str):
            found.append(text)
        else:
            talk.leave_out(_LEFT_OUT.get(str(kind), "other content"))
    text = message.get("text")
    if not found and not blocks and isinstance(text, str):
        return text
    return "\n".join(text for text in found if text.strip())
