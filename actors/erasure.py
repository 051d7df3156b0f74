"""Erasing a user, and looking for what is left of it.

The rows go in one transaction with `secure_delete` on, then the write-ahead log is truncated:
either alone leaves copies. Then the files are searched for byte strings of the user.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec
import structlog

from reverie.actors.commands import Erased, Mark
from reverie.memory_graph import faults
from reverie.memory_graph.errors import ReverieError, StorageFailedError
from reverie.memory_graph.ids import Key, key_hash
from reverie.memory_graph.store import Partition, search_files, sync_folder

log = structlog.get_logger(__name__)

MAX_NEEDLES = 1024
MIN_NEEDLE_BYTES = 8  # shorter strings occur by chance
NOT_SEARCHED = "the files were not searched: the erasure was interrupted after the rows were gone"


def receipt_of(partition: Partition, mark: Mark | None) -> Erased | None:
    """Return the answer to an erasure that was carried out under this mark, or None.

    Raises:
        RequestReusedError: it was of another request.
    """
    if mark is None:
        return None
    with partition.write() as txn:
        seen = txn.result_of(mark.request, mark.print)
    return None if seen is None else msgspec.msgpack.decode(seen, type=Erased)


def erase_user(
    folder: Path, partition: Partition, key: Key, texts: Sequence[str], mark: Mark | None = None
) -> Erased:
    """Erase everything of a user and search the data folder for its strings.

    Args:
        folder: the data folder.
        partition: the partition that owns the user.
        key: the user.
        texts: texts of the user, to look for afterwards; at most 1,024 of them are, evenly chosen.
        mark: the answer is kept under it, in the transaction of the rows.

    Returns:
        What was removed and found; `found` is empty when nothing of the user is left.
    """
    needles = choose_needles(key, texts)
    existed = partition.state(key) is not None
    with partition.write() as txn:
        rows = msgspec.structs.asdict(txn.erase(key))
        if mark is not None:
            interrupted = Erased(existed, rows, 0, 0, 0, [NOT_SEARCHED])
            txn.keep_result(mark.request, None, mark.print, msgspec.msgpack.encode(interrupted))
    faults.reach("erase.rows")
    remove_files(folder, key_hash(key).hex())
    faults.reach("erase.files")
    partition.scrub()
    faults.reach("erase.scrubbed")
    sizes = file_sizes(folder)
    left: list[str] = []
    shared = 0
    for needle, places in search_files(folder, needles).items():
        # A partition file with its log: p0003.db, p0003.db-wal.
        foreign = {p.with_name(p.name[:8]) for p, _ in places if p.parent.name == "partitions"}
        if foreign and all(_explains(path, needle) for path in sorted(foreign)):
            shared += 1  # rows of other users hold the same text: a fork, a shared event
            places = [(p, n) for p, n in places if p.parent.name != "partitions"]  # noqa: PLW2901
        left += [f"{path.relative_to(folder)}: {count}" for path, count in places]
    found = sorted(set(left))
    erased = Erased(existed, rows, len(needles), len(sizes), sum(sizes), found, shared)
    if mark is not None:
        with partition.write() as txn:
            txn.drop_result(mark.request)
            txn.keep_result(mark.request, None, mark.print, msgspec.msgpack.encode(erased))
    return erased


def _explains(path: Path, needle: bytes) -> bool:
    """Whether a user's rows in a partition file hold the needle. The rows of the erased one are
    gone by now, so an error must not take the receipt with it: then nothing is explained."""
    try:
        return Partition.rows_hold(path, needle)
    except ReverieError as exc:
        log.warning("what was found cannot be explained", partition=path.name, error=str(exc))
        return False


def file_sizes(folder: Path) -> list[int]:
    """Return the sizes in bytes of all files below a folder in use: some may vanish meanwhile."""
    sizes: list[int] = []
    for place, _, names in os.walk(folder):
        for name in names:
            path = Path(place, name)
            with suppress(FileNotFoundError):
                if path.is_file():
                    sizes.append(path.stat().st_size)
    return sizes


def choose_needles(key: Key, texts: Sequence[str]) -> list[bytes]:
    """Return the byte strings to search for: the user id, and texts evenly chosen."""
    useful = [t for t in dict.fromkeys(texts) if len(t.encode()) >= MIN_NEEDLE_BYTES]
    step = max(1, -(-len(useful) // (MAX_NEEDLES - 1)))
    chosen = [text.encode()[:256] for text in useful[::step]]
    return [*_key_bytes(key), *chosen]


def _key_bytes(key: Key) -> list[bytes]:
    user = key.user_id.encode()
    return [user] if len(user) >= MIN_NEEDLE_BYTES else []


def remove_files(folder: Path, name: str) -> None:
    """Remove a user's vector index and traces; `name` is its `key_hash` in hex.

    Raises:
        StorageFailedError: they may be there still, or come back.
    """
    for kind in ("indices", "traces"):
        try:
            for path in (folder / kind).glob(f"{name}*"):
                path.unlink(missing_ok=True)
            sync_folder(folder / kind)  # or a power loss could bring them back
        except FileNotFoundError:
            continue
        except OSError as exc:
            msg = f"{folder / kind}: input/output error: {exc}"
            raise StorageFailedError(msg, path=str(folder / kind)) from exc
