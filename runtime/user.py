"""One user's memory, as a caller sees it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Unpack

from reverie import (
    asking,
    cypher,
    door,
    exporting,
    graphs,
    groups,
    masking,
    profiles,
    reflecting,
    summing,
)
from reverie.actors import commands as c
from reverie.memory_graph.context import Context, assemble, utc_day
from reverie.memory_graph.errors import UnknownMemoryError
from reverie.memory_graph.ids import check_id
from reverie.memory_graph.views import EntityView, Hit, Item
from reverie.memory_graph.why import Explanation
from reverie.nearest import nearest
from reverie.relationships import Relationships, context_lines, named_in
from reverie.repeats import mark
from reverie.results import ERASED_AT, ForgetReceipt, SearchOptions, receipt
from reverie.writing import Writing


class User(Writing):
    """The memory of one user in one world; made by `Runtime.user`. Cheap, holds no state.

    Times are seconds on the runtime's clock, or anything that `parse_time` takes. Every method
    may raise InputError (a bad argument), StorageError, and UnavailableError.
    """

    # -- reading -----------------------------------------------------------------------

    @property
    def relationships(self) -> Relationships:
        """How this user stands to others: trust, fear, debt and the like."""
        return Relationships(self)

    def search(
        self,
        question: str,
        *,
        limit: int = 10,
        filters: Mapping[str, Any] | None = None,
        types: Sequence[str] | str | None = None,
        as_of: object = None,
        valid_at: object = None,
        include_archived: bool = False,
        include_retired: bool = False,
    ) -> list[Hit]:
        """Return what answers a question, best first, each hit with its reasons.

        Args:
            question: in any language.
            limit: 1 to 10,000.
            filters: see memory_graph/filters.py; unknown fields and operators are errors.
            types: some of "memory", "message", "summary"; all by default.
            as_of: as it was believed at this recorded time.
            valid_at: what holds (held) at this time of the world.
            include_archived: archived memories answer too.
            include_retired: superseded and expired memories answer too.

        Raises:
            FilterError: a malformed filter.
            EmbedderMismatchError: the world's vectors are of another model.
        """
        options = SearchOptions(
            limit=limit,
            filters=filters,
            types=types,
            as_of=as_of,
            valid_at=valid_at,
            include_archived=include_archived,
            include_retired=include_retired,
        )
        return asking.search(self._rt, self.key, self.search_command(question, options))

    def search_command(
        self, question: str, options: SearchOptions, now: float | None = None
    ) -> c.Search:
        """Return the checked command of a search, without its vector; see `asking.command`.

        Several that are asked together, at the same `now`, share more of the work.
        """
        return asking.command(self._read(now), question, options, self.masking)

    def why(self, question: str, item_id: str, **search: Unpack[SearchOptions]) -> Explanation:
        """Return why a memory, message or summary does or does not come up for a question.

        It is asked as if now; what a search has read since it was asked counts as more recent.
        Nothing is recorded as read.

        Args:
            question: in any language.
            item_id: of the item; of a message also the id it came with. An unknown one is told.
                That of a memory of a group is explained among what the group knows; then it is
                looked for among the hits of the user and all its groups, as by `search`.
            search: as in `search`.

        Raises:
            FilterError: a malformed filter.
            EmbedderMismatchError: the world's vectors are of another model.
        """
        asked = self.search_command(question, search)
        return asking.why(self._rt, asked, item_id)

    def context(
        self,
        question: str,
        *,
        budget_tokens: int = 800,
        count_tokens: Callable[[str], int] | None = None,
        show_time: Callable[[float], str] = utc_day,
        **search: Unpack[SearchOptions],
    ) -> Context:
        """Return a block of text for a prompt: the best hits that fit in a budget of tokens, and a
        line for each of those whom the question names that this user has a relationship to.

        Args:
            question: what the prompt is about.
            budget_tokens: of the whole block, by `count_tokens`.
            count_tokens: of the model that reads the prompt; the world's embedder by default.
            show_time: how a time is shown; as a UTC date by default.
            search: as in `search`; limit is 50 by default.
        """
        budget = door.limit(budget_tokens, "budget_tokens", 10_000_000)
        search.setdefault("limit", asking.CONTEXT_HITS)
        hits = self.search(question, **search)
        counter = count_tokens or self._rt.mind.for_reading(self.key.world).count_tokens
        related = named_in(self, question, search.get("as_of"))
        return assemble(hits, budget, counter, show_time, context_lines(related))

    nearest = nearest
    query = cypher.query
    export_graph = graphs.export_graph
    get_conversation_summary = summing.get_conversation_summary
    summarise = summing.summarise
    reflect = reflecting.reflect
    set_profile = profiles.set_profile
    profile = profiles.profile
    audit = profiles.audit
    export = exporting.export
    mask = masking.mask
    unmask = masking.unmask

    def get(self, node_id: str) -> Item:
        """Return a memory, message or summary by its id, or a message by the id it came with.

        Raises:
            UnknownMemoryError: there is none.
        """
        checked = check_id(node_id, "id")
        item = groups.get(self._rt, self._read(), checked)
        if item is None:
            msg = f"nothing of id {checked!r} for user {self.key.user_id!r}"
            raise UnknownMemoryError(msg, memory_id=checked)
        return item

    def list(
        self,
        *,
        limit: int = 100,
        cursor: str | None = None,
        filters: Mapping[str, Any] | None = None,
        types: Sequence[str] | str | None = "memory",
        as_of: object = None,
        valid_at: object = None,
        include_archived: bool = False,
        include_retired: bool = False,
    ) -> c.Page:
        """Return one page of what is kept, in order of recording, with the total of all pages.

        Args:
            limit: items per page.
            cursor: of the page before; None begins.
            filters: as in `search`.
            types: as in `search`; memories by default.
            as_of: as in `search`.
            valid_at: as in `search`.
            include_archived: as in `search`.
            include_retired: as in `search`.
        """
        command = c.ListItems(
            **self._read(),
            limit=door.limit(limit),
            after=None if cursor is None else check_id(cursor, "cursor"),
            filters=self.masking.filters(door.filters(filters)),
            types=door.types(types),
            as_of=door.optional_time(as_of, "as_of"),
            valid_at=door.optional_time(valid_at, "valid_at"),
            archived=door.flag(include_archived, "include_archived"),
            retired=door.flag(include_retired, "include_retired"),
        )
        page: c.Page = self._rt.call(command)
        return page

    def history(self, memory_id: str) -> Sequence[Item]:
        """Return everything that a memory replaced and that replaced it, oldest first.

        Raises:
            UnknownMemoryError: no such memory.
        """
        checked = check_id(memory_id, "memory_id")
        items: Sequence[Item] = self._rt.call(c.History(**self._read(), memory_id=checked))
        return items

    def entities(self, name: str | None = None, *, limit: int = 100) -> Sequence[EntityView]:
        """Return the people, places and things that are known, most mentioned first."""
        wanted = None if name is None else self.masking.asked_name(door.name(name))
        command = c.Entities(**self._read(), name=wanted, limit=door.limit(limit))
        found: Sequence[EntityView] = self._rt.call(command)
        return found

    def neighbors(
        self,
        name: str = "user",
        *,
        as_of: object = None,
        valid_at: object = None,
        include_retired: bool = False,
        limit: int = 100,
    ) -> c.Neighborhood:
        """Return an entity's relations, what it is seen with, and where it is mentioned.

        Raises:
            UnknownMemoryError: no entity of exactly this name or alias.
        """
        wanted = self.masking.asked_name(door.name(name))
        command = c.Neighbors(
            **self._read(),
            name=wanted,
            as_of=door.optional_time(as_of, "as_of"),
            valid_at=door.optional_time(valid_at, "valid_at"),
            retired=door.flag(include_retired, "include_retired"),
            limit=door.limit(limit),
        )
        found: c.Neighborhood | None = self._rt.call(command)
        if found is None:
            msg = f"no entity is named {wanted!r}"
            raise UnknownMemoryError(msg, name=wanted)
        return found

    def stats(self) -> c.UserStats:
        """Return counts of this user; all zero for one that does not exist."""
        stats: c.UserStats = self._rt.call(c.Stats(**self._read()))
        return stats

    def digest(self) -> str:
        """Return the digest of the whole state, the same in every process; "" for no user."""
        return str(self._rt.call(c.Digest(**self._read())))

    def check(self) -> Sequence[str]:
        """Return broken invariants of this user's state; empty when it is sound."""
        lines: Sequence[str] = self._rt.call(c.Check(**self._read()))
        return lines

    def forget(self, *, request_id: str | None = None) -> ForgetReceipt:
        """Erase this user: rows, snapshots, checkpoints, index and traces, then look for remains.

        Args:
            request_id: a call repeated with the same id gives the first receipt, and does not erase
                who has the id of this user since.

        Returns:
            A receipt that says what was removed and what a search of the files found.

        Raises:
            RequestReusedError: the request id was used before of this user, to bury it.
        """
        rt, key = self._rt, self.key
        known = mark(key, request_id, "forget")

        def erased() -> tuple[float, c.Erased]:
            found = rt.erase(key, known)
            return rt.now(key.world), found

        return receipt(key, *rt.repeats.once(key, known, ERASED_AT, erased))

    # -- the fields that commands share --------------------------------------------------
