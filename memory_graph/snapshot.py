"""A user's whole state as bytes, and its digest.

A snapshot is an optimisation: the journal says the same. The store checksums the bytes; here they
are checked for shape. The digest is over a canonical form (nodes and edges sorted, mappings with
sorted keys), so it is the same whatever the process, the hash seed or the way to the state.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b

import msgspec

from reverie.memory_graph import nodes as n
from reverie.memory_graph.errors import DataFolderError, InvariantError
from reverie.memory_graph.graph import MemoryGraph
from reverie.memory_graph.state import UserMemory
from reverie.memory_graph.vectors import VectorIndex

SNAPSHOT_FORMAT = 1

Link = tuple[str, str, n.Edge | n.Relation]


class Snapshot(msgspec.Struct, frozen=True):
    """Everything that cannot be derived. `vectors` is float32 little endian, (ids, dim); `bonds`
    are (entity id, relationship) in the order in which they moved last."""

    format: int
    seq: int
    embedder: str | None
    counters: dict[str, int]
    nodes: list[n.Node]
    edges: list[Link]
    dim: int
    vector_ids: list[str]
    vectors: bytes
    bonds: list[tuple[str, n.Bond]] = []


_encoder = msgspec.msgpack.Encoder(order="deterministic")
_decoder = msgspec.msgpack.Decoder(Snapshot)


def encode_snapshot(memory: UserMemory) -> bytes:
    """Return the state as MessagePack."""
    ids, vectors = ([], b"") if memory.vectors is None else memory.vectors.export()
    return _encoder.encode(
        Snapshot(
            SNAPSHOT_FORMAT,
            memory.seq,
            memory.embedder,
            memory.graph.counters,
            list(memory.graph.nodes()),
            list(_in_order(memory.graph)),
            0 if memory.vectors is None else memory.vectors.dim,
            ids,
            vectors,
            list(memory.bonds.items()),
        )
    )


def read_snapshot(data: bytes) -> Snapshot:
    """Return what `encode_snapshot` wrote, as it stands there.

    Raises:
        DataFolderError: it is of a newer format.
        InvariantError: the bytes are no snapshot.
    """
    try:
        snap = _decoder.decode(data)
    except msgspec.DecodeError as exc:
        msg = f"not a snapshot: {exc}"
        raise InvariantError(msg) from exc
    if snap.format > SNAPSHOT_FORMAT:
        msg = (
            f"a snapshot was written by a newer version of reverie: it has format {snap.format}, "
            f"this version reads up to {SNAPSHOT_FORMAT}"
        )
        raise DataFolderError(msg, found=snap.format, supported=SNAPSHOT_FORMAT)
    return snap


def decode_snapshot(data: bytes, *, exact_limit: int = 4000) -> UserMemory:
    """Return the state that `encode_snapshot` wrote.

    Raises:
        DataFolderError: it is of a newer format.
        InvariantError: the bytes are no snapshot, or do not hang together.
    """
    snap = read_snapshot(data)
    memory = UserMemory(embedder=snap.embedder, exact_limit=exact_limit)
    memory.seq = snap.seq
    graph = memory.graph
    for node in snap.nodes:
        if isinstance(node, n.User):
            graph.nx.nodes[n.USER_NODE]["data"] = node
            continue
        graph.restore(node)
        if (text := memory.text_of(node.id)) is not None:
            memory.index(node.id, text, None)
    for tail, head, edge in snap.edges:
        graph.link(tail, head, edge, known=True)
    graph.counters = dict(snap.counters)
    memory.bonds = dict(snap.bonds)
    if snap.dim:
        memory.vectors = VectorIndex.restore(
            snap.dim, snap.vector_ids, snap.vectors, exact_limit=exact_limit
        )
    return memory


def state_digest(memory: UserMemory) -> str:
    """Return a blake2b hex digest (32 bytes) of everything that a read could depend on."""
    digest = blake2b(digest_size=32)
    graph = memory.graph
    digest.update(_encoder.encode((SNAPSHOT_FORMAT, memory.embedder, graph.counters)))
    for node in sorted(graph.nodes(), key=lambda node: node.id):
        digest.update(_encoder.encode(node))
    for link in sorted(graph.edges(), key=_edge_key):
        digest.update(_encoder.encode(link))
    if memory.bonds:
        digest.update(_encoder.encode(list(memory.bonds.items())))
    if memory.vectors is not None:
        ids, data = memory.vectors.export()
        step = 4 * memory.vectors.dim
        rows = sorted((node_id, i) for i, node_id in enumerate(ids))
        view = memoryview(data)
        for node_id, i in rows:
            digest.update(node_id.encode())
            digest.update(view[i * step : (i + 1) * step])
    return digest.hexdigest()


def _edge_key(link: Link) -> tuple[str, str, str]:
    tail, head, edge = link
    return tail, head, edge.id if isinstance(edge, n.Relation) else edge.kind


def _in_order(graph: MemoryGraph) -> Iterator[Link]:
    """Iterate over all edges in an order that rebuilds the adjacency of both ends as it is.

    Walks prefer a node's newest neighbours, so the order of neighbours is state. Each node keeps
    its successors and its predecessors in order of creation; any merge of those orders rebuilds
    both: an edge is emitted once it is the next of its tail and the next of its head.
    """
    succ = {tail: list(heads.items()) for tail, heads in graph.nx._succ.items()}  # noqa: SLF001
    pred = {head: list(tails) for head, tails in graph.nx._pred.items()}  # noqa: SLF001
    done = dict.fromkeys(succ, 0)
    came = dict.fromkeys(pred, 0)
    for start in succ:
        work = [start]
        while work:
            tail = work.pop()
            while done[tail] < len(succ[tail]):
                head, keyed = succ[tail][done[tail]]
                if pred[head][came[head]] != tail:
                    break  # this edge waits for another tail, which will come back here
                for box in keyed.values():
                    yield tail, head, box.data
                done[tail] += 1
                came[head] += 1
                if came[head] < len(pred[head]):
                    work.append(pred[head][came[head]])
