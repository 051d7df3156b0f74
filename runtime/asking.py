"""From a question to the command that is sent: checked, its times read, and embedded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from reverie import door, groups
from reverie.actors import commands as c
from reverie.actors.gatherings import of_group
from reverie.memory_graph import groups as g
from reverie.memory_graph.ids import Key, check_id
from reverie.memory_graph.state import as_bytes
from reverie.memory_graph.views import Hit
from reverie.memory_graph.why import Explanation, passed_over, unknown
from reverie.results import SearchOptions
from reverie.times import times_named

if TYPE_CHECKING:
    from reverie.masking import Mask
    from reverie.runtime import Runtime

CONTEXT_HITS = 50  # of a context block, by default


def command(read: dict[str, Any], question: str, options: SearchOptions, masking: Mask) -> c.Search:
    """Return the checked command of a search, without its vector.

    Args:
        read: the fields that every read has.
        question: in any language.
        options: defaults as of `User.search`.
        masking: of the user: what is asked goes through it, and no further as it was.

    Raises:
        TypeError: an unknown option, which would otherwise be ignored without a word.
    """
    if unknown := sorted(set(options) - set(SearchOptions.__annotations__)):
        msg = f"a search has no option {', '.join(unknown)}"
        raise TypeError(msg)
    get, text = options.get, masking.question(door.question(question))
    as_of = door.optional_time(get("as_of"), "as_of")
    return c.Search(
        **read,
        text=text,
        times=times_named(text, read["now"] if as_of is None else as_of),
        limit=door.limit(get("limit", 10)),
        filters=masking.filters(door.filters(get("filters"))),
        types=door.types(get("types")),
        as_of=as_of,
        valid_at=door.optional_time(get("valid_at"), "valid_at"),
        archived=door.flag(get("include_archived", False), "include_archived"),
        retired=door.flag(get("include_retired", False), "include_retired"),
    )


def search(rt: Runtime, key: Key, asked: c.Search) -> list[Hit]:
    """Embed a question and ask it."""
    (hits,) = groups.search_many(rt, [with_vector(rt, asked)])
    if rt.tracer is not None:
        rt.tracer(key, {"question": asked.text, "hits": hits})
    return hits


def why(rt: Runtime, asked: c.Search, item_id: str) -> Explanation:
    """Ask why an item is or is not among the hits of a search: one of the user's own, or of a group
    that it knows it by. Both answer a search together."""
    item_id, asked = check_id(item_id, "item_id"), with_vector(rt, asked)
    user: dict[str, Any] = {"world": asked.world, "user_id": asked.user_id, "now": asked.now}
    names: list[str] = rt.call(c.MemberOf(**user))
    shared = of_group(item_id)
    if shared is None or g.name_of(asked.user_id) is not None:
        told: Explanation = rt.call(c.Why(**user, search=asked, item_id=item_id))
    elif (name := shared[0]) not in names:
        return unknown(item_id, asked.limit)
    else:
        owner = {**user, "user_id": g.owner_of(name)}
        search = msgspec.structs.replace(
            asked, user_id=g.owner_of(name), member=asked.user_id, touch=False
        )
        told = rt.call(c.Why(**owner, search=search, item_id=shared[1]))
        if told.verdict == "unknown":
            return unknown(item_id, asked.limit)
    if told.verdict != "shown" or not names or told.item is None:
        return told
    (hits,) = groups.search_many(rt, [msgspec.structs.replace(asked, touch=False)])
    if any(hit.id == told.item_id for hit in hits) or not hits:
        return told
    said = (told.item.event, told.item.text)
    same = [hit.id for hit in hits if said[0] is not None and (hit.event, hit.text) == said]
    return passed_over(told, hits, same[0] if same else None)


def with_vector(rt: Runtime, asked: c.Search) -> c.Search:
    """Return a search with the vector of its question."""
    embedder = rt.mind.for_reading(asked.world)
    return asked.with_vector(as_bytes(embedder.embed([asked.text], "query")[0]), embedder.info.id)
