"""What memories keep of the answers of real chats, and how well a search over them alone finds.

On a file in the format of LoCoMo, questions of categories 1 to 4:

- A pair is a question and one turn of its evidence whose text shares content words (terms of the
  word index: stemmed, without function words) with the answer; a pair without such words does not
  count. It is kept when the memories made from that turn hold all those words; also shown: when
  one memory alone holds them, and when half of them are held. A turn is kept when all of its
  pairs are.
- Words stored: words of all memories by words of all turns, both split at spaces.
- Recall@k over memories: turns count as found through the memories that cite them, and no turn
  itself is searched; against the same search over the turns.

Conversations named by `--looked` were read while the rules were written: they are shown apart.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

import msgspec
import numpy as np
from extraction_methods import LAYERED, Method
from locomo_metrics import score
from locomo_support import (
    INGESTED,
    READER,
    Conversation,
    KeptEmbedder,
    ask,
    hits_needed,
    ingest,
    read_conversations,
)
from rich.console import Console
from rich.table import Table

import reverie
from reverie import SimulatedClock
from reverie.memory_graph.text import terms
from reverie.models.catalog import default_folder
from reverie.models.embedders import open_embedder
from reverie.models.protocol import Embedder, Extraction, Turn

BATCH_TURNS = 32  # as the ingestor's
HISTORY = 10
KS = (5, 10, 20)


class Kept(msgspec.Struct):
    """The sums over conversations."""

    pairs: int = 0
    whole: int = 0
    in_one: int = 0
    half: int = 0
    evidence: int = 0  # turns with a pair
    evidence_whole: int = 0
    turns: int = 0
    turn_words: int = 0
    memories: int = 0
    memory_words: int = 0
    cpu_s: float = 0.0


class Found(msgspec.Struct):
    """Recalls of the questions, shape (questions, cuts) as lists, and what was decided."""

    turns: list[tuple[float, ...]] = []
    memories: list[tuple[float, ...]] = []
    decided: Counter[str] = msgspec.field(default_factory=Counter)


def add_locomo_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this part."""
    parser.add_argument("--locomo", type=Path, help="a file in the format of LoCoMo")
    parser.add_argument("--looked", default="", help="conversations that were read, as A,B")
    parser.add_argument("--no-search", action="store_true", help="leave the recall out")
    parser.add_argument("--embedder", default="minilm", help="of the recall")
    parser.add_argument("--models", type=Path, default=None, help="folder of pulled models")
    parser.add_argument("--vectors", type=Path, default=None, help="keep embeddings here")


def run_locomo(args: argparse.Namespace, methods: Sequence[Method], console: Console) -> None:
    """Print the tables.

    Raises:
        ReverieError: the file or the embedder.
    """
    conversations = read_conversations(args.locomo)
    looked = set(filter(None, args.looked.split(",")))
    groups = {"all": conversations}
    if looked:
        groups["looked at"] = [c for c in conversations if c.name in looked]
        groups["not looked at"] = [c for c in conversations if c.name not in looked]
    table = Table(
        "method", "conversations", "pairs", "kept %", "in one %", "half %", "turns", "kept %",
        "words %", "memories/turn", "CPU ms/turn", title=f"{args.locomo.name}: answers kept",
    )  # fmt: skip
    for method in methods:
        for name, group in groups.items():
            kept = Kept()
            for conversation in group:
                measure(conversation, method, kept)
            table.add_row(method.name, name, *_cells(kept))
        table.add_section()
    console.print(table)
    if not args.no_search:
        layered = next(method for method in methods if method.name == LAYERED)
        inner: Embedder = open_embedder(args.embedder, args.models or default_folder())
        if args.vectors is not None:
            inner = KeptEmbedder(inner, args.vectors)
        try:
            console.print(_recall_table(groups, layered, inner))
        finally:
            inner.close()


def extracted(conversation: Conversation, method: Method) -> dict[str, Extraction]:
    """Return what a method makes of each turn, by its id, in batches as the ingestor's."""
    turns = [
        Turn(str(t.external_id), t.speaker or "user", t.role, t.text, t.said_at or 0.0)
        for t in conversation.turns
    ]
    found: list[Extraction] = []
    for at in range(0, len(turns), BATCH_TURNS):
        batch = turns[at : at + BATCH_TURNS]
        found += method.extractor.extract(batch, turns[max(0, at - HISTORY) : at])
    return {one.turn_id: one for one in found}


def measure(conversation: Conversation, method: Method, kept: Kept) -> None:
    """Add a conversation to the sums."""
    began = time.process_time()
    found = extracted(conversation, method)
    kept.cpu_s += time.process_time() - began
    drafts = [draft for one in found.values() for draft in one.memories]
    kept.turns += len(conversation.turns)
    kept.memories += len(drafts)
    kept.turn_words += sum(len(turn.text.split()) for turn in conversation.turns)
    kept.memory_words += sum(len(draft.text.split()) for draft in drafts)
    said = {str(turn.external_id): set(terms(turn.text)) for turn in conversation.turns}
    whole_turns: dict[str, bool] = {}
    for question in conversation.questions:
        answer = set(terms(question.answer or ""))
        for turn in question.evidence:
            shared = answer & said.get(turn, set())
            if not shared:
                continue
            held = [set(terms(draft.text)) for draft in found[turn].memories]
            together = set[str]().union(*held)
            whole = shared <= together
            kept.pairs += 1
            kept.whole += whole
            kept.in_one += any(shared <= one for one in held)
            kept.half += 2 * len(shared & together) >= len(shared)
            whole_turns[turn] = whole_turns.get(turn, True) and whole
    kept.evidence += len(whole_turns)
    kept.evidence_whole += sum(whole_turns.values())


def _cells(kept: Kept) -> list[str]:
    def percent(part: int, whole: int) -> str:
        return f"{100 * part / max(1, whole):.1f}"

    return [
        str(kept.pairs),
        percent(kept.whole, kept.pairs),
        percent(kept.in_one, kept.pairs),
        percent(kept.half, kept.pairs),
        str(kept.evidence),
        percent(kept.evidence_whole, kept.evidence),
        percent(kept.memory_words, kept.turn_words),
        f"{kept.memories / max(1, kept.turns):.2f}",
        f"{1000 * kept.cpu_s / max(1, kept.turns):.2f}",
    ]


def _recall_table(
    groups: dict[str, list[Conversation]], method: Method, embedder: Embedder
) -> Table:
    found = {c.name: search_both(c, method, embedder) for c in groups["all"]}
    table = Table(
        "conversations", "questions", "of", *(f"R@{k}" for k in KS), "decided",
        title="recall of evidence, percent: search over turns, and over memories alone",
    )  # fmt: skip
    for name, group in groups.items():
        turns = np.array([row for c in group for row in found[c.name].turns])[:, : len(KS)]
        memories = np.array([row for c in group for row in found[c.name].memories])[:, : len(KS)]
        over_turns, over_memories = 100 * turns.mean(axis=0), 100 * memories.mean(axis=0)
        decided: Counter[str] = sum((found[c.name].decided for c in group), Counter())
        ops = ", ".join(f"{count} {op}" for op, count in decided.most_common())
        share = 100 * over_memories / over_turns
        table.add_row(name, str(len(turns)), "turns", *(f"{v:.1f}" for v in over_turns), "")
        table.add_row("", "", "memories", *(f"{v:.1f}" for v in over_memories), ops)
        table.add_row("", "", "share of it", *(f"{v:.1f}" for v in share), "")
        table.add_section()
    return table


def search_both(conversation: Conversation, method: Method, embedder: Embedder) -> Found:
    """Ask every question of a conversation of its turns, and of its memories alone."""
    found = Found()
    most = hits_needed(KS)
    for of_memories in (False, True):
        clock = SimulatedClock()
        with (
            tempfile.TemporaryDirectory() as folder,
            reverie.open(
                Path(folder) / "data",
                embedder=embedder,
                clock=clock,
                background=False,
                extractor=method.extractor,
            ) as rt,
        ):
            if of_memories:
                found.decided = _infer(rt, clock, conversation)
                ranked = ask(rt, clock, conversation, most, types="memory")
                found.memories = _scores(conversation, ranked)
            else:
                ingest(rt, clock, conversation, lambda _: None)
                found.turns = _scores(conversation, ask(rt, clock, conversation, most))
    return found


def _infer(rt: reverie.Runtime, clock: SimulatedClock, conversation: Conversation) -> Counter[str]:
    """Store a conversation session by session and extract its memories; return the decisions."""
    user = rt.user(READER, conversation.name)
    decided: Counter[str] = Counter()
    for _, turns in groupby(conversation.turns, key=lambda turn: (turn.session, turn.said_at)):
        session = list(turns)
        clock.set(session[0].said_at or clock.now())
        decided.update(kept.op for kept in user.add(session, wait=True).kept)
    rt.checkpoint(INGESTED, conversation.name)
    return decided


def _scores(conversation: Conversation, ranked: Sequence[Sequence[str]]) -> list[tuple[float, ...]]:
    return [
        score(row, question.evidence, KS)
        for row, question in zip(ranked, conversation.questions, strict=True)
    ]
