"""From turns to memories, in the background: extract, look for similar ones, decide, apply.

The outbox on disk says which turns wait, so pending work survives a crash. Each batch is done in
full before its outcome is sent to the shard as one command: nothing uncertain is ever journaled
but its outcome, and an outcome of before a rewind is refused by its generation. A turn is done
at least once and settled exactly once, because the shard passes over turns that are not pending.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from traceback import format_exc
from typing import Protocol, TypeAlias

import msgspec
import numpy as np
import structlog

from reverie.actors import commands as c
from reverie.actors.backend import Router
from reverie.actors.settled import SettledTurns
from reverie.memory_graph.drafts import (
    Decision,
    Kept,
    Known,
    MemoryDraft,
    TurnOutcome,
    checked,
)
from reverie.memory_graph.errors import (
    ClosedError,
    EmbedderMismatchError,
    InternalError,
    ReverieError,
    StaleGenerationError,
    StorageError,
    UnavailableError,
    WaitTimeoutError,
)
from reverie.memory_graph.ids import Key, partition_of
from reverie.memory_graph.state import as_bytes
from reverie.models.protocol import Decider, Embedder, Extraction, Extractor, Float32, Turn
from reverie.models.recalled import extract_said
from reverie.models.rules.importance import is_worth_keeping, weighed
from reverie.models.rules.standing import held_when_said
from reverie.models.usage import Budget, charged_to, purpose

log = structlog.get_logger(__name__)

BATCH_TURNS = 32
MODELLED_TURNS = 4  # of a batch, with a language model: or seconds would pass before any is kept
SIMILAR = 10  # nearest memories that a candidate meets
UNREADABLE_SHARE = 0.5  # of unknown tokens, from which on a text is reported
LOCKS = 64
RETRY_S = 5.0  # until work that was postponed is tried again
MODEL_CALLS = 16  # of a language model for one turn, on an average over its batch

# No fault of the turns: their extraction is postponed, not counted as failed.
_POSTPONING = (ClosedError, EmbedderMismatchError, StorageError, UnavailableError)


class Mind(Protocol):
    """The models that the ingestor works with."""

    extractor: Extractor

    def embedder(self, world: str) -> Embedder:
        """Return the embedder of a world."""
        ...

    def decider(self, world: str) -> Decider:
        """Return the decider for a world (its thresholds depend on the embedder)."""
        ...

    def near_duplicate(self, world: str) -> float:
        """Return the cosine of a world's embedder from which on texts say the same."""
        ...


class IngestCounts(msgspec.Struct):
    """What the ingestor did since it began."""

    turns: int = 0
    memories: int = 0
    refused: int = 0  # decisions whose target was not offered, or no longer active
    failed: int = 0
    stale: int = 0  # outcomes discarded after a rewind
    unreadable: int = 0  # texts that the embedder mostly cannot read
    unimportant: int = 0  # statements below the least importance, that made no memory


Settled: TypeAlias = tuple[MemoryDraft, Decision | None]  # None: not worth keeping
Trace = Callable[[Key, dict[str, object]], None]
After = Callable[[Key], object]  # what it returns is true if it did something


class Ingestor:
    """Drains the outboxes through one background thread, or in the caller's when it waits."""

    def __init__(
        self,
        router: Router,
        mind: Mind,
        now: Callable[[str], float],
        *,
        background: bool = True,
        trace: Trace | None = None,
        after: After | None = None,
        batch_turns: int = BATCH_TURNS,
        least_importance: float = 0.0,
    ) -> None:
        """Begin; with `background`, work found in the outboxes is started at once. `after` is done
        for a user without pending turns, again as long as it did something. A statement below
        `least_importance` (0 to 1) is added only if it was asked for."""
        self._batch_turns = batch_turns
        self._least_importance = least_importance
        self.counts = IngestCounts()
        self.settled = SettledTurns()
        self._router = router
        self._mind = mind
        self._now = now
        self._trace = trace
        self._after = after
        self._locks = [threading.Lock() for _ in range(LOCKS)]  # one batch of a user at a time
        self._settling = [threading.Lock() for _ in range(LOCKS)]
        self._changed = threading.Condition()
        # Users to look after, and whether their turns are among it, or only what is `after` them.
        self._waiting: OrderedDict[Key, bool] = OrderedDict()
        self._postponed: dict[Key, ReverieError] = {}
        self._retry_at = 0.0  # when what is postponed is tried again, however busy it is then
        self._busy = 0
        self._closed = False
        self._thread: threading.Thread | None = None
        if background:
            self._thread = threading.Thread(target=self._run, name="reverie-ingest", daemon=True)
            self._thread.start()

    def wake(self, key: Key) -> None:
        """Let the background thread look after a user's pending turns."""
        if self._thread is None:
            return
        with self._changed:
            self._waiting[key] = True
            self._postponed.pop(key, None)
            self._changed.notify_all()

    def wake_all(self) -> None:
        """Find the users with pending turns on disk and wake them (after opening, a rewind)."""
        with self._changed:
            postponed = dict(self._postponed)
        pending = [
            Key(user.world, user.user_id)
            for found in self._router.everywhere(c.ListPending(limit=1_000_000, partial=True))
            for user in found
        ]
        with self._changed:
            for key, error in postponed.items():
                # Not waiting any more: it was done, and only the answer was lost.
                if self._postponed.get(key) is error:
                    del self._postponed[key]
        for key in pending:
            self.wake(key)

    def drain(
        self, key: Key, turn_ids: Sequence[str] = (), *, with_after: bool = True
    ) -> list[Kept]:
        """Work off a user's pending turns in this thread; return what became of the memories of
        `turn_ids`, also where another thread did those. What is done after turns is left to the
        background, if there is one."""
        while self._step(key):
            pass
        if self._after is not None and with_after:
            if self._thread is None:
                while self._do_after(key):
                    pass
            else:  # nobody waits for it; new turns are left to whoever waits for those
                with self._changed:
                    self._waiting.setdefault(key, False)
                    self._changed.notify_all()
        return self.settled.of(key, turn_ids)

    def wait(self, timeout_s: float | None = None) -> None:
        """Wait until the background thread has nothing left to do.

        Raises:
            WaitTimeoutError: work is left after `timeout_s` seconds; it goes on.
            ReverieError: why the work of a user had to be postponed; it is tried again later.
        """
        with self._changed:
            if not self._changed.wait_for(
                lambda: self._closed or (not self._waiting and not self._busy), timeout_s
            ):
                msg = f"extraction was not finished within {timeout_s:g} s; it goes on"
                raise WaitTimeoutError(msg)
            for error in self._postponed.values():
                raise error

    def close(self, within_s: float | None = None) -> bool:
        """Stop after the batch under way, or stop waiting for it after `within_s` seconds; what is
        left stays in the outbox. Returns whether nothing is under way in the background."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(within_s)
        return self._thread is None or not self._thread.is_alive()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._wait_for_work()
                if self._closed:
                    return
                key, has_turns = self._waiting.popitem(last=False)
                self._busy += 1
            more, error = False, None
            try:
                has_turns = has_turns and self._step(key)
                more = has_turns
                if not more:
                    more = self._do_after(key)
            except ReverieError as exc:
                error = exc
                if not self._closed:
                    log.warning("ingestion postponed", user_id=key.user_id, error=str(exc))
            except Exception as exc:  # noqa: BLE001 (the thread must go on)
                error = InternalError(f"{type(exc).__name__}: {exc}").because(exc)
                log.error("ingestion failed", user_id=key.user_id, trace=format_exc())
            with self._changed:
                self._busy -= 1
                if more:
                    self._waiting[key] = self._waiting.get(key, False) or has_turns
                elif error is not None:
                    if not self._postponed:
                        self._retry_at = time.monotonic() + RETRY_S
                    self._postponed[key] = error
                self._changed.notify_all()

    def _wait_for_work(self) -> None:
        """Wait until somebody waits, or this is closed; the lock of `_changed` is held."""
        while not self._closed:
            left_s = self._retry_at - time.monotonic()
            if self._postponed and left_s <= 0:
                for key in self._postponed:
                    self._waiting[key] = True
                self._postponed.clear()
            if self._waiting:
                return
            self._changed.wait(left_s if self._postponed else None)

    def _do_after(self, key: Key) -> bool:
        """Do what is to be done after a user's turns; return whether there may be more of it."""
        if self._after is None:
            return False
        with charged_to(key.world, key.user_id), purpose("summarise"):
            return bool(self._after(key))

    # -- one batch ---------------------------------------------------------------------

    def _step(self, key: Key) -> bool:
        """Do one batch of a user's turns; False when none is pending. One batch of a user is under
        way at a time, so turns are done in the order in which they were said."""
        with self._locks[partition_of(key, LOCKS)]:
            batch: c.TurnBatch = self._router.call(
                c.Turns(
                    world=key.world,
                    user_id=key.user_id,
                    now=self._now(key.world),
                    limit=self._batch_turns,
                )
            )
            if not batch.turns:
                return False
            self._mind.embedder(key.world)  # one that is missing is no fault of the turns
            try:
                self._settle(key, batch.generation, *self._work(key, batch))
            except _POSTPONING:
                raise
            except (Exception, SystemExit) as exc:  # noqa: BLE001 (whatever a model raises)
                log.error("extraction failed", user_id=key.user_id, trace=format_exc())
                self._failed(key, batch, exc)
            return True

    def _request_id(self) -> str | None:
        return uuid.uuid4().hex if self._router.backend.repeats else None

    @contextmanager
    def hold(self, key: Key) -> Iterator[None]:
        """Keep outcomes and traces of a user from being written within the block. Work under way
        goes on; its outcome is refused if the user is gone by then."""
        with self._settling[partition_of(key, LOCKS)]:
            yield

    def _settle(
        self, key: Key, generation: int, outcomes: Sequence[TurnOutcome], raw: dict[str, object]
    ) -> None:
        """Send the outcomes to the shard, and trace what they came from."""
        info = self._mind.embedder(key.world).info
        command = c.Settle(
            world=key.world,
            user_id=key.user_id,
            at=self._now(key.world),
            request_id=self._request_id(),
            embedder=info.id,
            dim=info.dim,
            generation=generation,
            outcomes=tuple(outcomes),
        )
        try:
            with self.hold(key):
                settled: c.Settled = self._router.call(command)
                if self._trace is not None:
                    self._trace(key, raw)
        except StaleGenerationError:
            self.counts.stale += len(outcomes)
            return
        self.settled.note(key, outcomes, settled.kept)
        self.counts.turns += len(outcomes)
        self.counts.memories += sum(k.op in {"ADD", "UPDATE"} for k in settled.kept)
        self.counts.refused += sum(k.refused is not None for k in settled.kept)

    def _failed(self, key: Key, batch: c.TurnBatch, error: BaseException) -> None:
        """A batch failed: try its turns one by one, and count a failure for those that fail."""
        for turn in batch.turns:
            single = msgspec.structs.replace(batch, turns=[turn])
            reason = error
            if len(batch.turns) > 1:
                try:
                    self._settle(key, batch.generation, *self._work(key, single))
                except _POSTPONING:
                    raise
                except (Exception, SystemExit) as exc:  # noqa: BLE001 (the turn is kept)
                    reason = exc
                else:
                    continue
            self.counts.failed += 1
            self.settled.drop(key, turn.id)
            log.warning("turn failed", user_id=key.user_id, turn=turn.id, error=str(reason))
            command = c.FailTurn(
                world=key.world,
                user_id=key.user_id,
                at=self._now(key.world),
                request_id=self._request_id(),
                generation=batch.generation,
                turn_id=turn.id,
                error=f"{type(reason).__name__}: {reason}"[:500],
            )
            try:
                self._router.call(command)
            except StaleGenerationError:
                self.counts.stale += 1

    def _work(self, key: Key, batch: c.TurnBatch) -> tuple[list[TurnOutcome], dict[str, object]]:
        """Do everything uncertain for a batch: vectors, extraction, decisions. Returns the outcomes
        and the raw parts, for a trace."""
        budget = Budget(batch.limits.calls, prompt_tokens=batch.limits.prompt_tokens)
        calls = MODEL_CALLS * len(batch.turns)
        with charged_to(key.world, key.user_id, calls=calls, budget=budget) as payer:
            done = self._work_charged(key, batch)
        if payer.refused and not batch.limits.is_spent:
            self._note_spent(key)
        return done

    def _note_spent(self, key: Key) -> None:
        """Say once that a user's turns are extracted by rules alone from now on."""
        log.warning("budget of the language model is spent", world=key.world, user_id=key.user_id)
        command = c.ModelSpent(world=key.world, user_id=key.user_id, at=self._now(key.world))
        with suppress(StaleGenerationError):  # the user was forgotten meanwhile
            self._router.call(command)

    def _work_charged(
        self, key: Key, batch: c.TurnBatch
    ) -> tuple[list[TurnOutcome], dict[str, object]]:
        embedder = self._mind.embedder(key.world)
        turns = [_turn(t) for t in batch.turns]
        vectors = embedder.embed([t.text for t in turns], "passage")
        self._report_unreadable(key, embedder, turns)
        history = [_turn(t) for t in batch.history]
        with purpose("extract"):
            extractions = extract_said(self._mind.extractor, turns, history)
        drafts = [
            _dated(d, t.said_at)
            for t, e in zip(turns, extractions, strict=True)
            for d in map(checked, e.memories)
        ]
        matrix = embedder.embed([d.text for d in drafts], "passage")
        drafts = [
            msgspec.structs.replace(d, vector=as_bytes(v))
            for d, v in zip(drafts, matrix, strict=True)
        ]
        settled = self._decide(key, drafts, matrix, self._similar(key, drafts))
        raw: dict[str, object] = {
            "turns": turns,
            "extractions": extractions,
            "decisions": [d or "too little importance" for _, d in settled],
        }
        return _outcomes(turns, extractions, vectors, settled), raw

    def _similar(self, key: Key, drafts: Sequence[MemoryDraft]) -> list[list[Known]]:
        """Return the stored memories that each draft meets."""
        if not drafts:
            return []
        found: list[list[Known]] = self._router.call(
            c.Similar(
                world=key.world,
                user_id=key.user_id,
                now=self._now(key.world),
                vectors=tuple(d.vector or b"" for d in drafts),
                slots=tuple(d.slot for d in drafts),
                limit=SIMILAR,
            )
        )
        return found

    def _decide(
        self,
        key: Key,
        drafts: Sequence[MemoryDraft],
        matrix: Float32,
        stored: Sequence[Sequence[Known]],
    ) -> list[Settled]:
        """Decide each draft against the stored memories and the earlier drafts of the batch, and
        weigh it by how new it is. What is decided comes first: a statement that replaces another
        resembles it, and is kept however little it weighs."""
        if not drafts:
            return []
        decider = self._mind.decider(key.world)
        embedder = self._mind.embedder(key.world)
        near_duplicate = self._mind.near_duplicate(key.world)
        settled: list[Settled] = []
        gone: set[str] = set()
        kept: list[tuple[int, int]] = []  # drafts, and their places among those that are sent
        for i, draft in enumerate(drafts):
            cosines = matrix[[j for j, _ in kept]] @ matrix[i] if kept else np.zeros(0, np.float32)
            fresh = [
                Known(f"#{place}", drafts[j].text, drafts[j].kind, drafts[j].slot, float(cosine))
                for (j, place), cosine in zip(kept, cosines, strict=True)
            ]
            known = [k for k in [*stored[i], *fresh] if k.id not in gone]
            known.sort(key=lambda k: (k.slot != draft.slot, -k.similarity))
            known = known[: SIMILAR + 2]
            with purpose("decide"):
                decision = decider.decide(draft, known)
            if decision.target is not None and all(k.id != decision.target for k in known):
                self.counts.refused += 1
                decision = Decision("ADD", None, f"refused: no memory {decision.target}")
            others = [k.similarity for k in known if k.id != decision.target]
            if others and _unknown_share(embedder, draft.text) > UNREADABLE_SHARE:
                others = []  # texts that it cannot read are all alike to it, and none is old news
            weighty = weighed(draft, others, near_duplicate)
            if decision.op == "ADD" and not is_worth_keeping(weighty, self._least_importance):
                self.counts.unimportant += 1
                settled.append((weighty, None))
                continue
            if decision.op in {"UPDATE", "DELETE"} and decision.target is not None:
                gone.add(decision.target)
            if decision.op in {"ADD", "UPDATE"}:
                kept.append((i, sum(d is not None for _, d in settled)))
            settled.append((weighty, decision))
        return settled

    def _report_unreadable(self, key: Key, embedder: Embedder, turns: Sequence[Turn]) -> None:
        for turn in turns:
            share = _unknown_share(embedder, turn.text)
            if share > UNREADABLE_SHARE:
                self.counts.unreadable += 1
                if self.counts.unreadable == 1:
                    log.warning(
                        "the world's embedder cannot read this text; words and names still work",
                        world=key.world,
                        embedder=embedder.info.id,
                        unknown_tokens=f"{share:.0%}",
                        way_out="use embedder='multilingual' for this world (reembed migrates it)",
                    )


def _unknown_share(embedder: Embedder, text: str) -> float:
    return 0.0 if text.isascii() else embedder.unknown_share(text)


def _turn(view: c.TurnView) -> Turn:
    return Turn(view.id, view.speaker, view.role, view.text, view.said_at)


def _dated(draft: MemoryDraft, said_at: float) -> MemoryDraft:
    """Return a draft with the time from which it holds: when it was said, unless it names one."""
    if draft.valid_from is None:
        return msgspec.structs.replace(draft, valid_from=said_at)
    if draft.held_at is None and held_when_said(draft.text, draft.valid_from, said_at):
        return msgspec.structs.replace(draft, held_at=said_at)
    return draft


def _outcomes(
    turns: Sequence[Turn],
    extractions: Sequence[Extraction],
    vectors: Float32,
    settled: Sequence[Settled],
) -> list[TurnOutcome]:
    outcomes: list[TurnOutcome] = []
    start = 0
    for turn, extraction, vector in zip(turns, extractions, vectors, strict=True):
        stop = start + len(extraction.memories)
        kept = [(draft, decision) for draft, decision in settled[start:stop] if decision]
        outcomes.append(
            TurnOutcome(
                turn.id,
                "extracted",
                as_bytes(vector),
                extraction.entities,
                tuple(draft for draft, _ in kept),
                tuple(decision for _, decision in kept),
            )
        )
        start = stop
    return outcomes
