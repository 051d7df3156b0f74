"""JSONL: one turn a line; the keys are those of formats.py."""

from __future__ import annotations

import io
from collections.abc import Iterator

from reverie.formats import TurnRecord, split_lines, turn_of_line, with_id
from reverie.importers.records import Entry, Options, bad
from reverie.importers.sources import Member
from reverie.memory_graph.errors import InputError


def read(member: Member, file: io.BufferedReader, options: Options) -> Iterator[Entry]:
    """Yield the turns of a file in order; one without an id is known by its line and content."""
    del options  # the times of JSONL name their zone, or are UTC
    for number, raw in split_lines(file):
        try:
            turn = turn_of_line(raw)
        except InputError as exc:
            yield bad(number, f"{member.name}, line {number}", exc)
            continue
        yield with_id(TurnRecord(member.stem, turn, number))
