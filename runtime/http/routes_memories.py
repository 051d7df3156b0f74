"""Operations that write one user's memory."""

from __future__ import annotations

from typing import Any

import msgspec

from reverie.actors.answers import Page as ItemPage
from reverie.http import answers as a, bodies as b
from reverie.http.examples import both
from reverie.http.faults import Refusal
from reverie.http.limits import check_depth
from reverie.http.operation import USER, Call, Table
from reverie.memory_graph.drafts import Kept
from reverie.memory_graph.errors import FilterError, NotFoundError
from reverie.memory_graph.views import Item
from reverie.results import AddResult

table = Table("memories")
MAX_FILTER_LEVELS = 64  # of JSON; a filter itself has fewer
MEMORY = f"{USER}/memories/{{item}}"


def waits(call: Call) -> bool:
    """Whether a request asks to wait for extraction, which may take long."""
    return getattr(call.body, "wait", False) is True


@table.add(
    "POST",
    f"{USER}/messages",
    "write",
    "User.add",
    body=b.Add,
    answer=AddResult,
    examples=both(
        {"messages": [{"text": "I moved to Oslo last week.", "id": "t1"}], "session": "s1"},
        {"messages": [{"text": "我上周搬到了奥斯陆。", "id": "t1"}], "session": "s1"},
    ),
)
def add_messages(call: Call) -> AddResult:
    """Store turns of a conversation, and extract memories from them.

    The turns are on disk when this answers, all of them or none. Extraction goes on in the
    background and survives a crash; with `wait` the answer comes after it.
    """
    return call.user.add(**call.once)


@table.add(
    "POST",
    f"{USER}/memories",
    "write",
    "User.remember",
    body=b.Remember,
    answer=Kept,
    errors=(NotFoundError,),
    examples=both(
        {"text": "Ana is allergic to nuts.", "kind": "fact", "tags": ["health"]},
        {"text": "安娜对坚果过敏。", "kind": "fact", "tags": ["健康"]},
    ),
)
def remember(call: Call) -> Kept:
    """Keep a statement verbatim, at once, without a language model.

    The same text as an active memory is not kept twice: the answer is a NOOP with the id of the
    first.
    """
    return call.user.remember(**call.once)


@table.add(
    "GET",
    f"{USER}/memories",
    "read",
    "User.list",
    query=b.Listing,
    answer=ItemPage,
    examples=both(query={"limit": 10}),
)
def list_memories(call: Call) -> ItemPage:
    """Return one page of what is kept, in order of recording, with the total of all pages."""
    fields = call.given
    if "filters" in fields:
        fields["filters"] = _filters(fields["filters"])
    return call.user.list(**fields)


def _filters(text: str) -> Any:
    """Return a filter that stood in the query; raises FilterError."""
    data = text.encode()
    try:
        check_depth(data, MAX_FILTER_LEVELS)
        return msgspec.json.decode(data)
    except (Refusal, msgspec.DecodeError, ValueError, RecursionError):
        msg = "filters is no JSON, or nested too deep"
        raise FilterError(msg) from None


@table.add(
    "GET",
    MEMORY,
    "read",
    "User.get",
    answer=Item,
    errors=(NotFoundError,),
    examples=both(),
)
def get_item(call: Call) -> Item:
    """Return a memory, message or summary by its id, or a message by the id it came with."""
    return call.user.get(call.ids["item"])


@table.add(
    "PATCH",
    MEMORY,
    "write",
    "User.update",
    body=b.Update,
    answer=Item,
    errors=(NotFoundError,),
    examples=both({"text": "Ana's sister lives in Bergen."}, {"text": "安娜的姐姐住在卑尔根。"}),
)
def update_memory(call: Call) -> Item:
    """Change a memory and return the one that is active now.

    A new text makes a new memory that supersedes the old one, which stays in the history;
    attributes are changed in place.
    """
    return call.user.update(call.ids["item"], **call.once)


@table.add(
    "DELETE",
    MEMORY,
    "write",
    "User.delete",
    query=b.Reason,
    answer=a.Ended,
    errors=(NotFoundError,),
    examples=both(query={"reason": "wrong 错了"}),
)
def delete_memory(call: Call) -> a.Ended:
    """End a memory: it no longer answers, and stays in the history.

    To remove bytes from the disk, forget the user.
    """
    return a.Ended(call.user.delete(call.ids["item"], **call.once))


@table.add(
    "POST",
    f"{MEMORY}/archive",
    "write",
    "User.archive",
    body=b.Reason,
    answer=a.Ended,
    errors=(NotFoundError,),
    examples=both({"reason": "no longer of use"}, {"reason": "不再需要"}),
)
def archive_memory(call: Call) -> a.Ended:
    """Put a memory away: it answers only with `include_archived`."""
    return a.Ended(call.user.archive(call.ids["item"], **call.once))


@table.add(
    "POST",
    f"{MEMORY}/restore",
    "write",
    "User.restore",
    body=b.Reason,
    answer=Item,
    errors=(NotFoundError,),
    examples=both({"reason": "it was right"}, {"reason": "原来是对的"}),
)
def restore_memory(call: Call) -> Item:
    """Make an ended or archived memory active again; what replaced it is retired."""
    return call.user.restore(call.ids["item"], **call.once)


@table.add(
    "GET",
    f"{MEMORY}/history",
    "read",
    "User.history",
    query=b.Paging,
    answer=a.Page[Item],
    errors=(NotFoundError,),
    examples=both(),
)
def memory_history(call: Call) -> Any:
    """Return everything that a memory replaced and that replaced it, oldest first."""
    return call.page(call.user.history(call.ids["item"]))


@table.add(
    "POST",
    f"{USER}/observations",
    "write",
    "User.observe",
    body=b.Observe,
    answer=Kept,
    examples=both(
        {"event": "Tom apologised.", "participants": ["Tom"], "told_by": "the baker"},
        {"event": "汤姆道了歉。", "participants": ["汤姆"], "told_by": "面包师"},
    ),
)
def observe(call: Call) -> Kept:
    """Keep an event that this user saw, or was told of, verbatim."""
    return call.user.observe(**call.once)


@table.add(
    "POST",
    f"{USER}/relations",
    "write",
    "User.relate",
    body=b.Relate,
    answer=a.Related,
    examples=both(
        {"head": "user", "predicate": "works_at", "tail": "Oslo Lab", "functional": True},
        {"head": "user", "predicate": "works_at", "tail": "奥斯陆实验室", "functional": True},
    ),
)
def relate(call: Call) -> a.Related:
    """Add a typed triple; "user" is the owner of the memory."""
    return a.Related(call.user.relate(**call.once))


@table.add(
    "POST",
    f"{USER}/mask",
    "write",
    "User.mask",
    body=b.Words,
    answer=a.Words,
    is_repeatable=True,
    examples=both({"text": "Write to ana@example.org."}, {"text": "请写信到 ana@example.org。"}),
)
def mask(call: Call) -> a.Words:
    """Return a text as it would be stored: what the folder masks as placeholders."""
    return a.Words(call.user.mask(call.body.text))


@table.add(
    "POST",
    f"{USER}/unmask",
    "admin",
    "User.unmask",
    body=b.Words,
    answer=a.Words,
    has_request_id=False,
    examples=both({"text": "Write to [EMAIL_1]."}, {"text": "请写信到 [EMAIL_1]。"}),
)
def unmask(call: Call) -> a.Words:
    """Return a text with what its placeholders stand for.

    It gives personal data back, so it needs the role admin.
    """
    return a.Words(call.user.unmask(call.body.text))
