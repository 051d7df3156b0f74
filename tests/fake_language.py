"""A language model of a few lines for tests: it answers by a script, fails and delays on demand."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Self

from reverie.memory_graph.errors import ClosedError
from reverie.models.language import Weighed
from reverie.models.protocol import ChatMessage, Completion, LanguageModelInfo

Script = Callable[[str], str | Exception]


def text_of(prompt: str | Sequence[ChatMessage]) -> str:
    """A prompt as one text; messages as lines of `role: content`."""
    if isinstance(prompt, str):
        return prompt
    return "\n".join(f"{message.role}: {message.content}" for message in prompt)


class FakeLanguageModel:
    """A `HostedModel`. A word or a Chinese character is a token.

    `script` gets each prompt and returns the answer, or an error that is raised. `calls` are the
    prompts so far. `choose` finds the first choice that stands in the prompt the most likely.
    """

    def __init__(self, script: Script, *, delay_s: float = 0.0, context_tokens: int = 2048) -> None:
        self.info = LanguageModelInfo("scripted:1", context_tokens, 0, has_chat_template=True)
        self.calls: list[str] = []
        self.cleared = 0
        self._script = script
        self._delay_s = delay_s
        self._closed = False

    def _answer(self, prompt: str) -> str:
        if self._closed:
            msg = "closed"
            raise ClosedError(msg)
        self.calls.append(prompt)
        time.sleep(self._delay_s)
        answer = self._script(prompt)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def complete(
        self,
        prompt: str | Sequence[ChatMessage],
        *,
        max_tokens: int,
        grammar: str | None = None,
        stop: Sequence[str] = (),
        adapter: str | None = None,
    ) -> Completion:
        words = self._answer(text_of(prompt)).split()
        text = " ".join(words[:max_tokens])
        return Completion(
            text, self.count_prompt(prompt), min(len(words), max_tokens), len(words) <= max_tokens
        )

    def choose(
        self, prompts: Sequence[str], choices: Sequence[str], *, adapter: str | None = None
    ) -> list[list[float]]:
        return self.weigh(prompts, choices, adapter=adapter).rows

    def weigh(
        self, prompts: Sequence[str], choices: Sequence[str], *, adapter: str | None = None
    ) -> Weighed:
        rows = []
        for prompt in prompts:
            self._answer(prompt)
            best = next((i for i, choice in enumerate(choices) if choice in prompt), 0)
            rows.append(
                [0.9 if i == best else 0.1 / (len(choices) - 1) for i in range(len(choices))]
            )
        return Weighed(rows, sum(map(self.count_tokens, prompts)))

    def count_tokens(self, text: str) -> int:
        return len(text.split()) + sum("\u4e00" <= char <= "\u9fff" for char in text)

    def count_prompt(self, prompt: str | Sequence[ChatMessage]) -> int:
        return self.count_tokens(text_of(prompt))

    def clear(self) -> None:
        self.cleared += 1

    def close(self) -> None:
        self._closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
