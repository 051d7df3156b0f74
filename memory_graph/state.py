"""One user's memory: the graph and the two indices over its texts, changed together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from reverie.memory_graph.errors import InvariantError
from reverie.memory_graph.graph import MemoryGraph
from reverie.memory_graph.nodes import Bond, Entity, Memory, Message, Summary
from reverie.memory_graph.passages import Passages
from reverie.memory_graph.vectors import VectorIndex
from reverie.memory_graph.words import WordIndex

# Rough resident sizes, measured with tracemalloc over 1,000 users of 200 memories; they feed the
# byte budget that decides who stays in memory, nothing else.
NODE_BYTES = 900
EDGE_BYTES = 480
USER_BYTES = 20_000
BOND_BYTES = 600
MOVE_BYTES = 360


class UserMemory:
    """The state that a user's journal describes.

    Attributes:
        graph: nodes and edges.
        vectors: the vector index; None until the first vector tells the dimension.
        words: the BM25 index over the same texts.
        passages: where each of these texts stands; follows from the others.
        embedder: id of the embedder that made the vectors; None while there are none.
        seq: sequence of the last applied event.
        bonds: how the owner stands to others, by entity id; the one that moved last is the last.
    """

    __slots__ = (
        "bonds",
        "embedder",
        "exact_limit",
        "graph",
        "passages",
        "seq",
        "text_bytes",
        "vectors",
        "words",
    )

    def __init__(self, *, embedder: str | None = None, exact_limit: int = 4000) -> None:
        self.graph = MemoryGraph()
        self.vectors: VectorIndex | None = None
        self.words = WordIndex()
        self.passages = Passages()
        self.embedder = embedder
        self.exact_limit = exact_limit
        self.seq = 0
        self.text_bytes = 0
        self.bonds: dict[str, Bond] = {}

    def index(self, node_id: str, text: str | None, vector: bytes | None) -> None:
        """Add a node's text and vector (float32 little endian) to the indices; None adds none.

        Raises:
            InvariantError: the vector does not have the dimension of the others.
        """
        if text is not None:
            self.words.add(node_id, text)
            self.text_bytes += len(text)
        if vector is not None:
            if self.vectors is None:
                self.vectors = VectorIndex(len(vector) // 4, exact_limit=self.exact_limit)
            elif len(vector) != 4 * self.vectors.dim:
                msg = f"{node_id}: {len(vector)} bytes of vector, {4 * self.vectors.dim} expected"
                raise InvariantError(msg)
            self.vectors.add(node_id, vector)

    def replace_vectors(self, embedder: str, dim: int, ids: Sequence[str], vectors: bytes) -> None:
        """Replace all vectors by those of another embedder."""
        if len(vectors) != 4 * dim * len(ids):
            msg = f"{len(vectors)} bytes are not {len(ids)} vectors of {dim} dimensions"
            raise InvariantError(msg)
        self.embedder = embedder
        self.vectors = VectorIndex.restore(dim, list(ids), vectors, exact_limit=self.exact_limit)

    def text_of(self, node_id: str) -> str | None:
        """Return the text of a message, memory or summary."""
        node = self.graph.node(node_id)
        return node.text if isinstance(node, Memory | Message | Summary) else None

    def display(self, node_id: str) -> str:
        """Return how a person would call a node: its name, or the start of its text."""
        node = self.graph.node(node_id)
        match node:
            case Entity():
                return node.name
            case Memory() | Message() | Summary():
                return node.text if len(node.text) <= 60 else node.text[:57] + "..."  # noqa: PLR2004
            case None:
                return node_id
            case _:
                return str(getattr(node, "name", "user"))

    @property
    def size_bytes(self) -> int:
        """An estimate of the resident bytes, for the byte budget."""
        vectors = 0 if self.vectors is None else self.vectors.size_bytes
        graph = len(self.graph) * NODE_BYTES + self.graph.edge_count * EDGE_BYTES
        indices = vectors + self.words.size_bytes + self.passages.size_bytes
        moves = sum(len(bond.moves) for bond in self.bonds.values())
        bonds = BOND_BYTES * len(self.bonds) + MOVE_BYTES * moves
        return USER_BYTES + graph + self.text_bytes + indices + bonds


def as_bytes(vector: np.ndarray[tuple[int], np.dtype[np.float32]]) -> bytes:
    """Return a vector as float32 little endian bytes, the form in events and drafts."""
    return np.ascontiguousarray(vector, dtype="<f4").tobytes()
