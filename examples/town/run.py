"""A whole run: open, play day after day, save, resume, and ask what would have been."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import ExitStack, suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec

import reverie
from reverie.memory_graph.errors import ConfigError, DataFolderError, UnknownCheckpointError
from reverie.memory_graph.store.driver_errors import disk_error
from reverie.models.cached import CachedEmbedder
from reverie.models.catalog import default_folder, find_entry
from reverie.models.embedders import STANDIN, open_embedder
from reverie.town.crowd import with_people
from reverie.town.direction import Direction
from reverie.town.evening import STORY, evening, follow
from reverie.town.play import WORLD, Manner, Play
from reverie.town.record import Save, read_save, write_save
from reverie.town.scene import MAX_SCENES, SCENES
from reverie.town.schedule import HOURS
from reverie.town.script_log import UNSEEN as UNSEEN_BRANCH, Begun
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
        scenes: in how many scenes a day somebody chooses what happens: the language model, if there
            is one in `settings`, else the script. None is 3 with a model, 0 without.
        replay: the script log of another run (or the folder of its town), which is played again as
            it went, without its model: seed, people, pace and scenes are those of the log, and so
            are the days, unless they are given. It needs the embedder of that run.
        given: which of npcs, seed, pace, scenes and days were asked for: a save to go on from, or a
            log to play again, must have the first four.
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
    scenes: int | None = None
    replay: Path | None = None
    given: tuple[str, ...] = ()
    models_folder: Path | None = None
    settings: dict[str, Any] = {}


class Outcome(msgspec.Struct, kw_only=True):
    """What came out of a run. `digests` is user id -> digest of the whole memory; `digest` is of
    all of them. `embedder` is its id, and `model` that of the language model that takes part, or
    took part in what is played again. What reads memories through it needs the town open."""

    plan: Plan
    setting: Setting
    play: Play
    other: Play | None
    digests: dict[str, str]
    embedder: str
    model: str = ""

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
        DataFolderError: the folder holds a town already, or (to resume) none; or it is none; or
            the script log cannot be read.
        ConfigError: the save to go on from, or the log to play again, is of other people, or of
            another seed or pace, or of another embedder; or the log does not fit the town.
        UnknownCheckpointError: no save slot of that day.
        ReverieError: of `reverie.open`.

    A start that fails before the first hour leaves nothing behind.
    """
    _require_folder(plan)
    save = _chosen(plan) if plan.resume else None
    direction = Direction(plan.folder, plan.settings, resume=plan.resume, replay=plan.replay)
    plan = _fixed(plan, save, direction)
    setting = with_people(load_setting(), plan.npcs, plan.seed)
    embedder = _embedder(plan)
    with ExitStack() as unless_begun, ExitStack() as opened:
        if save is None:
            _make(plan.folder, unless_begun)
        rt = opened.enter_context(
            reverie.open(
                plan.folder / MEMORY,
                actors=plan.actors,
                clock=reverie.SimulatedClock(0.0),
                background=False,
                extractor="off",
                embedder=embedder,
                **plan.settings | direction.settings(),
            )
        )
        reads_by = rt.mind.for_reading(WORLD).info.id
        direction.opened(rt, reads_by)
        play = Play(
            rt,
            setting,
            _manner(plan),
            **_from(save),
            director=direction.director(setting, rt.world(WORLD)),
        )
        if save is None:
            play.begin()
        else:
            play.world.rewind(save.tag)
        unless_begun.pop_all()  # from here on, there is a town
        direction.begin(_begun(plan, reads_by), save, opened)
        _play_days(plan, play, save.tick if save else 0, progress, after_day)
        other = _what_if(plan, play, direction, progress) if plan.what_if else None
        names = setting.people if plan.digests else ()
        digests = {name: play.world.user(name).digest() for name in names}
        outcome = Outcome(
            plan=plan,
            setting=setting,
            play=play,
            other=other,
            digests=digests,
            embedder=reads_by,
            model=direction.model,
        )
        if at_end is not None:
            at_end(outcome)
    return outcome


def _fixed(plan: Plan, save: Save | None, direction: Direction) -> Plan:
    """Return the plan with what a save, or the log of another run, has settled.

    Raises:
        ConfigError: another town was asked for, or more scenes than there may be.
    """
    if plan.scenes is not None and not 0 <= plan.scenes <= MAX_SCENES:
        msg = f"scenes must be 0 to {MAX_SCENES} a day, not {plan.scenes}"
        raise ConfigError(msg, setting="scenes")
    wanted = plan.scenes
    if wanted is None:
        wanted = SCENES if direction.has_model else 0
    old: Save | Begun | None = direction.begun or save
    if old is None:
        return msgspec.structs.replace(plan, scenes=wanted)
    _require_same(plan, old)
    plan = msgspec.structs.replace(
        plan, seed=old.seed, npcs=old.npcs, pace=old.pace, linked=old.linked
    )
    if isinstance(old, Save):  # a model may come to a town that was without one
        return msgspec.structs.replace(plan, scenes=old.scenes or wanted)
    days = plan.days if "days" in plan.given else old.days
    what_if = plan.what_if and old.what_if
    return msgspec.structs.replace(plan, scenes=old.scenes, days=days, what_if=what_if)


def _manner(plan: Plan) -> Manner:
    return Manner(seed=plan.seed, pace=plan.pace, linked=plan.linked, scenes=plan.scenes or 0)


def _from(save: Save | None) -> dict[str, Any]:
    """Return where a play goes on from."""
    if save is None:
        return {}
    return {"tick": save.tick, "ledger": save.ledger, "record": save.record}


def _begun(plan: Plan, embedder: str) -> Begun:
    return Begun(
        seed=plan.seed,
        npcs=plan.npcs,
        pace=plan.pace,
        linked=plan.linked,
        scenes=plan.scenes or 0,
        days=plan.days,
        what_if=plan.what_if,
        embedder=embedder,
    )


def _require_folder(plan: Plan) -> None:
    """Refuse a folder that holds a town already, or (to resume) none.

    Raises:
        DataFolderError: so it is, or it is something else than a folder.
        StorageError: it cannot be read.
    """
    folder = plan.folder
    try:
        if folder.exists() and not folder.is_dir():
            msg = f"{folder} is no folder; a town takes a folder of its own"
            raise DataFolderError(msg, path=str(folder))
        has_town = (folder / MEMORY).is_dir() and any((folder / MEMORY).iterdir())
        has_saves = any(folder.glob("day-*.json"))
    except OSError as exc:
        raise disk_error(exc, folder) from exc
    except ValueError as exc:  # a NUL character
        msg = f"{str(folder)!r:.200} is no path"
        raise DataFolderError(msg, path=str(folder)).because(exc) from None
    if has_town == plan.resume:
        return
    if not has_town:
        msg = f"there is no town to go on with in {folder}"
    elif has_saves:
        msg = f"there is a town in {folder} already; go on with it by --resume"
    else:
        msg = (
            f"a town was begun in {folder}, and ended before its first save: "
            "remove that folder, or name another"
        )
    raise DataFolderError(msg, path=str(folder))


def _require_same(plan: Plan, old: Save | Begun) -> None:
    """Refuse to go on with another town than was asked for, or to play another one again; raises
    ConfigError."""
    is_save = isinstance(old, Save)
    for name in ("npcs", "seed", "pace", "scenes"):
        asked, had = getattr(plan, name), getattr(old, name)
        is_new = name == "scenes" and is_save and not had
        if name in plan.given and asked != had and not is_new:
            where = f"the town in {plan.folder}" if is_save else f"the town of {plan.replay}"
            what = "go on with it" if is_save else "play it again"
            msg = (
                f"{where} has {name} {had}, not {asked}: leave --{name} out to {what}, or begin "
                "another in another folder"
            )
            raise ConfigError(msg, setting=name)


def _make(folder: Path, undo: ExitStack) -> None:
    """Make the folder of a town; `undo` removes what was made.

    Raises:
        StorageError: it cannot be made.
    """
    memory = folder.absolute() / MEMORY
    try:
        made = [path for path in memory.parents if not path.exists()]
        memory.parent.mkdir(parents=True, exist_ok=True)
        for path in reversed(made):
            undo.callback(_remove_empty, path)
        with suppress(FileExistsError):  # another start may have it: then it is not ours to remove
            memory.mkdir()
            undo.callback(shutil.rmtree, memory, ignore_errors=True)
    except OSError as exc:
        raise disk_error(exc, folder) from exc


def _remove_empty(path: Path) -> None:
    with suppress(OSError):
        path.rmdir()


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


def _what_if(
    plan: Plan, play: Play, direction: Direction, progress: Progress | None
) -> Play | None:
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
        director=direction.director(play.setting, play.rt.world(name), UNSEEN_BRANCH),
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
        scenes=plan.scenes or 0,
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
