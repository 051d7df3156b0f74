"""Make upgrade_FORMAT.tar.xz: a data folder as this version writes it, for later versions to open.

    python tests/data/make_upgrade_fixture.py tests/data/upgrade_1.tar.xz

Run it when the number of a format goes up, BEFORE the change, and keep the files of all earlier
formats: `tests/store/test_upgrade.py` opens each of them. The archive holds the folder `data` and
`expected.json`, what is known of it: the digest of each user, the checkpoints, and how many turns
wait or are in quarantine.

The folder has every kind of event (asserted below), snapshots, pins, forks, retired and archived
memories, turns that wait and turns in quarantine, in English and Chinese, with stand-in vectors.
"""

from __future__ import annotations

import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any, get_args

import msgspec

import reverie
from reverie.actors import commands as c
from reverie.memory_graph import events
from reverie.memory_graph.drafts import Decision, EntityDraft, MemoryDraft, RelationDraft
from reverie.models.protocol import Extraction
from reverie.models.standin import HashEmbedder

START, HOUR = 1_700_000_000.0, 3600.0
DIM, OTHER_DIM = 8, 16
OPTIONS: dict[str, Any] = {"partitions": 2, "background": False}
HOUSES = ("the mill", "the tower", "磨坊", "港口")


class Notes:
    """An extractor that makes a memory of each turn, and fails at "boom"."""

    def extract(self, turns: list[Any], history: list[Any]) -> list[Extraction]:
        if any("boom" in turn.text for turn in turns):
            msg = "boom"
            raise RuntimeError(msg)
        return [
            Extraction(t.id, (MemoryDraft(f"noted: {t.text}", sources=(t.id,)),)) for t in turns
        ]


class AddAll:
    """A decider for which every memory is new."""

    def decide(self, draft: object, known: object) -> Decision:
        return Decision("ADD")


def live(user: reverie.User, clock: reverie.SimulatedClock, name: str) -> None:
    """Let a user say and learn a bit of everything."""
    user.add([f"{name}: I live in Oslo now.", "我喜欢绿茶。"], session="hall", wait=True)
    clock.advance(HOUR)
    first = user.remember(
        f"{name} keeps bees. {name}养蜂。",
        tags=["bees"],
        metadata={"hive": 3},
        entities=[EntityDraft("Bo", "person", ("Robert",)), ("李娜", "person")],
        topics=["animals", "动物"],
        request_id=f"bees of {name}",
    )
    user.observe("The bell rang at noon.", participants=["Bo"], place="the square")
    user.remember("Rob came by.", entities=[EntityDraft("Bo", "person", ("Rob",))])
    for house in HOUSES:
        clock.advance(HOUR)
        user.relate("李娜", "lives_in", house, head_type="person", functional=True)
    user.relate("$user", "knows", "Bo")
    ids = [user.remember(f"{name} says {i}. 第{i}句。").memory_id for i in range(6)]
    user.update(ids[0] or "", "She says nothing. 她不说话。")
    user.update(ids[1] or "", importance=0.9, pinned=True, ttl_s=10 * HOUR)
    user.delete(ids[2] or "", reason="asked to")
    user.archive(ids[3] or "")
    user.archive(ids[4] or "")
    user.restore(ids[4] or "")
    user.search("Who keeps bees?", limit=3)
    user.search("绿茶", limit=3)
    assert first.memory_id


def summarise(runtime: reverie.Runtime, user: reverie.User) -> None:
    """Keep a summary of a session."""
    draft = c.Summarise(
        **user._write(None),
        text="They spoke of tea. 他们谈到了茶。",
        session="hall",
        sources=("t1", "t2"),
        from_at=START,
        to_at=START + HOUR,
    )
    runtime.call(draft)


def fill(folder: Path) -> dict[str, Any]:
    """Make the folder and return what is known of it."""
    clock = reverie.SimulatedClock(START)
    options = {**OPTIONS, "clock": clock, "extractor": Notes(), "decider": AddAll()}
    with reverie.open(folder, embedder=HashEmbedder(DIM), **options) as runtime:
        for world, name in (("town", "Ana"), ("town", "小明"), ("港口", "Ana"), ("港口", "npc-1")):
            live(runtime.user(name, world), clock, name)
        summarise(runtime, runtime.user("Ana", "town"))
        runtime.flush()  # snapshots
        runtime.checkpoint("before the storm", world="town")
        runtime.checkpoint("暴风雨前", world="港口")
        runtime.fork("暴风雨前", "港口二", world="港口")
        for world in ("town", "港口"):
            runtime.user("Ana", world).remember("The storm came. 暴风雨来了。")
            runtime.user("born late", world).remember("I was born in the storm.")
        runtime.rewind("before the storm", world="town")
        runtime.user("小明", "town").remember("The storm will come. 暴风雨会来的。")
        runtime.user("npc-1", "港口").forget()
        runtime.remember_many(
            {
                "Ana": [
                    MemoryDraft("Bo knows 李娜.", relations=(RelationDraft("Bo", "knows", "李娜"),))
                ]
            },
            world="town",
        )
        runtime.flush()
        live(runtime.user("later", "港口"), clock, "Later")  # its journal begins at 1
        summarise(runtime, runtime.user("later", "港口"))
        runtime.user("Ana", "港口").add(["One more line.", "boom 砰"], session="港", wait=True)
        runtime.user("小明", "town").add(["This one waits. 这句在等。"])
        runtime.reembed("港口二", embedder=HashEmbedder(OTHER_DIM))
    clock.advance(HOUR)
    with reverie.open(folder, embedder=HashEmbedder(DIM), **options) as runtime:
        assert runtime.check() == []
        known = look(runtime)
    require_every_kind(folder)
    return known


def look(runtime: reverie.Runtime) -> dict[str, Any]:
    """Return what is known of an open folder, as plain values."""
    stats = runtime.stats()
    users = [(world, name) for world in runtime.worlds() for name in runtime.users(world)]
    return {
        "digests": {f"{w}/{name}": runtime.user(name, w).digest() for w, name in users},
        "checkpoints": {w: [tag.tag for tag in runtime.checkpoints(w)] for w in runtime.worlds()},
        "pending": stats.pending,
        "quarantined": stats.quarantined,
    }


def require_every_kind(folder: Path) -> None:
    """Make sure that the journals hold every kind of event."""
    found = set()
    import apsw  # the fixture is of files, so this looks at them

    for path in sorted(folder.glob("partitions/p*.db")):
        connection = apsw.Connection(str(path))
        for (payload,) in connection.execute("SELECT payload FROM journal"):
            found.add(type(events.decode_event(payload)).__name__)
        assert connection.execute("SELECT 1 FROM snapshots").fetchall()
        connection.close()
    missing = {kind.__name__ for kind in get_args(events.Event)} - found
    assert not missing, f"no event of kind {missing}"


def main() -> None:
    """Write the archive that the command line names."""
    with tempfile.TemporaryDirectory() as place:
        known = fill(Path(place, "data"))
        Path(place, "expected.json").write_bytes(msgspec.json.encode(known))
        for name in ("LOCK", "OWNER.json"):
            Path(place, "data", name).unlink(missing_ok=True)
        with tarfile.open(sys.argv[1], "w:xz") as archive:
            for path in sorted(Path(place).rglob("*")):
                if path.is_file():
                    info = archive.gettarinfo(path, str(path.relative_to(place)))
                    info.uid = info.gid = 0
                    info.uname = info.gname = ""
                    info.mtime = 0
                    with path.open("rb") as file:
                        archive.addfile(info, file)


if __name__ == "__main__":
    main()
