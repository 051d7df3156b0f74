"""What memories say, compared with the script's own book: nobody knows what he cannot know."""

from __future__ import annotations

import msgspec

from reverie.town.play import Play

PAGE = 1000  # memories read at once


class Truth(msgspec.Struct, kw_only=True):
    """What the comparison found; lists hold lines for people, and are empty when all is well.

    Attributes:
        people: whose memories were read.
        memories: that were read, also archived and superseded ones.
        hearsay: of these, what was told.
        unknown: memories of events that their owner neither saw nor was told of.
        unchained: hearsay whose chain is not one by which it came.
        unkept: events that somebody saw or was told of, of which there is no memory at all.
        asked: questions for events of which somebody does not know.
        leaked: answers to them that tell of the event all the same.
    """

    people: int = 0
    memories: int = 0
    hearsay: int = 0
    unknown: list[str] = []
    unchained: list[str] = []
    unkept: list[str] = []
    asked: int = 0
    leaked: list[str] = []

    @property
    def holds(self) -> bool:
        """Whether nothing is wrong."""
        return not (self.unknown or self.unchained or self.unkept or self.leaked)


def compare(play: Play, *, people: int | None = None, ask: int | None = None) -> Truth:
    """Read the memories of people, and ask them for what they cannot know.

    Args:
        play: the town.
        people: how many, from the first; None is all of them.
        ask: for how many events each is asked of which he does not know, spread over all; None
            asks for all of them. Asking counts as reading: take digests before.
    """
    truth = Truth()
    ledger = play.book.ledger
    known = ledger.chains()
    for name in list(play.setting.people)[:people]:
        truth.people += 1
        chains = known.get(name, {})
        _read(play, name, chains, truth)
        strange = [event for event in ledger.happenings if event not in chains]
        if ask is not None:
            strange = strange[:: max(1, -(-len(strange) // ask))] if ask else []
        if strange:
            _ask(play, name, strange, chains, truth)
    return truth


def _read(play: Play, name: str, chains: dict[str, set[tuple[str, ...]]], truth: Truth) -> None:
    kept = set()
    cursor: str | None = None
    while True:
        page = play.world.user(name).list(
            limit=PAGE, cursor=cursor, include_archived=True, include_retired=True
        )
        for item in page.items:
            truth.memories += 1
            if item.event is None:
                continue
            kept.add(item.event)
            ways = chains.get(item.event)
            if ways is None:
                truth.unknown.append(f"{name}: {item.text}")
                continue
            truth.hearsay += item.provenance == "told"
            is_named = bool(item.heard) == (item.provenance == "told")
            is_last = not item.heard or item.told_by == item.heard[-1]
            if item.heard not in ways or not is_named or not is_last:
                truth.unchained.append(f"{name}: {item.text} by {item.heard or 'nobody'}")
        cursor = page.cursor
        if cursor is None:
            break
    truth.unkept += [f"{name}: {event}" for event in chains if event not in kept]


def _ask(
    play: Play,
    name: str,
    strange: list[str],
    chains: dict[str, set[tuple[str, ...]]],
    truth: Truth,
) -> None:
    happenings = play.book.ledger.happenings
    own = {happenings[event].text for event in chains} | {
        telling.text for telling in play.book.ledger.tellings if telling.listener == name
    }
    questions = [(name, happenings[event].text) for event in strange]
    truth.asked += len(questions)
    found = play.rt.search_many(
        questions, world=play.world.name, limit=5, include_archived=True, include_retired=True
    )
    for (_, text), hits in zip(questions, found, strict=True):
        for hit in hits:
            if (hit.event is not None and hit.event not in chains) or (
                text in hit.text and text not in own
            ):
                truth.leaked.append(f"{name}: {hit.text}")
