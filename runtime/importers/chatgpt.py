"""ChatGPT exports: conversations.json (or conversations-000.json and so on), alone or in the .zip.

A conversation is a tree: an answer that was asked for again, or a message that was edited, begins
another branch. What its owner sees is the branch from `current_node` to the root; that one is read.
Messages of other branches are counted and left out, as are calls of tools and their answers, system
messages, hidden ones, and reasoning.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from reverie.importers.messages import Conversation, text_or
from reverie.importers.records import Entry, Options, digest, unusable, usable_id

NAME = re.compile(r"conversations(-\d+)?\.json", re.IGNORECASE)
_CITED = re.compile("\ue200[^\ue201]*\ue201")  # marks of sources, which only its own page can show
_NO_NODE = "it is no node of a tree"
_REASONING = frozenset({"thoughts", "reasoning_recap"})
_CONTEXT = frozenset({"user_editable_context", "model_editable_context"})


class _Node(NamedTuple):
    """A node of the tree; a broken one has neither parent nor message."""

    parent: str | None = None
    message: Any = None


def turns_of(number: int, where: str, fields: dict[str, Any], options: Options) -> Iterator[Entry]:
    """Yield the turns of a conversation in order."""
    mapping = fields.get("mapping")
    if not isinstance(mapping, dict):
        yield unusable(number, where, "it has no 'mapping', the tree of its messages")
        return
    named = text_or(fields.get("conversation_id")) or text_or(fields.get("id"))
    session = usable_id(named) if named else f"chatgpt-{digest(*mapping)}"
    talk = Conversation(
        number,
        where,
        session=session,
        title=" ".join(text_or(fields.get("title")).split()),
        source="chatgpt",
        options=options,
    )
    talk.at(fields.get("create_time"))
    nodes, faults = _nodes(mapping)
    branch, is_cut = _branch(nodes, text_or(fields.get("current_node")))
    for name, why in faults:
        yield talk.unusable(name, why)
    if is_cut:
        yield unusable(number, where, "the tree of its messages goes in a circle; it is cut there")
    on_branch = frozenset(branch)
    others = sum(n.message is not None for i, n in nodes.items() if i not in on_branch)
    if others:
        options.left_out["messages of other branches"] += others
    for name in branch:
        yield from _message(talk, name, nodes[name])


def _nodes(mapping: dict[str, Any]) -> tuple[dict[str, _Node], list[tuple[str, str]]]:
    """Return the nodes, and the ids and faults of those that are broken. What a parent says of its
    children stands in for what a broken child does not say of its parent."""
    nodes: dict[str, _Node] = {}
    faults: list[tuple[str, str]] = []
    above: dict[str, str] = {}
    for name, node in mapping.items():
        if not isinstance(node, dict):
            nodes[name] = _Node()
            faults.append((name, _NO_NODE))
            continue
        parent, children = node.get("parent"), node.get("children")
        nodes[name] = _Node(parent if isinstance(parent, str) else None, node.get("message"))
        if not isinstance(parent, str | None):
            faults.append((name, "its parent is no id"))
        for child in children if isinstance(children, list) else ():
            if isinstance(child, str):
                above.setdefault(child, name)
    for name, node in nodes.items():
        if node.parent not in nodes and name in above:
            nodes[name] = node._replace(parent=above[name])
    return nodes, [fault for fault in faults if fault[0] not in above or fault[1] == _NO_NODE]


def _branch(nodes: dict[str, _Node], current: str) -> tuple[list[str], bool]:
    """Return the branch from the root to the current node, and whether it was cut at a circle."""
    here: str | None = current if current in nodes else _newest_leaf(nodes)
    found: dict[str, None] = {}
    while here is not None and here in nodes:
        if here in found:
            return [*reversed(found)], True
        found[here] = None
        here = nodes[here].parent
    return [*reversed(found)], False


def _newest_leaf(nodes: dict[str, _Node]) -> str | None:
    """Return the last node of an export that names none as the current one."""
    parents = {node.parent for node in nodes.values()}
    leaves = [name for name in nodes if name not in parents]
    return max(leaves, key=lambda name: _created(nodes[name]), default=None)


def _created(node: _Node) -> float:
    message = node.message
    at = message.get("create_time") if isinstance(message, dict) else None
    return at if isinstance(at, float) else float("-inf")


def _message(talk: Conversation, name: str, node: _Node) -> Iterator[Entry]:
    message = node.message
    if message is None:  # the root
        return
    author = message.get("author") if isinstance(message, dict) else None
    role = author.get("role") if isinstance(author, dict) else None
    if not isinstance(message, dict) or not isinstance(role, str):
        yield talk.unusable(name, "it has no author with a role")
        return
    said_at = talk.at(message.get("create_time"))
    if (what := _left_out(message, role)) is not None:
        talk.leave_out(what)
        return
    text = _text(talk, message["content"])
    if text.strip():
        yield talk.turn(text, role, said_at, usable_id(f"{talk.session}/{name}"))
    else:
        talk.leave_out("messages without text")


def _left_out(message: dict[str, Any], role: str) -> str | None:
    """Return as what a message is left out, None for one to keep."""
    content, metadata = message.get("content"), message.get("metadata")
    kind = content.get("content_type") if isinstance(content, dict) else None
    if role not in {"user", "assistant"}:
        return f"{role} messages" if role in {"tool", "system"} else "messages of other roles"
    if isinstance(metadata, dict) and metadata.get("is_visually_hidden_from_conversation"):
        return "hidden messages"
    if role == "assistant" and message.get("recipient", "all") not in {"all", None}:
        return "calls of tools"
    if not isinstance(content, dict):
        return "messages without text"
    if kind in _REASONING:
        return "reasoning"
    return "context of the account" if kind in _CONTEXT else None


def _text(talk: Conversation, content: dict[str, Any]) -> str:
    """Return the text of a message: its parts, one after another; `text` of what is one piece."""
    given = content.get("parts")
    parts = given if isinstance(given, list) else [content.get("text")]
    found: list[str] = []
    for part in parts:
        text = part.get("text") if isinstance(part, dict) else part  # what was spoken has a text
        if isinstance(text, str):
            found.append(_CITED.sub("", text))
        elif part is not None:
            talk.leave_out("images and files")
    return "\n".join(text for text in found if text.strip())
