"""The calls of a language model as requests, and requests as calls: both ends of `host_wire.py`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import msgspec

from reverie.memory_graph.errors import ReverieError
from reverie.models.host_wire import Answer, Clear, Complete, Count, Open, Reply, Request, Weigh
from reverie.models.language import HostedModel, Weighed
from reverie.models.protocol import ChatMessage, Completion

T = TypeVar("T")

_replies = msgspec.msgpack.Decoder(Reply)


class HostCalls:
    """The methods of a `HostedModel` whose host is elsewhere, over one that sends a request."""

    def _call(self, request: Request, kind: type[T]) -> T:
        """Send a request and return its answer."""
        raise NotImplementedError

    def complete(
        self,
        prompt: str | Sequence[ChatMessage],
        *,
        max_tokens: int,
        grammar: str | None = None,
        stop: Sequence[str] = (),
        adapter: str | None = None,
    ) -> Completion:
        """Return the most likely continuation; see `LanguageModel.complete`.

        Raises:
            ModelTimeoutError: it took longer than `call_timeout_s`.
            ModelFailedError: the model failed, or its process ended twice over this call.
            ModelUnavailableError: no host within `retry_s`.
            OverloadedError: too many calls wait for this host.
            InvalidValueError, ClosedError: as `LanguageModel.complete`.
        """
        text, messages = _split(prompt)
        request = Complete(max_tokens, text, messages, grammar, tuple(stop), adapter)
        return self._call(request, Completion)

    def choose(
        self, prompts: Sequence[str], choices: Sequence[str], *, adapter: str | None = None
    ) -> list[list[float]]:
        """Return the probability of each choice; see `LanguageModel.choose`. Raises as
        `complete`."""
        return self.weigh(prompts, choices, adapter=adapter).rows

    def weigh(
        self, prompts: Sequence[str], choices: Sequence[str], *, adapter: str | None = None
    ) -> Weighed:
        """Do as `choose`, and tell how many tokens the prompts had."""
        return self._call(Weigh(tuple(prompts), tuple(choices), adapter), Weighed)

    def count_tokens(self, text: str) -> int:
        """Return how many tokens `text` has, without special tokens. Raises as `complete`."""
        return self._call(Count(text), int)

    def count_prompt(self, prompt: str | Sequence[ChatMessage]) -> int:
        """Return how many tokens a prompt has, all counted. Raises as `complete`."""
        text, messages = _split(prompt)
        return self._call(Count(text, messages, is_prompt=True), int)

    def clear(self) -> None:
        """Forget what is kept of earlier prompts. Raises as `complete`."""
        self._call(Clear(), type(None))


def carry_out(model: HostedModel, request: Request) -> Answer:
    """Do in a host what a request asks for; raises what the model raises."""
    match request:
        case Complete(max_tokens, text, messages, grammar, stop, adapter):
            return model.complete(
                messages if text is None else text,
                max_tokens=max_tokens,
                grammar=grammar,
                stop=stop,
                adapter=adapter,
            )
        case Weigh(prompts, choices, adapter):
            return model.weigh(prompts, choices, adapter=adapter)
        case Count(text, messages, is_prompt) if is_prompt:
            return model.count_prompt(messages if text is None else text)
        case Count(text):
            return model.count_tokens(text or "")
        case Clear():
            model.clear()
            return None
        case Open():
            return model.info


def answer_in(data: bytes, kind: type[T]) -> T:
    """Return the answer that a reply holds; raises the error that it holds."""
    reply = _replies.decode(data)
    if reply.error is not None:
        raise ReverieError.from_wire(reply.error)
    answer: T = msgspec.msgpack.decode(reply.value, type=kind)
    return answer


def _split(prompt: str | Sequence[ChatMessage]) -> tuple[str | None, tuple[ChatMessage, ...]]:
    return (prompt, ()) if isinstance(prompt, str) else (None, tuple(prompt))
