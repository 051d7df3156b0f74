"""What the demonstration is about: two conversations, and questions about them."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from reverie.formats import read_turns
from reverie.memory_graph.drafts import TurnDraft
from reverie.memory_graph.errors import InvalidValueError

if TYPE_CHECKING:
    from reverie.memory_graph.views import Hit

TOP = 5  # hits in which an answer must stand
_QUESTIONS = "questions.json"


class Question(msgspec.Struct, frozen=True):
    """A question, and words that all stand in what answers it; see examples/data/README.md."""

    id: str
    kind: str
    question: str
    answer: str
    keywords: list[str]
    as_of: str | None = None


class Change(msgspec.Struct, frozen=True):
    """A fact that changes: what is said, how it is corrected, and a question about it."""

    said: str
    corrected: str
    question: str


class Story(msgspec.Struct, frozen=True):
    """A conversation for a world of its own. All its turns have times."""

    world: str
    user: str
    embedder: str
    turns: list[TurnDraft]
    questions: list[Question]
    change: Change

    def shown_questions(self) -> list[Question]:
        """Return the first question of each kind."""
        return list({q.kind: q for q in reversed(self.questions)}.values())[::-1]


class _Entry(msgspec.Struct):
    """The questions about one file. `file` and `user` are as in examples/data/README.md."""

    file: str
    user: str
    questions: list[Question]


_EMBEDDERS = {"english": "minilm", "chinese": "multilingual"}
_CHANGES = {
    "english": Change(
        said="I live in Newport now, we moved on Friday.",
        corrected="User lives in Newport now, in a house by the river Usk",
        question="Where do I live now?",
    ),
    "chinese": Change(
        said="我现在住在鼓浪屿，上周刚搬过来。",
        corrected="用户现在住在鼓浪屿的码头旁边",
        question="我现在住在哪里？",
    ),
}
MODELS = tuple(_EMBEDDERS.values())


def load_stories(
    english: Path | None, chinese: Path | None, *, embedder: str | None
) -> list[Story]:
    """Read the two stories.

    Args:
        english: the conversation file; None takes the repository's.
        chinese: the same.
        embedder: of both; None gives each the one for its language.

    Raises:
        InvalidValueError: a file is not there, or is not what it should be.
    """
    files = {"english": english, "chinese": chinese}
    return [
        _load(world, example_file(f"{world}.jsonl") if file is None else file, embedder)
        for world, file in files.items()
    ]


def example_file(name: str) -> Path:
    """Return the path of a file of the examples, which come with the repository.

    Raises:
        InvalidValueError: they are not there.
    """
    import reverie

    folder = Path(reverie.__file__).resolve().parent.parent / "examples" / "data"
    if not (folder / name).is_file():
        msg = (
            f"the example conversation {name} is not in {folder}: it comes with the repository, "
            "not with the package. Name the files with --english and --chinese; questions.json "
            "is looked for beside them"
        )
        raise InvalidValueError(msg, path=str(folder))
    return folder / name


def _load(world: str, file: Path, embedder: str | None) -> Story:
    questions = file.parent / _QUESTIONS
    try:
        entry = msgspec.json.decode(questions.read_bytes(), type=dict[str, _Entry])[world]
    except OSError as exc:
        msg = f"the questions about {file.name} cannot be read: {exc}"
        raise InvalidValueError(msg, file=str(questions)).because(exc) from None
    except (msgspec.MsgspecError, KeyError) as exc:
        msg = f"{questions} holds no questions about {world!r} as they should be: {exc}"
        raise InvalidValueError(msg, file=str(questions)).because(exc) from None
    turns = [record.turn for record in read_turns(file)]
    if missing := [t.external_id for t in turns if t.said_at is None]:
        msg = f"{file}: the demonstration follows the time of turns, and {missing[0]!r} has none"
        raise InvalidValueError(msg, file=str(file))
    return Story(
        world=world,
        user=entry.user,
        embedder=embedder or _EMBEDDERS[world],
        turns=turns,
        questions=entry.questions,
        change=_CHANGES[world],
    )


def told_in_order(stories: Sequence[Story]) -> Iterator[tuple[float, Story, TurnDraft]]:
    """Yield the time, story and turn of all turns, as they happened."""

    def timed(story: Story) -> Iterator[tuple[float, Story, TurnDraft]]:
        for turn in story.turns:
            yield turn.said_at or 0.0, story, turn

    return heapq.merge(*map(timed, stories), key=lambda told: told[0])


def is_answered(question: Question, hits: Sequence[Hit]) -> bool:
    """Return whether all keywords stand in the first hits, whatever their case."""
    found = "\n".join(hit.text for hit in hits[:TOP]).casefold()
    return all(word.casefold() in found for word in question.keywords)
