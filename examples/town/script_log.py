"""The script log of a run in which a language model takes part: what was chosen, and what it wrote.

A town can be played again from it, without the model, to the same memories: all else follows from
the seed. It is a file of JSON lines beside the data folder: first how the town was begun, then a
line for each scene, and for each text that the model wrote into a memory.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path
from typing import Self, TypeAlias

import msgspec

from reverie.memory_graph.errors import DataFolderError
from reverie.memory_graph.material import Material
from reverie.memory_graph.store.driver_errors import disk_error
from reverie.models.summarise import CentralSentences, Summariser, Summary
from reverie.town.record import Choice

FORMAT = 1
NAME = "script.jsonl"  # in the folder of a town
UNSEEN = "unseen"  # branch in which nobody saw the theft


class Begun(msgspec.Struct, frozen=True, kw_only=True, tag_field="line", tag="begun"):
    """How a town was begun. `embedder` and `model` are ids; `model` is empty without one."""

    format: int = FORMAT
    seed: int
    npcs: int
    pace: float
    linked: bool
    scenes: int
    days: int
    what_if: bool
    embedder: str
    model: str = ""


class Written(
    msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, tag_field="line", tag="written"
):
    """A text that a model wrote. `of` stands for what it was made of; see `models/summarise.py` for
    `sources`."""

    of: str
    text: str
    sources: tuple[int, ...] = ()


Line: TypeAlias = Begun | Choice | Written


class ScriptLog:
    """The lines of a log, and the file that they go to. Use as a context manager."""

    def __init__(self, path: Path, begun: Begun, lines: Iterable[Line] = ()) -> None:
        """Begin a file, in place of one that is there; `lines` come from an earlier part of the
        same town. Raises StorageError."""
        self.path = path
        lines = [begun, *lines]
        self.written = {line.of: line for line in lines if isinstance(line, Written)}
        temporary = path.with_suffix(".tmp")
        try:
            temporary.write_bytes(b"".join(map(_encoded, lines)))
            temporary.replace(path)
            self._file = path.open("ab")
        except OSError as exc:
            raise disk_error(exc, path) from exc

    def add(self, line: Line) -> None:
        """Write a line; it is in the file when this returns. Raises StorageError."""
        if isinstance(line, Written):
            self.written[line.of] = line
        try:
            self._file.write(_encoded(line))
            self._file.flush()
        except OSError as exc:
            raise disk_error(exc, self.path) from exc

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def read_log(path: Path) -> tuple[Begun, list[Line]]:
    """Return how a town was begun, and the lines of its log. What a run that was killed left of its
    last line is passed over.

    Args:
        path: of the log, or of the folder of a town.

    Raises:
        DataFolderError: it cannot be read, or is no log, or one of another version.
    """
    path = path / NAME if path.is_dir() else path
    try:
        *whole, _ = path.read_bytes().split(b"\n")
        lines = [_DECODER.decode(line) for line in whole]
    except (OSError, msgspec.DecodeError) as exc:
        msg = f"the script log at {path} cannot be read: {exc}"
        raise DataFolderError(msg, path=str(path)) from exc
    if not lines or not isinstance(lines[0], Begun) or lines[0].format != FORMAT:
        msg = f"{path} is no script log of format {FORMAT}"
        raise DataFolderError(msg, path=str(path))
    return lines[0], lines[1:]


def choices(lines: Iterable[Line], branch: str = "") -> dict[str, Choice]:
    """Return what was chosen in a branch, by scene."""
    return {line.id: line for line in lines if isinstance(line, Choice) and line.branch == branch}


def texts(lines: Iterable[Line]) -> list[Written]:
    """Return what a model wrote."""
    return [line for line in lines if isinstance(line, Written)]


class NotedSummaries:
    """A `Summariser` that notes in a log what a model wrote, and writes nothing twice.

    Attributes:
        writer: makes the texts that the log does not have.
    """

    def __init__(self, log: ScriptLog | None = None) -> None:
        """Begin without a model: by central sentences."""
        self.writer: Summariser = CentralSentences()
        self.log = log

    def summarise(self, material: Material) -> Summary:
        """Return the text that the log has for the material, or a new one."""
        of = blake2b(msgspec.msgpack.encode(material), digest_size=16).hexdigest()
        known = None if self.log is None else self.log.written.get(of)
        if known is not None:
            return Summary(known.text, known.sources, is_written=True)
        try:
            made = self.writer.summarise(material)
        except Exception:  # noqa: BLE001 (whatever somebody's own model raises)
            made = CentralSentences().summarise(material)
        if made.is_written and self.log is not None:
            self.log.add(Written(of=of, text=made.text, sources=made.sources))
        return made


_DECODER = msgspec.json.Decoder(Line)


def _encoded(line: Line) -> bytes:
    return msgspec.json.encode(line) + b"\n"
