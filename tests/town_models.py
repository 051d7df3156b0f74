"""Language models of a few lines that direct a town in tests."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from fake_language import FakeLanguageModel

from reverie.models.language import Weighed
from reverie.models.protocol import LanguageModelInfo
from reverie.town.scene import SILENT

LARGE, SMALL_SIZE = 3_000_000_000, 135_000_000  # parameters


class Leaning(FakeLanguageModel):
    """A small model that likes some verbs; in stories of others it likes `plain` ones."""

    def __init__(self, likes: dict[str, float], plain: dict[str, float] | None = None) -> None:
        super().__init__(lambda _: "")
        self.info = LanguageModelInfo("small:1", 2048, SMALL_SIZE, has_chat_template=True)
        self.likes, self.plain = likes, plain or {}

    def weigh(
        self, prompts: Sequence[str], choices: Sequence[str], *, adapter: str | None = None
    ) -> Weighed:
        rows = []
        for prompt in prompts:
            self._answer(prompt)
            likes = self.plain if "Anna" in prompt else self.likes
            row = [likes.get(choice.strip(), 0.01) for choice in choices]
            rows.append([share / sum(row) for share in row])
        return Weighed(rows, len(prompts))


def chooses(*liked: str, words: bool = True) -> Callable[[str], str]:
    """An answer that takes the first of these that may happen, in words of its own."""

    def answer(prompt: str) -> str:
        if '{"hour"' not in prompt:  # it is asked what somebody thinks
            return next(line for line in prompt.splitlines() if line.startswith("- "))[2:]
        shown = json.loads(prompt[prompt.index('{"hour"') :])
        key = next((key for key in liked if key in shown["choices"]), SILENT)
        text = shown["choices"][key]
        said = f"看啊，{text}" if "你在导演" in prompt else f"Before all, {text}"
        return json.dumps({"choice": key, "words": said} if words else {"choice": key})

    return answer


def large(script: Callable[[str], str | Exception]) -> FakeLanguageModel:
    model = FakeLanguageModel(script)
    model.info = LanguageModelInfo("large:1", 4096, LARGE, has_chat_template=True)
    return model
