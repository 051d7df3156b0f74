"""Everything of one user in open formats: `User.export`, and `reverie export`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from numpy.lib import format as npy

from reverie.actors import commands as c
from reverie.destinations import outside
from reverie.exporting.fields import FIELDS, readme
from reverie.exporting.files import FileFacts, Target, writing
from reverie.exporting.rows import FILES, Row, Whole
from reverie.memory_graph import nodes as n
from reverie.memory_graph.errors import InvalidValueError, MaskKeyMissingError
from reverie.memory_graph.ids import key_hash
from reverie.memory_graph.snapshot import read_snapshot

if TYPE_CHECKING:
    from reverie.masking import Mask
    from reverie.user import User

EXPORT_FORMAT = 1


class ExportManifest(msgspec.Struct, frozen=True):
    """What an export holds; it is manifest.json in it.

    Attributes:
        format: of exports.
        written_by: the version of reverie.
        world: of the user.
        user_id: whose memory it is.
        exported_at: seconds on the clock of the world.
        mask: "no" (nothing is masked), "masked" or "unmasked".
        files: by name; itself is not among them.
    """

    format: int
    written_by: str
    world: str
    user_id: str
    exported_at: float
    mask: str
    files: dict[str, FileFacts]


def export(
    self: User, path: str | Path, *, vectors: bool = False, unmask: bool = False
) -> ExportManifest:
    """Write everything of this user into a folder, or a .zip when the path ends so.

    All rows are of one moment; others go on writing meanwhile. README.txt in it explains each
    field. It has its name only once it is whole; after any error, nothing of it is left. It is
    not encrypted, and readable by its owner only. The whole state is in memory for a while, once
    as bytes and once as rows.

    Args:
        self: whose memory.
        path: a new name, or an empty folder, outside of the data folder.
        vectors: write the vectors, too (vectors.npy).
        unmask: write names and numbers of people as they were said, not as placeholders.

    Returns:
        What was written.

    Raises:
        InvalidValueError: there is no such user, or something under this name; or the path lies in
            the data folder.
        MaskKeyMissingError: `unmask`, of a folder that was opened without its key.
        StorageError: it cannot be written.
    """
    rt, key = self._rt, self.key
    path = outside(path, rt.path, "an export goes to a place outside of it")
    if unmask and rt.masks.is_on and not rt.masks.has_key:
        msg = "this data folder is masked: open it with its mask_key to export what is masked"
        raise MaskKeyMissingError(msg)
    read = self._read()
    found: c.WholeUser = rt.call(c.Whole(**read))
    if not found.state:
        msg = f"there is no user {key.user_id!r} in world {key.world!r}"
        raise InvalidValueError(msg, world=key.world, user_id=key.user_id)
    away = [u for u in rt.quarantined(key.world) if u.user_id == key.user_id]
    errors = {turn: why for u in away for turn, why in zip(u.turn_ids, u.errors, strict=False)}
    whole = Whole(read_snapshot(found.state), errors)
    mask = "no" if not rt.masks.is_on else "unmasked" if unmask else "masked"
    shown = self.masking if mask == "unmasked" else None
    with writing(path) as target:
        for name, rows in _files(self, whole, found, read["now"]):
            _write(target, name, rows, shown)
        if vectors:
            _write_vectors(target, whole)
        head = f"reverie export of user {key.user_id} in world {key.world}"
        with target.file("README.txt") as file:
            file.write(readme([*target.files], head, mask).encode())
        manifest = ExportManifest(
            EXPORT_FORMAT,
            f"reverie {_version()}",
            key.world,
            key.user_id,
            read["now"],
            mask,
            dict(target.files),
        )
        with target.file("manifest.json") as file:
            file.write(msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n")
    return manifest


def _files(
    user: User, whole: Whole, found: c.WholeUser, now: float
) -> Iterator[tuple[str, Iterable[Row]]]:
    """Yield the files in order, with their rows."""
    own = whole.user
    head = msgspec.structs.asdict(own) | {
        "world": user.key.world,
        "user_id": user.key.user_id,
        "exported_at": now,
        "embedder": whole.snapshot.embedder,
    }
    yield "user.json", [head]
    yield "profile.json", [{"profile": own.profile}]
    yield "groups.jsonl", [{"group": g, "is_member": is_in} for g, is_in in own.groups.items()]
    for kind, name in FILES.items():
        if kind is not n.User:
            yield name, whole.nodes(kind)
    yield "relations.jsonl", whole.relations()
    yield "relationships.jsonl", whole.relationships()
    yield "relationship_moves.jsonl", whole.moves()
    yield "links.jsonl", whole.links()
    yield "audit.jsonl", map(msgspec.structs.asdict, found.audit)
    usage = user._rt.usage(*user.key)  # noqa: SLF001 (a method of the package)
    yield "usage.jsonl", ({"purpose": r.purpose, **msgspec.structs.asdict(r.usage)} for r in usage)
    yield "traces.jsonl", _traces(user)


def _traces(user: User) -> Iterator[Row]:
    """Yield the traces that are kept of a user; none without `Config.trace`."""
    path = user._rt.path / "traces" / f"{key_hash(user.key).hex()}.jsonl"  # noqa: SLF001
    try:
        with path.open("rb") as file:
            for line in file:
                try:
                    yield {"trace": msgspec.json.decode(line)}
                except msgspec.DecodeError:  # cut short by a crash
                    yield {"trace": line.decode(errors="replace")}
    except FileNotFoundError:
        return


def _write(target: Target, name: str, rows: Iterable[Row], mask: Mask | None) -> None:
    fields = FIELDS[name]
    is_rows = name.endswith(".jsonl")
    with target.file(name) as file:
        if is_rows:
            file.begin_rows()
        for row in rows:
            whole: Any = {field: row[field] for field in fields}
            if mask is not None:
                whole = mask.unmasked(msgspec.to_builtins(whole))
            if is_rows:
                file.row(whole)
            else:
                file.write(msgspec.json.format(msgspec.json.encode(whole), indent=2) + b"\n")


def _write_vectors(target: Target, whole: Whole) -> None:
    state = whole.snapshot
    with target.file("vectors.jsonl") as file:
        file.begin_rows()
        for row, node_id in enumerate(state.vector_ids):
            file.row({"row": row, "id": node_id})
    head = {"descr": "<f4", "fortran_order": False, "shape": (len(state.vector_ids), state.dim)}
    with target.file("vectors.npy") as file:
        npy.write_array_header_1_0(file, head)
        file.write(state.vectors)


def _version() -> str:
    from reverie import __version__

    return __version__


__all__ = ["EXPORT_FORMAT", "ExportManifest", "FileFacts", "export"]
