"""The steps of the demonstration. Each prints what it does and adds claims that it has checked."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from reverie.cli import output
from reverie.cli.search import said
from reverie.cli.story import TOP, Question, Story, is_answered, told_in_order
from reverie.clock import SimulatedClock
from reverie.memory_graph.ids import partition_of
from reverie.runtime import open as open_folder
from reverie.stopping import closing_on_sigterm

if TYPE_CHECKING:
    from reverie.memory_graph.views import Hit, Item
    from reverie.runtime import Runtime
    from reverie.user import User

SHOWN_HITS = 3
CONTEXT_TOKENS = 200
PAUSE_S = 14 * 86400.0  # between the last turn and the change of facts
MOST = 0.6  # share of questions that must be answered; the stand-in answers 0.8 of them


class Tour:
    """Leads through a data folder; `held` says whether every claim was true."""

    def __init__(
        self, folder: Path, stories: Sequence[Story], models_folder: Path, *, quiet: bool
    ) -> None:
        """Prepare a tour of `folder`, which is made by it; `quiet` prints nothing."""
        self.claims: list[tuple[str, bool]] = []
        self._folder = folder
        self._stories = stories
        self._models_folder = models_folder
        self._screen = Console(highlight=False, markup=False, emoji=False, quiet=quiet)
        self._clock = SimulatedClock(min(s.turns[0].said_at or 0.0 for s in stories))
        self._actors: int | None = None
        self._digests: dict[str, str] = {}
        self._counts: dict[str, object] = {}
        self._rt: Runtime

    @property
    def held(self) -> bool:
        """Whether everything that was claimed so far is true."""
        return all(true for _, true in self.claims)

    @contextmanager
    def open(self, actors: int | None) -> Iterator[None]:
        """Open the folder with `actors` Ray actors, or in this process; close it afterwards."""
        self._actors = actors
        how = "in this process" if actors is None else f"on {actors} Ray actor{'s'[: actors - 1]}"
        self._title(f"{'Open again' if self._digests else 'Open'}, {how}")
        began = time.monotonic()
        with (
            open_folder(
                self._folder,
                actors=actors,
                clock=self._clock,
                models_folder=self._models_folder,
                background=False,
            ) as rt,
            closing_on_sigterm(rt),
        ):
            self._rt = rt
            self._say(f"{rt.path}: open after {time.monotonic() - began:.1f} s")
            yield

    # -- steps -------------------------------------------------------------------------

    def listen(self) -> None:
        """Feed both conversations, as they happened, with the clock at the time of each turn."""
        self._title("Two people talk to their assistants")
        for story in self._stories:
            self._rt.create_world(story.world, embedder=story.embedder)
        total = sum(len(story.turns) for story in self._stories)
        began = time.monotonic()
        with Progress(
            TextColumn("{task.fields[day]}"),
            BarColumn(),
            MofNCompleteColumn(),
            console=self._screen,
            disable=not self._screen.is_terminal,
            transient=True,
        ) as bar:
            task = bar.add_task("turns", total=total, day="")
            for at, story, turn in told_in_order(self._stories):
                self._clock.set(at)
                self._user(story).add(turn, wait=True)
                bar.update(task, advance=1, day=output.moment(at)[:10])
        seconds = time.monotonic() - began
        made = output.table(
            "world", "user", "where", ">turns", ">memories", ">entities", "embedder"
        )
        turns = memories = 0
        for story in self._stories:
            stats = self._user(story).stats()
            turns, memories = turns + stats.messages, memories + stats.memories
            made.add_row(
                *(story.world, story.user, self._where(story)),
                *map(str, (stats.messages, stats.memories, stats.entities)),
                (stats.embedder or "").partition(":")[0],
            )
        self._screen.print(made)
        self._say(f"{turns} turns in {seconds:.1f} s, {turns / seconds:.0f} turns/s")
        self._counts |= {"turns": turns, "memories": memories}
        self._claim(f"all {total} turns are stored", true=turns == total)

    def ask(self, *, detailed: bool) -> None:
        """Ask every question and count the answers; with `detailed`, show some with reasons."""
        self._title("Questions" if detailed else "The same questions again")
        answered = asked = 0
        for story in self._stories:
            hits = {q.id: self._search(story, q) for q in story.questions}
            good = [q for q in story.questions if is_answered(q, hits[q.id])]
            if detailed:
                for question in story.shown_questions():
                    self._show_answer(question, hits[question.id])
            share = f"{len(good)} of {len(story.questions)}"
            self._say(f"{story.world}: {share} questions answered in the first {TOP} hits")
            answered, asked = answered + len(good), asked + len(story.questions)
        when = "" if detailed else " after opening again"
        self._counts |= {"asked": asked, f"answered{when.replace(' ', '_')}": answered}
        self._claim(
            f"{answered} of {asked} questions are answered{when}", true=answered >= MOST * asked
        )

    def show_context(self) -> None:
        """Print the block that a prompt would hold for one question of each story."""
        for story in self._stories:
            question = story.change.question
            block = self._user(story).context(question, budget_tokens=CONTEXT_TOKENS)
            self._title(f"A block for a prompt: {question}")
            self._say(block.text)
            self._say(f"{block.tokens} of {CONTEXT_TOKENS} tokens", "dim")
            self._claim(
                f"the block about {question!r} keeps to its budget",
                true=0 < block.tokens <= CONTEXT_TOKENS,
            )

    def change_facts(self) -> None:
        """Let a fact of each story change, and show that the old one is kept but answers only for
        its own time."""
        before = self._clock.now()
        for story in self._stories:
            self._clock.set(before + PAUSE_S)
            self._title(f"A fact changes: {story.change.said}")
            self._change(story, before)

    def _change(self, story: Story, before: float) -> None:
        user, change = self._user(story), story.change
        kept = user.add(change.said, session="later", wait=True).kept
        replaced = [k for k in kept if k.op == "UPDATE"]
        self._claim(f"{change.said!r} replaces a fact", true=bool(replaced))
        if not replaced:
            return
        heard = user.get(replaced[0].memory_id)
        self._clock.advance(60)
        corrected = user.update(heard.id, change.corrected)
        history = user.history(corrected.id)
        self._show_history(history)
        olds = [item for item in history if item.id not in {heard.id, corrected.id}]
        then = user.search(change.question, types="memory", valid_at=before, limit=TOP)
        now = user.search(change.question, types="memory", limit=TOP)
        self._say(f"{change.question} On {output.moment(before)[:10]}: {_first(then)}")
        self._say(f"{change.question} Now: {_first(now)}")
        ended = {heard.id, *(item.id for item in olds)}
        self._claim(
            f"{story.world}: what was replaced is in the history, superseded",
            true=bool(olds) and all(i.status == "superseded" for i in history[:-1]),
        )
        self._claim(
            f"{story.world}: asked for its own time, the old fact answers",
            true=bool({h.id for h in then} & {item.id for item in olds}),
        )
        self._claim(
            f"{story.world}: asked for now, the new fact comes first, the old ones not at all",
            true=[h.id for h in now[:1]] == [corrected.id] and not {h.id for h in now} & ended,
        )

    def remember_digests(self) -> None:
        """Note the digest of each user's state, to be compared after the next opening."""
        self._digests = {story.world: self._user(story).digest() for story in self._stories}
        self._say("Closing.")

    def compare_digests(self) -> None:
        """Compare each user's state with that before the folder was closed."""
        for story in self._stories:
            digest, old = self._user(story).digest(), self._digests[story.world]
            self._say(f"{story.world}: digest {digest[:16]}, was {old[:16]}")
            self._claim(
                f"{story.world}: the same state {self._where(story)}",
                true=bool(old) and digest == old,
            )

    def check(self) -> None:
        """Look for broken invariants of every file and user."""
        self._title("Check")
        problems = self._rt.check()
        for line in problems:
            self._say(line, "red")
        self._claim(f"problems found in all files: {len(problems) or 'none'}", true=not problems)

    # -- the end -----------------------------------------------------------------------

    def summary(self) -> dict[str, object]:
        """Return counts and claims for JSON."""
        claims = [{"claim": claim, "true": true} for claim, true in self.claims]
        return {"held": self.held, **self._counts, "claims": claims}

    def show_summary(self, seconds: float) -> None:
        """Print the counts, and the claims that did not hold."""
        self._title("Summary")
        rows = [(name.replace("_", " "), value) for name, value in self._counts.items()]
        rows.append(("claims", f"{sum(t for _, t in self.claims)} of {len(self.claims)} held"))
        rows.append(("seconds", f"{seconds:.1f}"))
        self._screen.print(output.pairs(rows))
        for claim, true in self.claims:
            if not true:
                self._say(f"did not hold: {claim}", "bold red")

    # -- details -----------------------------------------------------------------------

    def _user(self, story: Story) -> User:
        return self._rt.user(story.user, story.world)

    def _search(self, story: Story, question: Question) -> list[Hit]:
        return self._user(story).search(question.question, limit=TOP, as_of=question.as_of)

    def _where(self, story: Story) -> str:
        if self._actors is None:
            return "in this process"
        partition = partition_of(self._user(story).key, self._rt.config.partitions)
        return f"on actor {partition % self._actors + 1}"

    def _title(self, text: str) -> None:
        self._screen.print()
        self._screen.rule(output.plain(text, "bold"), align="left", characters="-")

    def _say(self, text: str, style: str = "") -> None:
        self._screen.print(output.plain(text, style), soft_wrap=True)

    def _claim(self, text: str, *, true: bool) -> None:
        self.claims.append((text, true))
        self._say(f"[{'ok' if true else 'FAILED'}] {text}", "green" if true else "bold red")

    def _show_answer(self, question: Question, hits: Sequence[Hit]) -> None:
        as_of = "" if question.as_of is None else f" (as of {question.as_of[:10]})"
        found = "found" if is_answered(question, hits) else "not found"
        self._say(f"\n{question.question}{as_of}", "bold cyan")
        self._say(f"  {question.kind}: {question.answer} [{found}]", "dim")
        for hit in hits[:SHOWN_HITS]:
            self._say(f"  {hit.score:5.2f}  {output.moment(hit.at)[:10]}  {said(hit)}")
            self._say(f"         {'; '.join(hit.reasons)}", "dim")

    def _show_history(self, history: Sequence[Item]) -> None:
        made = output.table("id", "text", "from", "to", "status")
        for item in history:
            made.add_row(
                item.id,
                output.plain(item.text),
                output.moment(item.valid_from)[:10],
                output.moment(item.valid_to)[:10],
                item.status,
            )
        self._screen.print(made)


def _first(hits: Sequence[Any]) -> str:
    return hits[0].text if hits else "nothing"
