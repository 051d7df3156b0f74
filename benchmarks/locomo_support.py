"""What the benchmarks on LoCoMo share: conversations, a runtime that holds them, asking, scoring.

Everything goes through the public API: one world per conversation with one user, each session
stored at its own time (`infer=False`), every question asked at the end of its conversation.
Readings change a memory a little (associations grow), so all questions of a conversation are asked
in one `search_many`, which answers them from one state; then the world is rewound.
"""

from __future__ import annotations

import argparse
import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path

import msgspec
import numpy as np
from locomo_metrics import CUT, Float64, Interval, interval, metric_names, score
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

import reverie
from reverie import SimulatedClock
from reverie.formats import QuestionRecord, read_questions, read_turns
from reverie.memory_graph.drafts import TurnDraft
from reverie.memory_graph.errors import InputError, InvalidValueError
from reverie.memory_graph.views import Item
from reverie.models.cached import CachedEmbedder
from reverie.models.catalog import default_folder
from reverie.models.embedders import open_embedder
from reverie.models.protocol import Embedder, EmbedderInfo, Float32, TextRole

Advance = Callable[[int], None]

CATEGORIES = {4: "single-hop", 1: "multi-hop", 2: "temporal", 3: "open-domain"}  # in print order
OVERALL = "overall"
KS = (5, 10, 20)
READER = "reader"  # the one user of each world
INGESTED = "ingested"  # tag of each world before it is asked
MOST_HITS = 10_000  # of one search
MAX_CACHE_BYTES = 2 << 30
WIDTH = 144


class Conversation(msgspec.Struct, frozen=True):
    """A conversation and the questions that can be scored: of a category in CATEGORIES, with
    evidence. `left_out` counts turns that cannot be used, `unscored` such questions without
    evidence."""

    name: str
    turns: list[TurnDraft]
    questions: list[QuestionRecord]
    left_out: int
    unscored: int


def read_conversations(path: Path) -> list[Conversation]:
    """Read a file in the format of LoCoMo; conversations without questions are left out.

    Raises:
        InvalidValueError: the file, a conversation whose turns have no or equal ids, or nothing
            to ask.
    """
    turns: dict[str, list[TurnDraft]] = {}
    skipped: list[InputError] = []
    records = read_turns(
        path, format="locomo", on_error="skip", on_skip=lambda _, error: skipped.append(error)
    )
    left_out: Counter[str] = Counter()
    before, name = 0, ""
    for record in records:
        name = record.conversation
        left_out[name] += len(skipped) - before
        before = len(skipped)
        turns.setdefault(name, []).append(record.turn)
    left_out[name] += len(skipped) - before
    asked: dict[str, list[QuestionRecord]] = {}
    for question in read_questions(path):
        if question.category in CATEGORIES:
            asked.setdefault(question.conversation, []).append(question)
    found = []
    for name, questions in asked.items():
        scored = [question for question in questions if question.evidence]
        said = turns.get(name, [])
        ids = [turn.external_id for turn in said]
        if None in ids or len(set(ids)) < len(ids):
            msg = f"{path}: turns of {name} have no or equal ids; is the conversation in it twice?"
            raise InvalidValueError(msg, file=str(path))
        if scored and said:
            unscored = len(questions) - len(scored)
            found.append(Conversation(name, said, scored, left_out[name], unscored))
    if not found:
        msg = f"{path}: no question of categories 1 to 4 has evidence"
        raise InvalidValueError(msg, file=str(path))
    return found


# -- a runtime that holds them ------------------------------------------------------------


def ingest(
    rt: reverie.Runtime,
    clock: SimulatedClock,
    conversation: Conversation,
    advance: Advance,
    *,
    summaries: bool = False,
) -> None:
    """Store a conversation in its own world, each session at the time at which it was said; with
    `summaries`, a summary of each session too."""
    user = rt.user(READER, conversation.name)
    for _, turns in groupby(conversation.turns, key=lambda turn: (turn.session, turn.said_at)):
        session = list(turns)
        clock.set(session[0].said_at or clock.now())
        user.add(session, infer=False)
        advance(len(session))
    if summaries:
        user.summarise()
    rt.checkpoint(INGESTED, conversation.name)


def ask(
    rt: reverie.Runtime,
    clock: SimulatedClock,
    conversation: Conversation,
    most: int,
    types: str | None = None,
) -> list[list[str]]:
    """Ask every question of an ingested conversation; the world is then as it was before.

    A search returns `most` hits at first. Where these stand for fewer turns, it is repeated with
    twice as many.

    Args:
        rt: holds the conversation, with a checkpoint INGESTED of its world.
        clock: of `rt`.
        conversation: what to ask.
        most: how many turns a ranking needs.
        types: of the items that are searched, such as "memory"; all by default.

    Returns:
        For each question the ids of at least `most` distinct turns, best first; fewer when there
        are no more hits.
    """
    user = rt.user(READER, conversation.name)
    clock.set(end_of(conversation))
    turns_of = TurnsOf(user)
    ranked: list[list[str]] = [[] for _ in conversation.questions]
    waiting, limit = list(range(len(ranked))), min(most, MOST_HITS)
    while waiting:
        pairs = [(READER, conversation.questions[place].question) for place in waiting]
        found = rt.search_many(pairs, world=conversation.name, limit=limit, types=types)
        few = []
        for place, hits in zip(waiting, found, strict=True):
            ranked[place] = list(dict.fromkeys(turn for hit in hits for turn in turns_of(hit)))
            if len(ranked[place]) < most and len(hits) == limit < MOST_HITS:
                few.append(place)
        rt.rewind(INGESTED, conversation.name)
        waiting, limit = few, min(2 * limit, MOST_HITS)
    return ranked


def end_of(conversation: Conversation) -> float:
    """Return when the last turn was said, in seconds."""
    return max(turn.said_at or 0.0 for turn in conversation.turns)


class TurnsOf:
    """The turns that a hit stands for, as the ids with which they were stored.

    A message is its own turn. Memories and summaries stand for the turns that they derive from,
    entities for those that mention them. What was never said in a turn stands for none.
    """

    def __init__(self, user: reverie.User) -> None:
        self._user = user
        self._known: dict[str, tuple[str, ...]] = {}

    def __call__(self, item: Item) -> tuple[str, ...]:
        """Return the ids of the turns, in the order in which the graph names them, each once."""
        return self._of(item, frozenset())

    def _of(self, item: Item, above: frozenset[str]) -> tuple[str, ...]:
        known = self._known.get(item.id)
        if known is None:
            known = self._known[item.id] = tuple(dict.fromkeys(self._find(item, above | {item.id})))
        return known

    def _find(self, item: Item, above: frozenset[str]) -> Iterator[str]:
        kind: str = item.type
        if kind == "message":
            if item.external_id is not None:
                yield item.external_id
        elif kind == "entity":
            yield from self.of_entity(item.text)
        else:
            for source in item.sources:
                if source not in above:
                    yield from self._of(self._user.get(source), above)

    def of_entity(self, name: str) -> tuple[str, ...]:
        """Return the ids of the turns behind every text that mentions an entity, newest first."""
        texts = self._user.neighbors(name).mentioned_in
        return tuple(dict.fromkeys(turn for text in texts for turn in self(text)))


# -- embeddings, each made once -------------------------------------------------------------


class KeptEmbedder:
    """An embedder whose vectors are kept in a folder, so that a second run need not make them.

    One .npz file per model: `keys`, digests of role and text, and `rows`, float32.
    """

    def __init__(self, inner: Embedder, folder: Path) -> None:
        self._inner = inner
        name = hashlib.sha256(inner.info.id.encode()).hexdigest()[:16]
        self._path = folder / f"vectors-{name}.npz"
        self._rows: dict[str, Float32] = {}
        self._is_new = False
        if self._path.is_file():
            with np.load(self._path) as kept:
                self._rows = dict(zip(kept["keys"].tolist(), kept["rows"], strict=True))

    @property
    def info(self) -> EmbedderInfo:
        """Identity and shape of the vectors."""
        return self._inner.info

    def embed(self, texts: Sequence[str], role: TextRole) -> Float32:
        """Return unit rows, those that are kept and those that the model makes now."""
        keys = [hashlib.sha256(f"{role}|{text}".encode()).hexdigest()[:32] for text in texts]
        missing = {k: t for k, t in zip(keys, texts, strict=True) if k not in self._rows}
        if missing:
            fresh = self._inner.embed(list(missing.values()), role)
            self._rows.update(zip(missing, fresh, strict=True))
            self._is_new = True
        rows = np.empty((len(texts), self.info.dim), np.float32)
        for row, key in zip(rows, keys, strict=True):
            row[:] = self._rows[key]
        return rows

    def count_tokens(self, text: str) -> int:
        """Return what the inner embedder counts."""
        return self._inner.count_tokens(text)

    def unknown_share(self, text: str) -> float:
        """Return what the inner embedder says."""
        return self._inner.unknown_share(text)

    def close(self) -> None:
        """Write what is new, and close the inner embedder."""
        if self._is_new:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            unfinished = self._path.with_suffix(".part")
            with unfinished.open("wb") as file:
                np.savez(file, keys=list(self._rows), rows=np.array(list(self._rows.values())))
            unfinished.replace(self._path)
        self._inner.close()


# -- command line ---------------------------------------------------------------------------


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that every benchmark on LoCoMo has."""
    parser.add_argument("file", type=Path, help="a file in the format of LoCoMo")
    parser.add_argument("--k", type=_cuts, default=KS, metavar="5,10,20", help="cuts of recall")
    parser.add_argument(
        "--embedder", default="minilm", metavar="NAME_OR_PATH", help="of reverie and the baselines"
    )
    parser.add_argument("--models", type=Path, default=None, help="folder of pulled models")
    parser.add_argument("--threads", type=int, default=1, help="of the embedder")
    parser.add_argument(
        "--vectors", type=Path, default=None, help="keep embeddings in this folder between runs"
    )
    parser.add_argument("--json", type=Path, default=None, help="write all figures to this file")


def _cuts(text: str) -> tuple[int, ...]:
    """Return the cuts that "5,10,20" names, ascending; a ValueError for anything else."""
    cuts = tuple(sorted({int(part) for part in text.split(",")}))
    if not 1 <= cuts[0] <= cuts[-1] <= MOST_HITS:
        raise ValueError(text)
    return cuts


@contextmanager
def shared_embedder(args: argparse.Namespace) -> Iterator[Embedder]:
    """Open the embedder that the arguments name, with a cache in front of it; close it after.

    Vectors do not depend on what they are embedded with (`batch_tokens=0`), so that two rankings
    of the same turns differ by the ranking alone; texts of one batch otherwise round together.
    """
    folder = args.models or default_folder()
    inner = open_embedder(args.embedder, folder, threads=args.threads, batch_tokens=0)
    if args.vectors is not None:
        inner = KeptEmbedder(inner, args.vectors)
    embedder = CachedEmbedder(inner, max_bytes=MAX_CACHE_BYTES)
    try:
        yield embedder
    finally:
        embedder.close()


@contextmanager
def progress(total: int) -> Iterator[Callable[[str], Advance]]:
    """Show one bar on the error stream; call what this gives with a name for each new step."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=total)

        def step(name: str) -> Advance:
            bar.update(task, description=name)
            return lambda count: bar.advance(task, count)

        yield step


def console() -> Console:
    """Return where tables are printed, wide enough for them also in a pipe."""
    return Console(width=WIDTH, highlight=False)


# -- scores ---------------------------------------------------------------------------------


Mask = NDArray[np.bool_]


class Scored:
    """The metrics of one system over the questions of all conversations.

    Attributes:
        names: of the metrics.
        values: float64 of shape (questions, metrics), 0 to 1.
    """

    def __init__(
        self,
        questions: Sequence[QuestionRecord],
        rankings: Sequence[Sequence[str]],
        ks: Sequence[int],
    ) -> None:
        self.names = metric_names(ks)
        self.values: Float64 = np.array(
            [score(r, q.evidence, ks) for q, r in zip(questions, rankings, strict=True)]
        )

    def of(self, metric: str, mask: Mask | None = None) -> Float64:
        """Return the values of one metric, of the questions in `mask` or of all."""
        column: Float64 = self.values[:, self.names.index(metric)]
        return column if mask is None else column[mask]

    def intervals(self, mask: Mask | None = None) -> dict[str, Interval]:
        """Return the mean of each metric with its interval."""
        return {name: interval(self.of(name, mask)) for name in self.names}


def masks(questions: Sequence[QuestionRecord]) -> dict[str, Mask]:
    """Return which questions are of each category that occurs, and overall, by name."""
    categories = np.array([question.category for question in questions])
    found = {
        name: categories == number
        for number, name in CATEGORIES.items()
        if (categories == number).any()
    }
    return {**found, OVERALL: categories > 0}


def hits_needed(ks: Sequence[int]) -> int:
    """Return how many turns a ranking must have for all metrics."""
    return max(*ks, CUT)


def with_interval(value: Interval) -> str:
    """Return "61.6 (58.2-65.1)"."""
    return f"{value.mean:.1f} ({value.low:.1f}-{value.high:.1f})"


def signed(value: Interval) -> str:
    """Return "+2.1 (+0.4 +3.9)*" for a difference; the star says that it holds at 95%."""
    mark = "" if value.low <= 0 <= value.high else "*"
    return f"{value.mean:+.1f} ({value.low:+.1f} {value.high:+.1f}){mark}"
