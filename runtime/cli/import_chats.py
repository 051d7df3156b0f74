"""`reverie import chatgpt`, `claude`, `whatsapp`, `jsonl` and `markdown`: conversations that were
exported, into one user's memory."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reverie.cli import output
from reverie.cli.opening import open_runtime
from reverie.cli.options import WriterOptions, with_options
from reverie.memory_graph.errors import InputError, InvalidValueError

if TYPE_CHECKING:
    from reverie.cli.feed import Report
    from reverie.formats import TurnRecord
    from reverie.importers import DateOrder, Entry, FormatName
    from reverie.importers.records import Options

_SHOWN = 20  # entries that were skipped
_KEPT = 1_000  # of them that --json tells; all are counted

File = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="The exported file, or the .zip that it came in.",
        exists=True,
        dir_okay=False,
        readable=True,
        show_default=False,
    ),
]
SpeakerMap = Annotated[
    list[str] | None,
    typer.Option(
        "--speaker-map",
        metavar="NAME=NAME",
        help="Call a speaker of the file otherwise; NAME=user says who is the owner of the "
        "memory. May be given several times.",
        show_default=False,
    ),
]
Infer = Annotated[
    bool, typer.Option("--infer/--no-infer", help="Extract memories, or keep turns only.")
]
Wait = Annotated[
    bool,
    typer.Option(
        "--wait/--no-wait",
        help="Extract before this ends; otherwise the turns wait, safely on disk, for the next "
        "program that opens the folder.",
    ),
]
Zone = Annotated[
    str, typer.Option(help="Of times that name none, as Europe/Berlin or Asia/Shanghai.")
]


@dataclass
class _Skipped:
    """What could not be used: how much, and the first of it."""

    count: int = 0
    first: list[tuple[str, InputError]] = field(default_factory=list)

    def note(self, where: str, error: InputError) -> None:
        self.count += 1
        if len(self.first) < _KEPT:
            self.first.append((where, error))


def chatgpt(
    options: WriterOptions,
    file: File,
    *,
    speaker_map: SpeakerMap = None,
    infer: Infer = True,
    wait: Wait = True,
) -> None:
    """Import conversations of ChatGPT: conversations.json of its export, or the whole .zip.

    Of each conversation the branch that is shown is read; messages of other branches, calls of
    tools and hidden messages are counted and left out. Each conversation becomes a session, its
    title stands in the metadata of the turns. The same command again adds nothing twice and goes on
    where it was stopped; a newer export adds what is new.
    """
    _bring(options, file, "chatgpt", speaker_map, "UTC", infer=infer, wait=wait)


def claude(
    options: WriterOptions,
    file: File,
    *,
    speaker_map: SpeakerMap = None,
    infer: Infer = True,
    wait: Wait = True,
) -> None:
    """Import conversations of Claude: conversations.json of its export, or the whole .zip.

    Calls of tools, thinking and attachments are counted and left out. Otherwise as `reverie import
    chatgpt`.
    """
    _bring(options, file, "claude", speaker_map, "UTC", infer=infer, wait=wait)


def whatsapp(
    options: WriterOptions,
    file: File,
    *,
    speaker_map: SpeakerMap = None,
    timezone: Zone = "UTC",
    date_order: Annotated[
        str, typer.Option(help="auto (found out over the whole file), dmy, mdy or ymd.")
    ] = "auto",
    infer: Infer = True,
    wait: Wait = True,
) -> None:
    """Import a chat of WhatsApp: the text that "Export chat" makes, or its .zip.

    Which speaker is the owner of the memory is said with --speaker-map "Ana=user"; otherwise
    nobody is. Photos and the like, deleted messages and notes of the system are counted and left
    out. The same command again adds nothing twice and goes on where it was stopped.
    """
    order: DateOrder = date_order  # type: ignore[assignment]  # checked where it is used
    _bring(options, file, "whatsapp", speaker_map, timezone, order, infer=infer, wait=wait)


def jsonl(
    options: WriterOptions,
    file: File,
    *,
    speaker_map: SpeakerMap = None,
    infer: Infer = True,
    wait: Wait = True,
) -> None:
    """Import a JSONL file, a turn a line: `text`, and if it likes `speaker`, `role`, `session`,
    `time`, `id` and `metadata`.

    Lines that cannot be used are told by their number, and passed over.
    """
    _bring(options, file, "jsonl", speaker_map, "UTC", infer=infer, wait=wait)


def markdown(
    options: WriterOptions,
    file: File,
    *,
    speaker_map: SpeakerMap = None,
    timezone: Zone = "UTC",
    infer: Infer = True,
    wait: Wait = True,
) -> None:
    """Import a Markdown log: lines "**Ana:** ..." or "Ana: ..." under headings with dates.

    A heading with a date begins a session. "User" is the owner of the memory, and whoever
    --speaker-map says so of.
    """
    _bring(options, file, "markdown", speaker_map, timezone, infer=infer, wait=wait)


def _bring(
    options: WriterOptions,
    file: Path,
    name: FormatName,
    speaker_map: list[str] | None,
    timezone: str,
    date_order: DateOrder = "auto",
    *,
    infer: bool,
    wait: bool,
) -> None:
    from reverie.cli.feed import Feeder
    from reverie.importers import read
    from reverie.importers.reading import checked_order, zone
    from reverie.importers.records import Options
    from reverie.memory_graph.ids import check_key
    from reverie.stopping import closing_on_sigterm

    key = check_key(options.world_name, options.user_id)
    reading = Options(zone(timezone), checked_order(date_order))
    speakers, skipped = _speakers(speaker_map), _Skipped()
    began = time.monotonic()
    with _progress(quiet=options.json) as told:
        entries = read(file, format=name, speakers=speakers, options=reading, progress=told)
        with (
            open_runtime(options, create=True, background=True) as rt,
            closing_on_sigterm(rt),
        ):
            feeder = Feeder(rt, None, infer=infer, wait=wait, skip=True)
            feeder.feed_records(_usable(entries, skipped), lambda _: key, lambda _: None)
            report = feeder.finish()
    for line, error in report.skipped:  # refused where they are stored
        skipped.note(f"entry {line}", error)
    report.turns -= len(report.skipped)
    seconds = time.monotonic() - began
    if options.json:
        output.emit(_document(file, name, report, reading, skipped, seconds))
    else:
        _print(file, report, reading, skipped, seconds)


def _usable(entries: Iterator[Entry], skipped: _Skipped) -> Iterator[TurnRecord]:
    from reverie.importers import BadEntry

    for entry in entries:
        if isinstance(entry, BadEntry):
            skipped.note(entry.where, entry.error)
        else:
            yield entry


def _speakers(given: list[str] | None) -> dict[str, str]:
    found: dict[str, str] = {}
    for pair in given or ():
        old, equals, new = pair.rpartition("=")
        if not equals or not old.strip() or not new.strip():
            msg = f"--speaker-map takes NAME=NAME, as Ana=user, not {pair!r:.80}"
            raise InvalidValueError(msg)
        found[old.strip()] = new.strip()
    return found


@contextmanager
def _progress(*, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """Show on stderr, while a terminal reads it, how many bytes of the file were read."""
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    notes = output.notes()
    bar = Progress(
        TextColumn("importing"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
        console=notes,
        disable=quiet or not notes.is_terminal,
        transient=True,
    )
    with bar:
        task = bar.add_task("bytes", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _document(
    file: Path,
    name: str,
    report: Report,
    reading: Options,
    skipped: _Skipped,
    seconds: float,
) -> dict[str, object]:
    return {
        "file": file,
        "format": name,
        **report.as_dict(),
        "known": report.turns - report.stored,
        "left_out": dict(sorted(reading.left_out.items())),
        "chosen": reading.chosen,
        "bad": skipped.count,
        "skipped": [
            {"where": where, "error": type(error).__name__, "message": error.message}
            for where, error in skipped.first
        ],
        "seconds": round(seconds, 3),
    }


def _print(file: Path, report: Report, reading: Options, skipped: _Skipped, seconds: float) -> None:
    screen = output.console()
    rows: list[tuple[str, object]] = [
        ("file", file),
        ("turns read", report.turns),
        ("new", report.stored),
        ("known already", report.turns - report.stored),
        ("memories made", report.memories),
        ("turns that wait", report.pending),
        *((what, chosen) for what, chosen in reading.chosen.items()),
        *((f"left out: {what}", count) for what, count in _most(reading.left_out)),
        ("into", ", ".join(f"{key.world}/{key.user_id}" for key in report.users)),
        ("time", f"{seconds:.1f} s, {report.turns / max(seconds, 1e-9):,.0f} turns/s"),
    ]
    screen.print(output.pairs(rows))
    if skipped.count:
        screen.print(output.plain(f"{skipped.count} entries skipped", "yellow"))
        for _, error in skipped.first[:_SHOWN]:
            screen.print(output.plain(f"  {error.message}", "yellow"), soft_wrap=True)
        if skipped.count > _SHOWN:
            output.note(f"--json names up to {_KEPT} of them")


def _most(counts: Counter[str]) -> list[tuple[str, int]]:
    return [(what, count) for what, count in counts.most_common() if count]


def register(group: typer.Typer) -> None:
    """Add the commands of this file to `reverie import`."""
    for command in (chatgpt, claude, whatsapp, jsonl, markdown):
        group.command(command.__name__)(with_options(command))
