"""What somebody comes to know of something that happened: by seeing it, or by being told.

One event of the world has one id, whoever knows of it, and each who knows has a memory of its own.
The rules, for a user who gets to know of an event:

- Delivered to a witness again, it changes nothing and gives the first answer: the graph itself is
  the record of what was delivered, so a rewind takes that back too.
- Who has seen it himself keeps what he saw, whatever he is told.
- Who has heard of it and now sees it, believes what he sees: the hearsay is superseded.
- Of two versions that he hears he keeps that of the higher confidence, then that of the shorter
  chain, then the first. The other is superseded.
- The same version from a source of its own (no teller in common with the one that is kept, nor
  with those who backed it before) makes the one that is kept more credible: the confidence c
  becomes c + (1 - c) * BACKING * d for a version of confidence d, up to MOST_HEARD.
- What comes back to who told it on adds nothing.
"""

from __future__ import annotations

from reverie.memory_graph import events, nodes as n
from reverie.memory_graph.drafts import Kept, MemoryDraft
from reverie.memory_graph.text import normalise
from reverie.memory_graph.visible import is_live
from reverie.memory_graph.write import Writer

BACKING = 0.5  # of a second source, which may have it from the same place after all
MOST_HEARD = 0.95  # hearsay is never as sure as sight
MAX_HOPS = 64  # of a chain of tellers
MAX_BACKED = 16  # tellers that are remembered as having backed a memory


def learn(writer: Writer, draft: MemoryDraft, *, is_back: bool = False) -> Kept:
    """Keep what the owner saw (`draft.heard` is empty) or was told of an event.

    Args:
        writer: of the owner's state.
        draft: with `event`.
        is_back: the owner is among those who told it on.

    Returns:
        ADD of a new memory; UPDATE when it superseded one; NOOP with the memory that stays, "" if
        there is none.
    """
    event = draft.event
    known = [
        node
        for memory_id in writer.graph.happened.get(event or "", ())
        if isinstance(node := writer.graph.node(memory_id), n.Memory)
    ]
    live = [memory for memory in known if is_live(memory, writer.at)]
    seen = next((m for m in known if not m.heard), None)
    if not draft.heard:
        if seen is not None:
            return _again(writer, seen, draft)
        return _keep(writer, draft, [m for m in live if m.heard])
    if is_back:
        return Kept("NOOP", live[-1].id if live else "", None, "it comes back to who told it on")
    if any(not memory.heard for memory in live):
        return Kept("NOOP", next(m.id for m in live if not m.heard))
    if not live:
        return _keep(writer, draft, [])
    kept = max(live, key=lambda m: (m.confidence, -len(m.heard)))
    if (draft.confidence, -len(draft.heard)) > (kept.confidence, -len(kept.heard)):
        return _keep(writer, draft, live)
    _back(writer, kept, draft)
    return Kept("NOOP", kept.id)


def _again(writer: Writer, seen: n.Memory, draft: MemoryDraft) -> Kept:
    """Answer a delivery that is there: as the first time if it is the same."""
    if seen.text != draft.text:
        return Kept("NOOP", seen.id)
    replaced = next((old for old, _ in writer.graph.out(seen.id, n.SUPERSEDES)), None)
    return Kept("ADD" if replaced is None else "UPDATE", seen.id, replaced)


def _keep(writer: Writer, draft: MemoryDraft, replaced: list[n.Memory]) -> Kept:
    old = [memory.id for memory in replaced]
    memory_id = writer.remember(draft, old)
    return Kept("UPDATE" if old else "ADD", memory_id, old[0] if old else None)


def _back(writer: Writer, kept: n.Memory, draft: MemoryDraft) -> None:
    """Make a memory more credible by the same from another source, once for each teller."""
    is_same = normalise(kept.text) == normalise(draft.text)
    independent = {*kept.heard, *kept.backed}.isdisjoint(draft.heard)
    if not (is_same and independent) or len(kept.backed) >= MAX_BACKED:
        return
    more = kept.confidence + (1.0 - kept.confidence) * BACKING * draft.confidence
    writer.emit(
        events.MemoryEdited(
            at=writer.at,
            id=kept.id,
            confidence=max(kept.confidence, min(MOST_HEARD, more)),
            backed=(*kept.backed, *draft.heard)[:MAX_BACKED],
        )
    )


def told_on(chain: tuple[str, ...], speaker: str) -> tuple[str, ...]:
    """Return the chain of what `speaker` tells on. A chain of more than MAX_HOPS keeps the first
    witness and the last tellers."""
    whole = (*chain, speaker)
    if len(whole) <= MAX_HOPS:
        return whole
    return (whole[0], *whole[1 - MAX_HOPS :])
