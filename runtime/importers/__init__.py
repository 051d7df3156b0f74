"""Importers: conversations that other programs have exported, as turns, one at a time.

    for entry in reverie.importers.read("export.zip", format="chatgpt"):
        if isinstance(entry, BadEntry):
            print(entry.where, entry.error.message)
        else:
            print(entry.turn.session, entry.turn.speaker, entry.turn.text)

Formats: `chatgpt` and `claude` (conversations.json, or the .zip that it came in), `whatsapp` (the
text, or its .zip), `jsonl` and `markdown`. Files of any size are read in a bounded part at a time.
What cannot be used is yielded as a `BadEntry` and passed over. Nothing here stores anything or
reads a clock; `reverie import` does the storing.
"""

from reverie.importers.reading import FORMATS, FormatName, read, sniff
from reverie.importers.records import BadEntry, DateOrder, Entry

__all__ = ["FORMATS", "BadEntry", "DateOrder", "Entry", "FormatName", "read", "sniff"]
