"""Where each text of a user stands: what is around it, who said it, when, and what it looks like.

One row per document of the word index, with the same numbers, in flat arrays: about 70 bytes a
text. Rows are added when somebody searches, as those of the word index are. All of it follows from
the graph and the texts, so nothing is saved.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from reverie.memory_graph import cues, nodes as n

if TYPE_CHECKING:
    from reverie.memory_graph.graph import MemoryGraph
    from reverie.memory_graph.vector_table import VectorTable
    from reverie.memory_graph.words import WordIndex

Float64: TypeAlias = NDArray[np.float64]
Rows: TypeAlias = NDArray[np.intp]

REACH = 3  # turns to each side that count as around
EARLIER, LATER = 0.7, 0.5  # weight of a word one turn before, or after; then its powers
MIX_REACH, MIX = 2, 0.5  # of the vectors around a turn, likewise
K1, B = 1.5, 0.75  # as the word index has them
NOBODY = -1

_COLUMNS: dict[str, Any] = {
    "group": np.int32,  # number of the session
    "is_turn": np.bool_,
    "speaker": np.int32,
    "at": np.float64,  # seconds: said, or valid from
    "recorded": np.float64,
    "variety": np.float32,  # log(1 + different words)
    "names": np.float32,  # log(1 + names)
    "answers": np.uint8,  # bits below
    "asks": np.bool_,
    "replies": np.bool_,
    "previous": np.int32,
    "following": np.int32,
}
SAYS_TIME, SAYS_NUMBER, SAYS_NAME, SAYS_NAMES = 1, 2, 4, 8
_MANY_NAMES = 2


class Passages:
    """The rows of one user. Call `sync` before anything else is read.

    Attributes:
        count: rows.
        has_turns: whether any of them is a turn of a conversation.
        only_turns: whether all of them are.
        speakers: node ids of those who speak, by number.
        columns: the arrays of `_COLUMNS`, each of shape (count,).
        near: for each distance 1 to `REACH`: (rows that far before, rows that far after); -1 none.
        groups: node ids of the sessions, by number.
        fixed: the signals that do not depend on a question, by name, float32 (count,): those that
            are not 0 everywhere.
        window_norm: what BM25 adds to the frequency of a word for the length of each row with what
            is around it, float64 (count,).
        group_norm: likewise of each session, float64 (groups,).
        norms: of the vector of each row mixed with those around; NaN is not computed yet.
    """

    __slots__ = (
        "_compactions",
        "_room",
        "_text_rows",
        "_vector_rows",
        "_vector_version",
        "_vectors",
        "_vectors_seen",
        "columns",
        "count",
        "fixed",
        "group_norm",
        "groups",
        "has_turns",
        "near",
        "norms",
        "only_turns",
        "speakers",
        "window_norm",
    )

    def __init__(self) -> None:
        self._forget(-1)

    def _forget(self, compactions: int) -> None:
        self._compactions = compactions
        self._room = {name: np.zeros(0, kind) for name, kind in _COLUMNS.items()}
        self.columns: dict[str, NDArray[Any]] = dict(self._room)
        self.count = 0
        self.groups: dict[str, int] = {}
        self.speakers: dict[str, int] = {}
        self.has_turns = self.only_turns = False
        self.near: list[tuple[Rows, Rows]] = []
        self.window_norm: Float64 = np.zeros(0)
        self.group_norm: Float64 = np.zeros(0)
        self.fixed: dict[str, NDArray[np.float32]] = {}
        self.norms = np.zeros(0, np.float32)
        self._vector_rows: Rows = np.zeros(0, np.intp)
        self._text_rows: Rows | None = None
        self._vectors: VectorTable | None = None
        self._vector_version = -1
        self._vectors_seen = 0

    @property
    def size_bytes(self) -> int:
        """Memory held."""
        per_row = sum(array.itemsize for array in self._room.values())
        return len(self._room["at"]) * per_row + self.count * (
            8 * 2 * REACH + 28 + 4 * len(self.fixed)
        )

    # -- keeping up ----------------------------------------------------------------------

    def sync(self, graph: MemoryGraph, words: WordIndex) -> None:
        """Take in the documents that the word index has got since."""
        if self._compactions != words.compactions:  # its rows have new numbers
            self._forget(words.compactions)
        first, total = self.count, words.analysed
        if first == total:
            return
        self._grow(total)
        column = self.columns
        for name in ("group", "speaker", "previous", "following"):
            column[name][first:] = NOBODY
        skip = {name for s in self.speakers if (name := _name(graph, s))}
        for row in range(first, total):
            node_id = words.ids[row]
            node = None if node_id is None else graph.node(node_id)
            if isinstance(node, n.Message | n.Memory | n.Summary):
                self._take(row, node, graph, words, skip)
        column["variety"][first:] = np.log1p(words.varieties[first:total].astype(np.float64))
        self._settle(words)

    def _grow(self, total: int) -> None:
        room = len(self._room["at"])
        if total > room:
            room = max(total, room * 5 // 4, 16)
            for name, old in self._room.items():
                new = np.zeros(room, old.dtype)
                new[: self.count] = old[: self.count]
                self._room[name] = new
        self.count = total
        self.columns = {name: array[:total] for name, array in self._room.items()}

    def _take(
        self,
        row: int,
        node: n.Message | n.Memory | n.Summary,
        graph: MemoryGraph,
        words: WordIndex,
        skip: set[str],
    ) -> None:
        column = self.columns
        told = cues.says(node.text, skip)
        turn = node if isinstance(node, n.Message) else _source(graph, node.id)
        column["recorded"][row] = node.recorded_at
        if turn is not None:
            column["group"][row] = self.groups.setdefault(turn.session, len(self.groups))
            for speaker, _ in graph.out(turn.id, n.SENT_BY):
                if speaker not in self.speakers:
                    self.speakers[speaker] = len(self.speakers)
                    if name := _name(graph, speaker):
                        skip.add(name)
                column["speaker"][row] = self.speakers[speaker]
        match node:
            case n.Message():
                self.has_turns = column["is_turn"][row] = True
                column["at"][row] = node.said_at
                for before, _ in graph.out(node.id, n.PREVIOUS):
                    if (other := words.rows.get(before)) is not None:
                        column["previous"][row] = other
                        column["following"][other] = row
                        previous = graph.node(before)
                        if isinstance(previous, n.Message):
                            column["replies"][row] = cues.says(previous.text).asks_somewhere
            case n.Memory():
                since = node.valid_from if node.valid_from is not None else node.recorded_at
                column["at"][row] = since
            case n.Summary():
                column["at"][row] = node.to_at
        names = told.names
        if not isinstance(node, n.Message):  # a turn gets its entities later, if at all
            names = max(names, sum(1 for _ in graph.out(node.id, n.CONTAINS_ENTITY)))
        column["names"][row] = math.log1p(names)
        column["answers"][row] = (
            SAYS_TIME * told.time
            | SAYS_NUMBER * told.number
            | SAYS_NAME * (names > 0)
            | SAYS_NAMES * (names >= _MANY_NAMES)
        )
        column["asks"][row] = told.asks

    def _settle(self, words: WordIndex) -> None:
        """Compute what depends on the rows around."""
        self.near = []
        lengths = words.lengths.astype(np.float64)
        window = lengths.copy()
        if self.has_turns:
            before = self.columns["previous"].astype(np.intp)
            after = self.columns["following"].astype(np.intp)
            back, on = before, after
            for distance in range(1, REACH + 1):
                self.near.append((back, on))
                for rows, weight in ((back, EARLIER**distance), (on, LATER**distance)):
                    there = rows >= 0
                    window[there] += weight * lengths[rows[there]]
                back = np.where(back >= 0, before[back], NOBODY)
                on = np.where(on >= 0, after[on], NOBODY)
        self.window_norm = _norm(window)
        turns = self.columns["is_turn"]
        self.only_turns = bool(turns.all())
        group = self.columns["group"][turns]
        said = np.bincount(group, lengths[turns], minlength=len(self.groups))
        self.group_norm = _norm(said.astype(np.float64, copy=False))
        variety = self.columns["variety"].astype(np.float64)
        apart = variety - variety.mean()
        signals = {"length": apart / (float(variety.std()) or 1.0)}
        signals |= {name: self.columns[name] for name in ("names", "replies", "asks")}
        self.fixed = {name: x.astype(np.float32) for name, x in signals.items() if x.any()}
        self.norms = np.full(self.count, np.nan, np.float32)

    # -- vectors -------------------------------------------------------------------------

    def vector_rows(self, words: WordIndex, table: VectorTable) -> Rows:
        """Return the row in the vector table of each text, -1 without one: intp (count,)."""
        if self._vectors is not table or self._vector_version != table.version:
            self._vectors, self._vector_version = table, table.version
            self._vector_rows = np.zeros(0, np.intp)
            self._text_rows = None
            self.norms = np.full(self.count, np.nan, np.float32)
        if self._vectors_seen != len(table.ids):  # a turn may get its vector when it settles
            self._vectors_seen = len(table.ids)
            late = np.flatnonzero(self._vector_rows < 0)
            get = table.rows.get
            rows = [
                NOBODY if (i := words.ids[r]) is None else get(i, NOBODY) for r in late.tolist()
            ]
            if any(row >= 0 for row in rows):
                self._vector_rows[late] = rows
                self._text_rows = None
                self.norms = np.full(self.count, np.nan, np.float32)
        known = self._vector_rows.size
        if known < self.count:
            get = table.rows.get
            new = [NOBODY if i is None else get(i, NOBODY) for i in words.ids[known : self.count]]
            self._vector_rows = np.concatenate([self._vector_rows, np.array(new, np.intp)])
            self._text_rows = None
        return self._vector_rows

    def text_rows(self, words: WordIndex, table: VectorTable) -> Rows:
        """Return the row of the text of each vector, -1 without one: intp (rows of the table,)."""
        vectors = self.vector_rows(words, table)
        if self._text_rows is None or self._text_rows.size != len(table.ids):
            self._text_rows = np.full(len(table.ids), NOBODY, np.intp)
            texts = np.flatnonzero(vectors >= 0)
            self._text_rows[vectors[texts]] = texts
        return self._text_rows

    def around(self, rows: Rows) -> Iterator[tuple[float, Rows]]:
        """Yield (weight, rows that far away or -1) of what is mixed into the vectors of `rows`."""
        for distance, (back, on) in enumerate(self.near[:MIX_REACH], 1):
            yield MIX**distance, back[rows]
            yield MIX**distance, on[rows]


def _norm(lengths: Float64) -> Float64:
    """Return what BM25 adds to the frequency of a word in texts of these lengths."""
    mean = float(lengths.mean()) if lengths.size else 0.0
    return K1 * (1 - B + B * lengths / (mean or 1.0))


def _source(graph: MemoryGraph, node_id: str) -> n.Message | None:
    """Return the first turn that a memory or summary derives from."""
    for source, _ in graph.out(node_id, n.DERIVED_FROM):
        if isinstance(turn := graph.node(source), n.Message):
            return turn
    return None


def _name(graph: MemoryGraph, node_id: str) -> str:
    node = graph.node(node_id)
    return node.name.lower() if isinstance(node, n.Entity) else ""
