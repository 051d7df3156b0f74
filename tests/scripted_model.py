"""A language model that says what a test tells it, and keeps what it was asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from reverie.memory_graph.errors import ReverieError
from reverie.models.grammar import check_grammar
from reverie.models.protocol import ChatMessage, Completion, LanguageModelInfo

Answer = str | ReverieError


class Asked(msgspec.Struct, frozen=True):
    """One call: the prompt as one text, its messages, and how it was held."""

    text: str
    messages: tuple[ChatMessage, ...]
    grammar: str | None
    adapter: str | None
    max_tokens: int


class ScriptedModel:
    """Gives the answers in turn, the last one for ever; an error in the script is raised.

    Grammars are checked as the real model does, and a prompt that does not fit is a failed test. A
    token is four characters, or one of another script.
    """

    def __init__(
        self,
        *answers: Answer,
        rows: Callable[[str], Sequence[float]] | None = None,
        parameters: int = 1_500_000_000,
        context_tokens: int = 4096,
        has_chat_template: bool = True,
    ) -> None:
        self.info = LanguageModelInfo("scripted:1", context_tokens, parameters, has_chat_template)
        self.asked: list[Asked] = []
        self.weighed: list[str] = []
        self._answers = list(answers)
        self._rows = rows

    def complete(
        self,
        prompt: str | Sequence[ChatMessage],
        *,
        max_tokens: int,
        grammar: str | None = None,
        stop: Sequence[str] = (),
        adapter: str | None = None,
    ) -> Completion:
        """Return the next answer."""
        messages = () if isinstance(prompt, str) else tuple(prompt)
        text = prompt if isinstance(prompt, str) else "\n".join(m.content for m in messages)
        if grammar is not None:
            check_grammar(grammar)
        used = self.count_tokens(text)
        assert used + max_tokens <= self.info.context_tokens, "the prompt does not fit"
        self.asked.append(Asked(text, messages, grammar, adapter, max_tokens))
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, ReverieError):
            raise answer
        return Completion(answer, used, self.count_tokens(answer), is_whole=True)

    def choose(
        self,
        prompts: Sequence[str],
        choices: Sequence[str],
        *,
        adapter: str | None = None,
    ) -> list[list[float]]:
        """Return the rows that the script has for the prompts, or raise its error."""
        assert adapter == "pair"
        self.weighed += prompts
        if self._rows is None:
            error = self._answers[0]
            assert isinstance(error, ReverieError)
            raise error
        return [list(self._rows(prompt)) for prompt in prompts]

    def count_tokens(self, text: str) -> int:
        """Return about a quarter of the Latin characters and all others."""
        return sum(1 if ord(char) > 0x2E80 else 0.25 for char in text).__ceil__()

    def close(self) -> None:
        """Do nothing."""
