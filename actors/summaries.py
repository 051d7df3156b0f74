"""Summaries in the background: what is due, its text, its vector, and one command that keeps it.

The shard says what is due and gives the material, chosen and bounded there; the text and the vector
are made here; then the shard keeps them, unless the user was rewound, or what they were made of has
changed or been put away meanwhile. Nothing is noted anywhere else: after a crash the same is due.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from traceback import format_exc
from typing import Protocol

import msgspec
import structlog

from reverie.actors import commands as c
from reverie.actors.backend import Router
from reverie.memory_graph import gist
from reverie.memory_graph.errors import (
    ModelFailedError,
    ModelTimeoutError,
    StaleGenerationError,
    UnknownMemoryError,
)
from reverie.memory_graph.ids import Key
from reverie.memory_graph.material import Material
from reverie.memory_graph.profile import Profile
from reverie.memory_graph.state import as_bytes
from reverie.memory_graph.summaries import SummaryPolicy
from reverie.models.protocol import Embedder
from reverie.models.summarise import CentralSentences, Summariser, Summary, has_dates
from reverie.models.usage import Budget, charged_to, purpose

log = structlog.get_logger(__name__)


class SummaryMind(Protocol):
    """The models that summaries need."""

    summariser: Summariser

    def embedder(self, world: str) -> Embedder:
        """Return the embedder of a world."""
        ...


class SummaryCounts(msgspec.Struct):
    """What became of summaries since the runtime was opened."""

    kept: int = 0
    stale: int = 0  # discarded: what they were made of had changed meanwhile
    failed: int = 0  # the summariser or the embedder raised, or found nothing to tell


class SummaryKeeper:
    """Makes the summaries that are due, a few at a time."""

    def __init__(
        self,
        router: Router,
        mind: SummaryMind,
        now: Callable[[str], float],
        policy: SummaryPolicy,
    ) -> None:
        """Begin; `policy` says what is due in the background."""
        self.counts = SummaryCounts()
        self.policy = policy
        self._router = router
        self._mind = mind
        self._now = now

    def step(self, key: Key, policy: SummaryPolicy | None = None) -> str | None:
        """Make the next summary of a user that is due and can be made; return its id, None when
        there is none.

        Args:
            key: whose.
            policy: what is due; by default that of the background.

        Raises:
            ReverieError: the shard or the embedder cannot be reached, or the disk failed.
        """
        start, asked = 0, policy or self.policy
        while True:
            batch: c.Materials = self._router.call(
                c.DueSummaries(
                    world=key.world,
                    user_id=key.user_id,
                    now=self._now(key.world),
                    policy=asked,
                    start=start,
                )
            )
            if batch.reflect:  # once it has begun, none is due
                self._router.call(self.reflection(key, asked.reflect_at))
                continue
            start += batch.passed
            if batch.found is not None:
                if (summary_id := self._keep(key, batch.generation, batch.found)) is not None:
                    return summary_id
                start += 1  # the others may still be made
            elif batch.is_last:
                return None

    def reflection(
        self,
        key: Key,
        reflect_at: float | None,
        *,
        force: bool = False,
        request_id: str | None = None,
    ) -> c.Reflect:
        """Return the command that begins a reflection of a user if one is due."""
        if request_id is None and self._router.backend.repeats:
            request_id = uuid.uuid4().hex
        return c.Reflect(
            world=key.world,
            user_id=key.user_id,
            at=self._now(key.world),
            request_id=request_id,
            reflect_at=reflect_at,
            force=force,
        )

    def _keep(self, key: Key, generation: int, material: Material) -> str | None:
        made = self.made(key, material)
        if made is None or not made.text.strip() or not made.sources:
            self.counts.failed += 1
            return None
        embedder = self._mind.embedder(key.world)
        try:
            vector = embedder.embed([made.text], "passage")[0]
        except (ModelFailedError, ModelTimeoutError) as exc:
            log.warning("summary not embedded", user_id=key.user_id, error=str(exc))
            self.counts.failed += 1
            return None
        is_gist = material.subject == gist.SUBJECT
        sources = [material.sources[i] for i in made.sources]
        if is_gist or material.order > 1:  # it takes in, or counts, all, whatever it shows
            sources = list(material.sources)
        command = c.Summarise(
            world=key.world,
            user_id=key.user_id,
            at=self._now(key.world),
            request_id=uuid.uuid4().hex if self._router.backend.repeats else None,
            embedder=embedder.info.id,
            dim=embedder.info.dim,
            text=made.text,
            session=material.name if material.subject == "session" else None,
            topic=material.name if material.subject == "topic" else None,
            sources=tuple(source.id for source in sources),
            stamps=tuple(source.stamp for source in sources),
            from_at=material.from_at,
            to_at=material.to_at,
            vector=as_bytes(vector),
            generation=generation,
            covers=material.covers,
            follows=None if is_gist else material.follows,
            gist=is_gist,
            order=material.order,
            focus=material.focus or None,
        )
        try:
            summary_id: str = self._router.call(command)
        except (StaleGenerationError, UnknownMemoryError):
            self.counts.stale += 1
            return None
        self.counts.kept += 1
        return summary_id

    def _summariser(self, material: Material) -> Summariser:
        """What has faded costs no model call: it is told by its central sentences."""
        ours = self._mind.summariser
        if material.subject != gist.SUBJECT or isinstance(ours, CentralSentences):
            return ours
        return CentralSentences()

    def _limits(self, key: Key) -> Budget | None:
        """Return what a user's profile says of model calls, if any will be made."""
        if isinstance(self._mind.summariser, CentralSentences):
            return None
        asked = c.GetProfile(world=key.world, user_id=key.user_id, now=self._now(key.world))
        profile: Profile | None = self._router.call(asked)
        if profile is None:
            return None
        return Budget(profile.model_calls, prompt_tokens=profile.prompt_tokens)

    def made(self, key: Key, material: Material) -> Summary | None:
        """Return the text for a material, None when the summariser raised anything."""
        limits = self._limits(key)
        dated = has_dates(self._now(key.world))
        material = msgspec.structs.replace(material, is_dated=dated)
        try:
            with charged_to(key.world, key.user_id, budget=limits), purpose("summarise"):
                return self._summariser(material).summarise(material)
        except Exception:  # noqa: BLE001 (whatever somebody else's code raises)
            log.error("summary failed", user_id=key.user_id, trace=format_exc())
            return None
