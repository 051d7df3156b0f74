"""A short life of a small world on a simulated clock; prints the digest of every user.

    python tests/scenario.py FOLDER [ACTORS]

What it prints must not depend on the process, the hash seed, the zone, the date or the number of
actors: test_determinism.py runs it with others of each. `REVERIE_TEST_DATE` is what the machine's
clock pretends to show, in seconds since 1970.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

SHIFT_S = float(os.environ.get("REVERIE_TEST_DATE", time.time())) - time.time()
_real_time = time.time


class PretendedDate(dt.datetime):
    """A `datetime` whose now is shifted."""

    @classmethod
    def now(cls, tz: dt.tzinfo | None = None) -> PretendedDate:
        """Return the pretended time."""
        made: PretendedDate = cls.fromtimestamp(_real_time() + SHIFT_S, tz)
        return made

    @classmethod
    def utcnow(cls) -> PretendedDate:
        """Return the pretended time in UTC, without a zone."""
        made: PretendedDate = cls.now(dt.UTC).replace(tzinfo=None)
        return made

    @classmethod
    def today(cls) -> PretendedDate:
        """Return the pretended time of the machine's zone."""
        return cls.now()


def pretend() -> None:
    """Let whatever is imported from here on see the pretended date."""
    time.time = lambda: _real_time() + SHIFT_S
    dt.datetime = PretendedDate  # type: ignore[misc]


USERS = ("ana", "bo", "小明", "guard-7")
DAYS = 4
HOUR = 3600.0

TALK = (
    ["I live in Oslo.", "My sister Mia keeps bees.", "I moved here yesterday."],
    ["I love coffee, and I hate tea.", "我住在上海。", "我昨天见了李娜。"],
    ["I moved to Bergen last week.", "Mia sold the bees.", "I hate coffee now."],
    ["我搬到了北京。", "Remember that the gate closes at nine.", "I no longer work at the mill."],
)


def happen(world: Any, day: int) -> None:
    """Let something be seen, told on and felt; let what is old fade."""
    guild = world.group("guild")
    guild.join(USERS[day])
    seen = world.observe(
        f"The amulet was stolen on day {day}. 护身符被偷了。",
        witnesses=USERS[:2],
        groups=["guild"],
        place="the market",
        importance=0.8,
    )
    told = world.tell("bo", "guard-7", seen.kept["bo"].memory_id)
    world.tell("guard-7", "小明", told.memory_id, confidence=0.4)
    world.user("ana").relationships.move("Bo", trust=0.2, fear=-0.1, reason="He told on her.")
    world.user("bo").reflect(force=True)
    world.tend()


def play(folder: Path, actors: int | None) -> dict[str, str]:
    """Live some days; return the digests by world and user."""
    import reverie
    from reverie.models.standin import HashEmbedder

    clock, moon = reverie.SimulatedClock(-3 * HOUR), reverie.SimulatedClock(1e9)
    with reverie.open(
        folder,
        actors=actors,
        clock=clock,
        clocks={"moon": moon},
        embedder=HashEmbedder(32),
        partitions=4,
        summary_every=3,
        summary_idle_s=HOUR,
    ) as rt:
        for day in range(DAYS):
            for world in ("town", "moon"):
                rt.add_many(dict.fromkeys(USERS, TALK[day]), world=world, session=f"day {day}")
                rt.drain(120)
                for user in map(rt.world(world).user, USERS[:3]):
                    for question in (
                        "Where did she live yesterday?",
                        "bees and coffee",
                        "昨天怎么样?",
                        "What happened last week at 23:30 UTC?",
                    ):
                        user.search(question, limit=3)
                rt.remember_many({USERS[day]: ["A wolf was seen. 有人看见了狼。"]}, world=world)
                rt.user("ana", world).relate(
                    "Mia", "knows", f"person {day}", functional=day % 2 == 0
                )
                rt.user("ana", world).context("Mia")
                happen(rt.world(world), day)
                rt.drain(120)
            if day == 1:
                rt.checkpoint("day 1", "town")
            clock.advance(26 * HOUR)
            moon.set(moon.now() - 5 * HOUR)
        rt.user("bo", "town").add("Lost.")
        rt.rewind("day 1", "town")
        rt.drain(120)
        clock.set(0.0)
        rt.fork("day 1", "fork", "town")
        rt.user("bo", "fork").add("I live in Rome.", wait=True)
        moved = folder.with_name(f"{folder.name}.rvw")
        rt.world("moon").export(moved)
        rt.import_world(moved, "copy")
        rt.drain(120)
        assert rt.check() == []
        summaries = rt.user("ana", "moon").list(types="summary").total
        assert summaries, "nothing was summarised"
        return {
            f"{world}/{user}": rt.user(user, world).digest()
            for world in rt.worlds()
            for user in rt.users(world)
        }


if __name__ == "__main__":
    pretend()
    found = play(Path(sys.argv[1]), int(sys.argv[2]) if sys.argv[2:] else None)
    sys.stdout.write(json.dumps(found, ensure_ascii=True, sort_keys=True) + "\n")
