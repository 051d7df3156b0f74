"""Language model hosts on Ray: each an actor that has the model in a child process.

The child (`models/host.py`) tells a fault of llama.cpp from a kill, and ends a call that takes too
long without ending the actor. When the actor itself dies, its child ends with it, Ray starts both
anew, and the client makes the call again, of the next host: a call has no effects.
"""

from __future__ import annotations

import itertools
import os
import threading
import time
from contextlib import suppress
from typing import Any, Self, TypeVar

import msgspec
import ray
import structlog
from ray import exceptions as ray_errors

from reverie.actors.ray_backend import is_of_ray
from reverie.memory_graph.errors import (
    ClosedError,
    ModelFailedError,
    ModelUnavailableError,
    OverloadedError,
    ReverieError,
)
from reverie.models.host import ProcessLanguageModel
from reverie.models.host_calls import HostCalls, answer_in, carry_out
from reverie.models.host_wire import Clear, Open, Reply, Request, encoded
from reverie.models.language import LanguageSettings
from reverie.models.protocol import LanguageModelInfo

log = structlog.get_logger(__name__)

T = TypeVar("T")

QUEUE_S = 600.0  # that a call may wait for others, besides its own time
FIRST_PAUSE_S = 0.05
LAST_PAUSE_S = 1.0

_requests = msgspec.msgpack.Decoder(Request)


class LanguageActor:
    """What runs in the actor. Its errors travel as values."""

    def __init__(self, settings: bytes) -> None:
        """Start the host. An error is left to the first call, which tries again: Ray does not start
        an actor again whose `__init__` raised."""
        self._settings = msgspec.msgpack.decode(settings, type=LanguageSettings)
        self._model: ProcessLanguageModel | None = None
        with suppress(Exception):
            self._open()

    def _open(self) -> ProcessLanguageModel:
        if self._model is None:
            self._model = ProcessLanguageModel(self._settings)
        return self._model

    def call(self, data: bytes) -> bytes:
        """Carry out an encoded request and return the encoded reply."""
        try:
            answer = carry_out(self._open(), _requests.decode(data))
            reply = Reply(msgspec.Raw(msgspec.msgpack.encode(answer)))
        except ReverieError as exc:
            reply = Reply(error=exc.to_wire())
        return encoded(reply)

    def pids(self) -> tuple[int, int | None]:
        """Return the process ids of the actor, and of its host if there is one."""
        return os.getpid(), None if self._model is None else self._model.pid


class RayLanguageModel(HostCalls):
    """A `HostedModel` whose calls go to one of several actors in turn. Ray must be running."""

    def __init__(self, settings: LanguageSettings, *, hosts: int) -> None:
        """Start `hosts` actors, each with its own copy of the model.

        Args:
            settings: of each host; its paths are the same on every node.
            hosts: how many, at least 1.

        Raises:
            ModelError, ConfigError: the model cannot be opened there.
            ModelUnavailableError: no host starts.
        """
        self._settings = settings
        actor_class: Any = ray.remote(LanguageActor)
        self.actors: list[Any] = [
            actor_class.options(
                num_cpus=0,
                max_restarts=-1,
                max_task_retries=0,
                max_pending_calls=settings.max_waiting,
                scheduling_strategy="SPREAD",
            ).remote(msgspec.msgpack.encode(settings))
            for _ in range(hosts)
        ]
        self._turns = itertools.count()
        self._lock = threading.Lock()
        try:
            self._info = self._call(Open(settings), LanguageModelInfo)
        except BaseException:
            self.close()
            raise

    @property
    def info(self) -> LanguageModelInfo:
        """Identity and bounds."""
        return self._info

    def clear(self) -> None:
        """Forget, in every host, what is kept of earlier prompts. Raises as `complete`."""
        data = encoded(Clear())
        for actor in list(self.actors):
            answer_in(self._insist(data, actor), type(None))

    def close(self) -> None:
        """Stop the actors; calls under way raise ClosedError."""
        with self._lock:
            actors, self.actors = self.actors, []
        for actor in actors:
            with suppress(ray_errors.RayError):
                ray.kill(actor, no_restart=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _call(self, request: Request, kind: type[T]) -> T:
        return answer_in(self._insist(encoded(request)), kind)

    def _insist(self, data: bytes, only: Any = None) -> bytes:
        """Return the reply, asking one host after the other while they restart, or `only` one."""
        settings = self._settings
        until = time.monotonic() + settings.retry_s
        most_s = settings.call_timeout_s + settings.retry_s + settings.start_timeout_s + QUEUE_S
        pause = FIRST_PAUSE_S
        while True:
            try:
                reply: bytes = ray.get(self._send(data, only), timeout=most_s)
            except ray_errors.PendingCallsLimitExceeded as exc:
                msg = f"{settings.max_waiting} calls wait for a language model host"
                raise OverloadedError(msg) from exc
            except ray_errors.GetTimeoutError as exc:
                msg = f"a language model host did not answer within {most_s:g} s"
                raise ModelUnavailableError(msg) from exc
            except ray_errors.RayError as exc:
                if isinstance(exc, ray_errors.RayTaskError) and not is_of_ray(exc):
                    msg = f"a language model host raised {type(exc.cause).__name__}: {exc.cause}"
                    raise ModelFailedError(msg) from exc
                if time.monotonic() + pause > until:
                    msg = (
                        f"no language model host answered within {settings.retry_s:g} s: "
                        f"{type(exc).__name__}"
                    )
                    raise ModelUnavailableError(msg) from exc
                log.warning("language model host unavailable, repeating", error=type(exc).__name__)
                time.sleep(pause)
                pause = min(2 * pause, LAST_PAUSE_S)
            else:
                return reply

    def _send(self, data: bytes, only: Any) -> Any:
        with self._lock:
            if not self.actors:
                msg = "the language model was closed"
                raise ClosedError(msg)
            actor = only or self.actors[next(self._turns) % len(self.actors)]
        return actor.call.remote(data)
