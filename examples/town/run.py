"""A whole run: open, play day after day, save, resume, and ask what would have been."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec

import reverie
from reverie.memory_graph.errors import DataFolderError, UnknownCheckpointError
from reverie.models.cached import CachedEmbedder
from reverie.models.catalog import default_folder, find_entry
from reverie.models.embedders import STANDIN, open_embedder
from reverie.town.crowd import with_people
from reverie.town.evening import STORY, evening, follow
from reverie.town.play import Manner, Play
from reverie.town.record import Save, read_save, write_save
from reverie.town.schedule import HOURS
from reverie.town.setting import Setting, load_setting

_CACHE_BYTES = 64 << 20  # of vectors of texts that come again
MEMORY = "memory"  # the data folder within a town's folder
BRANCH = "before-theft"  # save slot that the other branch starts from
UNSEEN = "town-unseen"  # world in which nobody saw the theft


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be run.

    Attributes:
        folder: of the town: the memories and the saves lie in it.
        days: to play, in all.
        npcs: people of the town.
        seed: of everything that is drawn.
        pace: deeds an hour at a place with people, on average.
        actors: Ray actors; None is this process.
        save_day: a save slot is made at its end too; with `resume`, the one to go on from.
        resume: go on from a save slot, by default the newest.
        what_if: play a second branch in which nobody saw the theft.
        linked: see `Manner`.
        digests: compute the digest of everybody's memory at the end.
        embedder: "standin", "minilm", "multilingual", a GGUF file, "auto", or an object. A model
            embeds each text by itself, so that vectors do not depend on what else was embedded.
        models_folder: where models lie; None is the user's cache folder.
        settings: further ones of `reverie.open`.
    """

    folder: Path
    days: int = 7
    npcs: int = 25
    seed: int = 1
    pace: float = 0.5
    actors: int | None = None
    save_day: int | None = None
    resume: bool = False
    what_if: bool = True
    linked: bool = True
    digests: bool = True
    embedder: Any = STANDIN
    models_folder: Path | None = None
    settings: dict[str, Any] = {}


class Outcome(msgspec.Struct, kw_only=True):
    """What came out of a run. `digests` is user id -> digest of the whole memory; `digest` is of
    all of them. `embedder` is its id. What reads memories through it needs the town open."""

    plan: Plan
    setting: Setting
    play: Play
    other: Play | None
    digests: dict[str, str]
    embedder: str

    @property
    def digest(self) -> str:
        """Return one digest of all memories, the same for the same seed, people and days."""
        whole = "\n".join(f"{name} {digest}" for name, digest in sorted(self.digests.items()))
        return blake2b(whole.encode(), digest_size=16).hexdigest()


Progress = Callable[[str, int, int], None]  # what is done, ticks done, ticks in all


def run(
    plan: Plan,
    *,
    progress: Progress | None = None,
    after_day: Callable[[Play, int], None] | None = None,
    at_end: Callable[[Outcome], None] | None = None,
) -> Outcome:
    """Run a town.

    Args:
        plan: what to run.
        progress: called after each hour.
        after_day: called at the end of each day, while the town is open.
        at_end: called at the end, while the town is open.

    Raises:
        DataFolderError: the folder holds a town already, or (to resume) none.
        UnknownCheckpointError: no save slot of that day.
        ReverieError: of `reverie.open`.
    """
    has_town = (plan.folder / MEMORY).is_dir() and any((plan.folder / MEMORY).iterdir())
    if has_town != plan.resume:
        msg = (
            f"there is a town in {plan.folder} already; go on with it by --resume"
            if has_town
            else f"there is no town to go on with in {plan.folder}"
        )
        raise DataFolderError(msg, path=str(plan.folder))
    save = _chosen(plan) if plan.resume else None
    if save is not None:
        plan = msgspec.structs.replace(
            plan, seed=save.seed, npcs=save.npcs, pace=save.pace, linked=save.linked
        )
    setting = with_people(load_setting(), plan.npcs, plan.seed)
    plan.folder.mkdir(parents=True, exist_ok=True)
    with reverie.open(
        plan.folder / MEMORY,
        actors=plan.actors,
        clock=reverie.SimulatedClock(0.0),
        background=False,
        extractor="off",
        embedder=_embedder(plan),
        **plan.settings,
    ) as rt:
        manner = Manner(seed=plan.seed, pace=plan.pace, linked=plan.linked)
        if save is None:
            play = Play(rt, setting, manner)
            play.begin()
        else:
            play = Play(rt, setting, manner, tick=save.tick, ledger=save.ledger, record=save.record)
            play.world.rewind(save.tag)
        _play_days(plan, play, save.tick if save else 0, progress, after_day)
        other = _what_if(plan, play, progress) if plan.what_if else None
        names = setting.people if plan.digests else ()
        digests = {name: play.world.user(name).digest() for name in names}
        outcome = Outcome(
            plan=plan,
            setting=setting,
            play=play,
            other=other,
            digests=digests,
            embedder=rt.mind.for_reading(play.world.name).info.id,
        )
        if at_end is not None:
            at_end(outcome)
    return outcome


def _embedder(plan: Plan) -> Any:
    """Return what embeds the texts; not closed with the runtime, but with this process."""
    if not isinstance(plan.embedder, str):
        return plan.embedder
    folder = plan.models_folder or default_folder()
    spec = plan.embedder
    if spec == "auto":
        spec = "minilm" if (folder / find_entry("minilm").file_name).is_file() else STANDIN
    if spec == STANDIN:
        return spec
    return CachedEmbedder(open_embedder(spec, folder, batch_tokens=0), max_bytes=_CACHE_BYTES)


def _play_days(
    plan: Plan,
    play: Play,
    first: int,
    progress: Progress | None,
    after_day: Callable[[Play, int], None] | None,
) -> None:
    theft = _theft_tick(play.setting)
    last = plan.days * HOURS
    for tick in range(first, last):
        if tick == theft and plan.what_if:
            _save(plan, play, tick, BRANCH)
        play.tick(tick)
        follow(play, tick)
        day, hour = divmod(tick + 1, HOURS)
        if hour == 0:
            evening(play, day)
            if after_day is not None:
                after_day(play, day)
            if day in {plan.save_day, plan.days}:
                _save(plan, play, tick + 1, _slot(day))
        if progress is not None:
            progress("the town", tick + 1, last)


def _what_if(plan: Plan, play: Play, progress: Progress | None) -> Play | None:
    """Play the days after the theft once more, in a fork of the world in which nobody saw it."""
    path = plan.folder / f"{BRANCH}.json"
    theft = _theft_tick(play.setting)
    if theft is None or theft >= plan.days * HOURS or not path.exists():
        return None
    save = read_save(path)
    worlds = set(play.rt.worlds())
    name = UNSEEN
    while name in worlds:
        name += "-again"
    play.world.fork(BRANCH, name)
    manner = msgspec.structs.replace(play.manner, unseen=frozenset({STORY}))
    other = Play(
        play.rt,
        play.setting,
        manner,
        world=name,
        tick=theft,
        ledger=save.ledger,
        record=save.record,
    )
    last = plan.days * HOURS
    for tick in range(theft, last):
        other.tick(tick)
        if (tick + 1) % HOURS == 0:
            evening(other, (tick + 1) // HOURS)
        if progress is not None:
            progress("what if nobody had seen it", tick + 1 - theft, last - theft)
    return other


def _theft_tick(setting: Setting) -> int | None:
    found = [p for p in setting.planted if p.id == STORY]
    return (found[0].day - 1) * HOURS + found[0].hour if found else None


def _slot(day: int) -> str:
    return f"day-{day}"


def _save(plan: Plan, play: Play, tick: int, tag: str) -> None:
    """Make a save slot; one of the same name, of a branch that was left by a resume, goes."""
    if any(slot.tag == tag for slot in play.world.checkpoints()):
        play.world.drop_checkpoint(tag)
    play.world.checkpoint(tag)
    save = Save(
        seed=plan.seed,
        npcs=plan.npcs,
        pace=plan.pace,
        linked=plan.linked,
        tick=tick,
        tag=tag,
        ledger=play.book.ledger,
        record=play.record,
    )
    write_save(plan.folder / f"{tag}.json", save)


def _chosen(plan: Plan) -> Save:
    """Return the save to go on from: of the day that is asked for, or the newest."""
    days = sorted(
        int(path.stem.partition("-")[2])
        for path in plan.folder.glob("day-*.json")
        if path.stem.partition("-")[2].isdecimal()
    )
    wanted = plan.save_day if plan.save_day is not None else (days[-1] if days else None)
    if wanted not in days:
        have = ", ".join(map(str, days)) or "none"
        msg = f"no save of day {wanted}; there are: {have}"
        raise UnknownCheckpointError(msg, day=wanted)
    return read_save(plan.folder / f"{_slot(wanted)}.json")
