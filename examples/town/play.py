"""The town at work: hour by hour, deeds are witnessed, told on, and thought of again.

What happens is the script's, and in a few scenes of a day, if a language model takes part, its
choice (see scene.py, director.py).

All of it goes through reverie's public interface, as it would in a game: what somebody tells is
what came to mind from his own memory. The ledger beside it is the script's own. From there come
only the parts of a sentence that a memory holds as text, to say it in another language or wrong.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from importlib.resources import as_file, files
from random import Random
from typing import TYPE_CHECKING

import msgspec

from reverie.clock import SimulatedClock
from reverie.profiles import load_profiles
from reverie.town.director import SCRIPT, Director, Taken, came_of
from reverie.town.ledger import Book, Happening, Ledger, Telling
from reverie.town.record import Record, TickFigures
from reverie.town.scene import Option, Scene, at_odds, count, meeting, named, options
from reverie.town.schedule import Schedule, time_of
from reverie.town.script import Script, Where, distorted
from reverie.town.setting import Claim, Language, Person, Setting, said
from reverie.town.streams import stream
from reverie.town.words import is_new, worded

if TYPE_CHECKING:
    from reverie import Hit, Runtime

WORLD = "town"
LIMIT = 8  # hits that a speaker thinks of
TALK = 0.6  # of two who meet
WORTH = 0.4  # importance from which on something is worth telling
TALKS = 60  # conversations in an hour, in a town of any size
THINK = 24  # people who think back in an hour
FEEL = 100  # people in a town of whom every witness feels something; in larger ones those involved
DISTORT = 0.12  # of what is told by who saw it; more of hearsay
BELIEF = 0.5  # of a witness's feelings that a listener has, times the confidence
CHAT = 0.02  # affinity that a talk leaves


class Manner(msgspec.Struct, frozen=True):
    """How a run is played.

    Attributes:
        seed: of everything that is drawn.
        pace: deeds an hour at a place with people, on average.
        unseen: planted deeds that nobody sees.
        linked: memories are linked with the people and the place that they are of. That costs
            about a third more memory; without, both are in the texts.
        scenes: in how many scenes a day somebody chooses what happens; 0 leaves all to the script.
    """

    seed: int = 1
    pace: float = 0.5
    unseen: frozenset[str] = frozenset()
    linked: bool = True
    scenes: int = 0


class Play:
    """One world of a town, played; see `tick`."""

    def __init__(
        self,
        rt: Runtime,
        setting: Setting,
        manner: Manner,
        *,
        world: str = WORLD,
        tick: int = 0,
        ledger: Ledger | None = None,
        record: Record | None = None,
        director: Director = SCRIPT,
    ) -> None:
        """Play on with what the ledger and the record hold, by default from the beginning.

        Args:
            rt: an open runtime. The world gets a clock of its own, which the play moves.
            setting: the town.
            manner: seed and pace.
            world: of the memories.
            tick: the hour from which to play.
            ledger: what happened so far.
            record: what was written down so far.
            director: chooses what happens in scenes.
        """
        self.rt = rt
        self.clock = SimulatedClock(time_of(tick))
        self.setting = setting
        self.manner = manner
        self.world = rt.world(world)
        self.world.set_clock(self.clock)
        self.book = Book(Ledger() if ledger is None else ledger)
        self.record = Record() if record is None else record
        self._schedule = Schedule(setting, manner.seed)
        self._script = Script(setting, manner.seed, pace=manner.pace, unseen=manner.unseen)
        self._feels = len(setting.people) <= FEEL
        self._director = director

    def begin(self) -> None:
        """Give everybody a memory budget, and let friends and enemies be such from the first hour
        on (in large towns those of the named)."""
        with as_file(files("reverie.town").joinpath("profiles.toml")) as path:
            profiles = load_profiles(path)
        self.world.set_profiles(
            {name: profiles[person.profile] for name, person in self.setting.people.items()}
        )
        for name, person in list(self.setting.people.items())[:FEEL]:
            for other in person.friends:
                self._move(name, other, "an old friend", trust=0.4, affinity=0.4)
            for other in person.feuds:
                self._move(name, other, "an old feud", trust=-0.2, affinity=-0.4)

    def tick(self, tick: int) -> TickFigures:
        """Play one hour; the clock is then at its begin."""
        began = time.perf_counter()
        self.clock.set(time_of(tick))
        where = self._schedule.places(tick)
        happenings = self._script.happenings(tick, where)
        observed, moves = self._witness(happenings)
        staged = self._scenes(tick, where)
        told, felt = self._talk(tick, where)
        self._think(tick, where)
        figures = TickFigures(
            tick,
            len(happenings) + staged.deeds,
            observed + staged.observed,
            told + staged.told,
            moves + felt + staged.moves,
            round(time.perf_counter() - began, 4),
        )
        self.record.ticks.append(figures)
        return figures

    # -- what happens ----------------------------------------------------------------------

    def _witness(self, happenings: Sequence[Happening]) -> tuple[int, int]:
        """Let what happens be seen; return memories made and relationships moved."""
        for happening in happenings:
            self.book.happened(happening)
        seen = [happening for happening in happenings if happening.witnesses]
        if not seen:
            return 0, 0
        kept = self.world.observe_many([self._event(happening) for happening in seen])
        moves = 0
        for happening, observed in zip(seen, kept, strict=True):
            for name in happening.witnesses:
                memory = observed.kept.get(name)
                memory_id = None if memory is None else memory.memory_id
                moves += self._feel(name, happening, memory_id)
        return sum(len(happening.witnesses) for happening in seen), moves

    def _event(self, happening: Happening) -> dict[str, object]:
        deed = self.setting.deeds[happening.claim.deed]
        actors = [name for name in (happening.claim.a, happening.claim.b) if name is not None]
        event: dict[str, object] = {
            "text": happening.text,
            "witnesses": list(happening.witnesses),
            "event_id": happening.id,
            "importance": deed.importance,
            "sentiment": deed.sentiment,
        }
        if self.manner.linked:
            language = happening.language
            event["place"] = self.setting.places[happening.claim.place].name(language)
            event["participants"] = [self.setting.called(name, language) for name in actors]
        return event

    def _feel(self, name: str, happening: Happening, memory_id: str | None) -> int:
        """Move how one of those who were there stands to those who did it."""
        claim, moved = happening.claim, 0
        part = {claim.a: "a", claim.b: "b"}.get(name, "witness")
        for move in self.setting.deeds[claim.deed].moves:
            other = claim.a if move.toward == "a" else claim.b
            if (
                move.who == part
                and other not in {None, name}
                and (self._feels or part != "witness")
            ):
                self._move(name, str(other), happening.text, memory_id, **move.deltas)
                moved += 1
        return moved

    def _move(
        self, name: str, other: str, reason: str, memory_id: str | None = None, **deltas: float
    ) -> None:
        user = self.world.user(name)
        user.relationships.move(
            other,
            reason=reason,
            memory_id=memory_id,
            **deltas,  # type: ignore[arg-type]  # names of dimensions, not of arguments
        )

    # -- scenes ------------------------------------------------------------------------------

    def _scenes(self, tick: int, where: Where) -> TickFigures:
        """Play the scenes of an hour, one after the other; return what came of them."""
        deeds = observed = told = moves = 0
        for number in range(count(self.manner.seed, tick, self.manner.scenes)):
            draw = stream(self.manner.seed, "scene", tick, number)
            met = meeting(self.setting, draw, where)
            if met is None:
                break
            scene, hit = self._scene(draw, named(tick, number), tick, met, where)
            taken = self._director.choose(scene)
            option = scene.options[taken.option]
            event = text = words = ""
            if hit is not None and option.is_told:
                telling = self._confide(scene, hit, option, by_model=taken.by_model)
                event, text, told = telling.event, telling.text, told + 1
                moves += self._hear(telling)
            elif option.claim is not None:
                happening, words = self._deed(scene, option.claim, option, taken)
                event, text, deeds = happening.id, happening.text, deeds + 1
                seen, felt = self._witness([happening])
                observed, moves = observed + seen, moves + felt
            choice = came_of(scene, taken, event=event, text=text, words=words)
            self.record.scenes.append(choice)
            self._director.note(choice)
        return TickFigures(tick, deeds, observed, told, moves)

    def _scene(
        self, draw: Random, name: str, tick: int, met: tuple[str, str, str], where: Where
    ) -> tuple[Scene, Hit | None]:
        """Return a scene, and the memory that comes to mind in it."""
        place, who, other = met
        setting = self.setting
        feelings = self.world.user(who).relationships.of(other)
        is_cold = at_odds(setting, who, other, feelings)
        hit, memory = self._on_his_mind(draw, place, who, other)
        found = options(
            setting, draw, place=place, who=who, other=other, is_cold=is_cold, memory=memory
        )
        scene = Scene(
            id=name,
            tick=tick,
            place=place,
            language=setting.places[place].language,
            who=who,
            other=other,
            there=tuple(where[place]),
            is_cold=is_cold,
            feelings=feelings,
            memory=memory,
            options=found,
            plain=draw.randrange(len(found)),
            share=draw.random(),
        )
        return scene, hit

    def _on_his_mind(
        self, draw: Random, place: str, who: str, other: str
    ) -> tuple[Hit | None, Claim | None]:
        """Return what comes to the mind of one that would be news to the other, if they can talk
        to each other, and what he believes of it."""
        language = draw.choice(self._languages(who))
        question, pick = self._question(draw, place, other, language), draw.random()
        if _common(self.setting.people[who], self.setting.people[other]) is None:
            return None, None
        (hits,) = self._recall([(who, question)], worth=WORTH)
        fresh = [hit for hit in hits if self._is_news(hit, who, other)]
        if not fresh:
            return None, None
        hit = _weighted(fresh, pick)
        claim = self.book.claim(str(hit.event), hit.heard, who)
        return (None, None) if claim is None else (hit, claim)

    def _confide(self, scene: Scene, hit: Hit, option: Option, *, by_model: bool) -> Telling:
        """Let somebody tell what came to his mind, right or wrong."""
        who, other = scene.who, scene.other
        people = self.setting.people
        language = _common(people[who], people[other])
        assert option.claim is not None  # noqa: S101 (something is told)
        assert language is not None  # noqa: S101 (else nothing came to his mind)
        return self._tell(
            scene.tick, who, other, language, hit, option.claim, option.change, by_model=by_model
        )

    def _deed(
        self, scene: Scene, claim: Claim, option: Option, taken: Taken
    ) -> tuple[Happening, str]:
        """Return what happens, and the words of a model if it is told in these."""
        words = worded(self.setting, scene, option, taken.words)
        if words and not is_new(self.book.ledger, words):
            words = ""
        happening = Happening(
            id=scene.id,
            tick=scene.tick,
            claim=claim,
            text=words or said(self.setting, claim, scene.language),
            language=scene.language,
            witnesses=scene.there,
            by_model=taken.by_model,
        )
        return happening, words

    # -- talk --------------------------------------------------------------------------------

    def _talk(self, tick: int, where: Where) -> tuple[int, int]:
        """Let people who meet tell each other what they know; return tellings and moves."""
        draw = stream(self.manner.seed, "talk", tick)
        pairs: list[tuple[str, str, str, Language]] = []
        for place, names in where.items():
            company = list(names)
            draw.shuffle(company)
            for speaker, listener in zip(company[::2], company[1::2], strict=False):
                language = _common(self.setting.people[speaker], self.setting.people[listener])
                if language is not None and draw.random() < TALK:
                    pairs.append((speaker, listener, place, language))
        if len(pairs) > TALKS:
            pairs = draw.sample(pairs, TALKS)
        pairs = [
            (*turn, place, language)
            for one, other, place, language in pairs
            for turn in ((one, other), (other, one))
        ]
        asked = [  # one thinks in any language that one has, and speaks in a common one
            (speaker, self._question(draw, place, listener, draw.choice(self._languages(speaker))))
            for speaker, listener, place, _ in pairs
        ]
        thought = self._recall(asked, worth=WORTH)
        told = moved = 0
        for (speaker, listener, _, language), hits in zip(pairs, thought, strict=True):
            telling = self._choose(draw, tick, speaker, listener, language, hits)
            if telling is not None:
                told += 1
                moved += self._hear(telling)
        return told, moved

    def _languages(self, name: str) -> tuple[Language, ...]:
        return self.setting.people[name].languages

    def _question(self, draw: Random, place: str, listener: str, language: Language) -> str:
        question = draw.choice(self.setting.questions)
        near = draw.choice(list(self.setting.people[listener].friends) or [listener])
        text = question.zh if language == "zh" else question.en
        return text.format(
            place=self.setting.places[place].name(language),
            name=self.setting.called(near, language),
        )

    def _recall(self, asked: Sequence[tuple[str, str]], worth: float = 0.0) -> list[list[Hit]]:
        """Return what comes to mind at each question, of at least that importance."""
        if not asked:
            return []
        return self.rt.search_many(
            asked,
            world=self.world.name,
            limit=LIMIT,
            types="memory",
            filters={"importance": {"gte": worth}, "event": {"exists": True}},
        )

    def _choose(
        self,
        draw: Random,
        tick: int,
        speaker: str,
        listener: str,
        language: Language,
        hits: Sequence[Hit],
    ) -> Telling | None:
        """Choose what a speaker tells of what came to mind, if anything, and tell it."""
        chance, pick, garbled = draw.random(), draw.random(), draw.random()
        fresh = [hit for hit in hits if self._is_news(hit, speaker, listener)]
        if not fresh or chance > self._openness(speaker, listener):
            return None
        hit = _weighted(fresh, pick)
        believed = self.book.claim(str(hit.event), hit.heard, speaker)
        if believed is None:
            return None
        claim, change = believed, ""
        if garbled < DISTORT * (1 + len(hit.heard)):
            claim, change = distorted(self.setting, believed, speaker, draw)
        return self._tell(tick, speaker, listener, language, hit, claim, change)

    def _tell(
        self,
        tick: int,
        speaker: str,
        listener: str,
        language: Language,
        hit: Hit,
        claim: Claim,
        change: str,
        *,
        by_model: bool = False,
    ) -> Telling:
        """Let somebody tell of a memory what `claim` says; `change` is what is wrong of it."""
        event, text = str(hit.event), said(self.setting, claim, language)
        kept = self.world.tell(speaker, listener, hit.id, text=text)
        telling = Telling(
            event=event,
            tick=tick,
            speaker=speaker,
            listener=listener,
            claim=claim,
            text=text,
            heard=(*hit.heard, speaker),
            distortion=change,
            memory_id=kept.memory_id,
            confidence=self._confidence(listener, kept.memory_id),
            is_new=not self.book.knows(event, listener),
            by_model=by_model,
        )
        self.book.told(telling)
        return telling

    def _is_news(self, hit: Hit, speaker: str, listener: str) -> bool:
        return (
            hit.event is not None
            and listener not in hit.heard
            and not self.book.have_talked(hit.event, speaker, listener)
        )

    def _openness(self, speaker: str, listener: str) -> float:
        """Return how likely one tells another what he knows: more to those whom he trusts."""
        feelings = self.world.user(speaker).relationships.of(listener)
        return min(0.95, max(0.05, 0.4 + 0.5 * feelings["trust"] + 0.2 * feelings["affinity"]))

    def _confidence(self, name: str, memory_id: str) -> float:
        if not memory_id:  # nothing was kept
            return 0.0
        return self.world.user(name).get(memory_id).confidence or 0.0

    def _hear(self, telling: Telling) -> int:
        """Move how a listener stands to the speaker, and to those of whom he was told."""
        self._move(telling.listener, telling.speaker, "a talk", affinity=CHAT)
        if not telling.is_new:
            return 1
        moved, claim = 1, telling.claim
        share = BELIEF * telling.confidence
        for move in self.setting.deeds[claim.deed].moves:
            other = claim.a if move.toward == "a" else claim.b
            if move.who == "witness" and other not in {None, telling.listener}:
                deltas = {name: share * delta for name, delta in move.deltas.items()}
                self._move(telling.listener, str(other), telling.text, telling.memory_id, **deltas)
                moved += 1
        return moved

    # -- thought -----------------------------------------------------------------------------

    def _think(self, tick: int, where: Where) -> None:
        """Let some think of what came before; what is read comes to mind more easily afterwards."""
        draw = stream(self.manner.seed, "think", tick)
        awake = [(name, place) for place, names in where.items() for name in names]
        if len(awake) > THINK:
            awake = draw.sample(awake, THINK)
        asked = []
        for name, place in awake:
            language = self.setting.people[name].languages[0]
            if draw.random() < 1 / 8:
                asked.append((name, self._question(draw, place, name, language)))
        self._recall(asked)


def _common(speaker: Person, listener: Person) -> Language | None:
    """Return a language that both speak, the listener's own if there is a choice."""
    return next((word for word in listener.languages if word in speaker.languages), None)


def _weighted(hits: Sequence[Hit], pick: float) -> Hit:
    """Return one of the hits, `pick` of the way (0 to 1) through their importances: what matters
    is told on."""
    weights = [0.01 + (hit.importance or 0.0) ** 3 for hit in hits]
    left = pick * sum(weights)
    for hit, weight in zip(hits, weights, strict=True):
        left -= weight
        if left <= 0:
            return hit
    return hits[-1]
