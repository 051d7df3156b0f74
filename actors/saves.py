"""What a shard does for save games: images of a checkpoint page by page, the difference between
two of them, and the check of an image that came from elsewhere."""

from __future__ import annotations

import msgspec

from reverie.actors import commands as c
from reverie.actors.residents import Residents, build_state
from reverie.memory_graph import nodes as n
from reverie.memory_graph.check import check_memory
from reverie.memory_graph.diff import UserDiff, diff
from reverie.memory_graph.errors import WorldFileError
from reverie.memory_graph.ids import Key
from reverie.memory_graph.snapshot import state_digest
from reverie.memory_graph.state import UserMemory
from reverie.memory_graph.store import Loaded, UserImage


def page(residents: Residents, command: c.ExportSlot, *, exact_limit: int) -> c.ImagePage:
    """Return the next images of a pinned world, as many as fit into `command.max_bytes`, but one
    at least.

    Raises:
        UnknownCheckpointError: no such tag.
        JournalDamagedError: a user cannot be read.
    """
    images: list[bytes] = []
    digests: list[str] = []
    size_bytes, after = 0, command.after
    for number in [i for i in residents.numbers if i >= command.partition]:
        with residents.using(number) as partition:
            for image in partition.export_pin(command.world, command.tag, after):
                encoded = msgspec.msgpack.encode(image)
                if images and size_bytes + len(encoded) > command.max_bytes:
                    return c.ImagePage(images, digests, number, after)
                images.append(encoded)
                size_bytes += len(encoded)
                after = image.key.user_id
                if command.digests:
                    state = build_state(image.key, _loaded(image), exact_limit=exact_limit)
                    digests.append(state_digest(state))
        after = ""
    return c.ImagePage(images, digests, -1, "")


def compare(residents: Residents, command: c.Compare, *, exact_limit: int) -> UserDiff:
    """Return what differs of one user between two checkpoints, or one and now."""
    states: list[UserMemory | None] = []
    key = command.key
    with residents.using(residents.number(key)) as partition:
        for tag in (command.before, command.after):
            if tag is None:
                resident = residents.get(partition, key, create=False)
                states.append(None if resident is None else resident.memory)
            else:
                loaded = partition.load_pinned(key, tag)
                states.append(
                    None if loaded is None else build_state(key, loaded, exact_limit=exact_limit)
                )
    return diff(key.user_id, *states, limit=command.limit)


def require_sound(image: UserImage, key: Key, digest: str, *, exact_limit: int) -> None:
    """Refuse an image that is not the state that it was when it was exported: damage that no
    checksum shows, or a file that somebody has made up.

    Raises:
        WorldFileError: it cannot be built, is not sound, or has another digest.
    """
    try:
        why = _fault(image, key, digest, exact_limit=exact_limit)
    except Exception as exc:  # noqa: BLE001 (whatever a made-up event does to a state)
        why = f"{type(exc).__name__}: {exc}"
    if why:
        msg = f"user {key.user_id!r} in the file is not usable: {why[:500]}"
        raise WorldFileError(msg, user_id=key.user_id)


def _fault(image: UserImage, key: Key, digest: str, *, exact_limit: int) -> str:
    seqs = [seq for seq, _ in image.tail]
    has_begin = image.snapshot_seq >= 1 if image.snapshot is not None else image.snapshot_seq == 0
    whole = [*range(image.snapshot_seq + 1, image.snapshot_seq + 1 + len(seqs))]
    if not has_begin or seqs != whole or image.seq != image.snapshot_seq + len(seqs):
        return "its history has gaps"
    memory = build_state(key, _loaded(image), exact_limit=exact_limit)
    if state_digest(memory) != digest:
        return "it has another digest than when it was exported"
    if problems := check_memory(memory):
        return problems[0]
    open_ = {
        turn.id: turn.status == "quarantined"
        for turn in memory.graph.nodes(n.Message)
        if isinstance(turn, n.Message) and turn.status in {"pending", "quarantined"}
    }
    if open_ != {turn.turn_id: turn.is_quarantined for turn in image.pending}:
        return "other turns wait in it than in its state"
    return ""


def _loaded(image: UserImage) -> Loaded:
    return Loaded(
        generation=0,
        seq=image.seq,
        embedder=image.embedder,
        snapshot=image.snapshot,
        snapshot_seq=image.snapshot_seq,
        snapshot_format=image.snapshot_format,
        tail=image.tail,
        warnings=[],
    )
