"""Decay re-ranks and never hides: over 242 days of talk, and where what is true has changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest
from support import DAY, START, Home, opened

import reverie
from reverie import SimulatedClock
from reverie.actors import reads
from reverie.memory_graph import decay
from reverie.memory_graph.search import Query
from reverie.memory_graph.signals import WEIGHTS

DAYS = 242
CUT = 10

# One talk each: (who begins, a line, the line that is asked for, a line, the question).
TALKS: list[tuple[str, str, str, str, str]] = [
    (
        "Ana",
        "How was the trip up north?",
        "We slept two nights in the lighthouse keeper's cottage.",
        "That must have been windy.",
        "Where did Bo sleep on the trip up north?",
    ),
    (
        "Bo",
        "Did you settle on a name for the kitten?",
        "Yes, we call her Pepper, for her grey spots.",
        "Lovely, that suits her.",
        "What is the name of Ana's kitten?",
    ),
    (
        "Ana",
        "Any news from the choir?",
        "I sing the second tenor in the spring concert.",
        "Keep me a ticket!",
        "What does Bo sing in the choir?",
    ),
    (
        "Bo",
        "You look tired today.",
        "The heating broke, so I sat up with the plumber until midnight.",
        "Oh dear, I hope that it works again.",
        "Why did Ana sit up until midnight with the plumber?",
    ),
    (
        "Ana",
        "What are you baking?",
        "A walnut cake after my grandmother's recipe.",
        "Save me a slice.",
        "Which cake did Bo bake after a recipe?",
    ),
    (
        "Bo",
        "Are you still learning the cello?",
        "I changed to the viola in the end.",
        "A warmer sound, I always thought.",
        "Which instrument did Ana change to?",
    ),
    (
        "Ana",
        "Who won the chess evening?",
        "My neighbour Henrik beat all of us.",
        "He always does.",
        "Who won the chess evening?",
    ),
    (
        "Bo",
        "Did the parcel arrive?",
        "It did, but both of the blue mugs were broken.",
        "I will send you new ones.",
        "What was broken in the parcel?",
    ),
    (
        "Ana",
        "How is your knee?",
        "The doctor says that I must not run for six weeks.",
        "Then we shall swim.",
        "How long must Bo not run, by what the doctor says?",
    ),
    (
        "Bo",
        "What did you see at the harbour?",
        "A three-masted ship from Portugal had come in.",
        "I should have come along.",
        "Which ship did Ana see at the harbour?",
    ),
    (
        "小明",
        "你妹妹最近怎么样？",
        "她在成都开了一家书店。",
        "真好，下次去看看。",
        "妹妹在哪里开了书店？",
    ),
    (
        "Ana",
        "Did you finish the novel?",
        "No, I gave up after the chapter about whaling.",
        "Everyone does.",
        "Where did Bo give up the novel?",
    ),
    (
        "Bo",
        "Is the garden ready?",
        "I have planted beans along the southern wall.",
        "They like it warm there.",
        "What did Ana plant along the southern wall?",
    ),
    (
        "Ana",
        "Have you found a flat?",
        "A small one above the bakery in Mill Lane.",
        "So you will wake up to the smell of bread.",
        "Where is the flat that Bo found?",
    ),
    (
        "小明",
        "周末去爬山了吗？",
        "爬了黄山，看到了云海。",
        "照片发给我吧。",
        "爬了哪座山，看到了什么？",
    ),
    (
        "Bo",
        "How did the interview go?",
        "They offered me the post in the map archive.",
        "Congratulations!",
        "Which post did they offer Ana after the interview?",
    ),
    (
        "Ana",
        "What happened to your bicycle?",
        "Somebody stole the front wheel at the station.",
        "How annoying.",
        "What was stolen from Bo's bicycle at the station?",
    ),
    (
        "Bo",
        "Are the bees all right?",
        "One hive swarmed, and I caught it in the pear tree.",
        "I would have run away.",
        "Where did Ana catch the hive that swarmed?",
    ),
    (
        "小明",
        "新工作顺利吗？",
        "顺利，我在图书馆修复古籍。",
        "那很适合你。",
        "新工作是在图书馆做什么？",
    ),
    (
        "Ana",
        "Did your brother marry?",
        "He did, in a chapel on the island, in the rain.",
        "Rain brings luck.",
        "Where did Bo's brother marry?",
    ),
    (
        "Bo",
        "Which colour did you choose for the kitchen?",
        "A pale yellow, like butter.",
        "Bright in the mornings, then.",
        "Which colour did Ana choose for the kitchen?",
    ),
    (
        "Ana",
        "Do you still collect stamps?",
        "I sold the album to pay for the piano.",
        "You will not miss it.",
        "Why did Bo sell the album of stamps?",
    ),
    (
        "小明",
        "晚饭吃了什么？",
        "我做了番茄炒蛋，放多了糖。",
        "下次少放一点。",
        "晚饭的番茄炒蛋放多了什么？",
    ),
    (
        "Bo",
        "How was the northern film?",
        "Slow, but the scene on the ice made me cry.",
        "I felt the same.",
        "Which scene of the film made Ana cry?",
    ),
    (
        "Ana",
        "Has the dog learned anything?",
        "He fetches my slippers, and then he eats them.",
        "A clever dog.",
        "What does Bo's dog do with the slippers?",
    ),
    (
        "Bo",
        "Where will you spend the holidays?",
        "With my aunt Irma in the vineyards.",
        "Bring a bottle back.",
        "With whom will Ana spend the holidays?",
    ),
]
CHATTER = [
    ("Good morning!", "Good morning, did you sleep well?", "Well enough, thank you."),
    ("It rains again.", "It does, all week.", "The ducks are pleased."),
    ("Shall we meet later?", "Gladly, after lunch.", "See you then."),
    ("I am late, sorry.", "No matter, I was reading.", "Thank you for waiting."),
    ("今天天气不错。", "是啊，很暖和。", "出去走走吧。"),
    ("What a day.", "Tell me about it.", "Some other time."),
]


def conversation() -> list[dict[str, Any]]:
    """Return the turns, over 242 days: each talk, and chatter between."""
    turns: list[dict[str, Any]] = []
    step = DAYS * DAY / (2 * len(TALKS) - 1)
    for number, (first, *lines, _) in enumerate(TALKS):
        second = {"Ana": "Bo", "Bo": "Ana"}.get(first, "Ana")
        for kind, said in (("talk", lines), ("chatter", CHATTER[number % len(CHATTER)])):
            at = START + step * (2 * number + (kind == "chatter"))
            turns += [
                {
                    "text": text,
                    "speaker": (first, second)[place % 2],
                    "time": at + 60 * place,
                    "id": f"{kind} {number} {place}",
                    "session": f"{kind} {number}",
                }
                for place, text in enumerate(said)
            ]
    return turns


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[reverie.Runtime]:
    clock = SimulatedClock(START)
    with opened(tmp_path_factory.mktemp("decay") / "data", clock=clock) as rt:
        turns = conversation()
        for start in range(0, len(turns), 3):
            clock.set(turns[start]["time"])
            rt.user("ana").add(turns[start : start + 3], infer=False)
        clock.set(START + (DAYS + 1) * DAY)
        yield rt


def recall(rt: reverie.Runtime) -> float:
    """Return the share of the talks whose line is among the ten best, as of now."""
    found = 0
    for number, (*_, question) in enumerate(TALKS):
        hits = rt.user("ana").search(question, limit=CUT, as_of=rt.now())  # leaves no trace
        found += f"talk {number} 1" in {hit.external_id for hit in hits}
    return found / len(TALKS)


def switch_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nothing fade: neither what is recent nor any edge."""
    monkeypatch.setattr(decay, "recency", lambda *_: 1.0)
    monkeypatch.setattr(decay, "weight_at", lambda weight, *_: weight)


def test_the_conversation_is_long(told: reverie.Runtime) -> None:
    turns = conversation()
    assert len(turns) >= 150
    assert len(TALKS) >= 25
    assert turns[-1]["time"] - turns[0]["time"] == pytest.approx(DAYS * DAY, abs=DAY)
    assert told.user("ana").stats().messages == len(turns)


def test_decay_loses_at_most_a_point_of_recall(
    told: reverie.Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    on = recall(told)
    switch_off(monkeypatch)
    off = recall(told)
    assert off >= 0.9  # or there would be little to lose
    assert on >= off - 0.01


def test_the_oldest_are_found_as_well_as_the_newest(told: reverie.Runtime) -> None:
    user = told.user("ana")
    for number in (0, 1, len(TALKS) - 2, len(TALKS) - 1):
        hits = user.search(TALKS[number][-1], limit=3, as_of=told.now())
        assert f"talk {number} 1" in {hit.external_id for hit in hits}


def test_a_decay_that_weighed_too_much_would_be_seen(
    told: reverie.Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    heavy = {**WEIGHTS, "recency": 20.0}
    monkeypatch.setattr(reads, "Query", partial(cast("Any", Query), weights=heavy))
    on = recall(told)
    switch_off(monkeypatch)
    assert on < recall(told) - 0.01


# -- what changed ---------------------------------------------------------------------------

CHANGED = 200  # day
CHANGES: list[tuple[str, str, str, str]] = [  # a sentence, what it was, what it is, the question
    ("My favourite drink is {}.", "tea", "coffee", "What is my favourite drink now?"),
    ("我最喜欢的颜色是{}。", "蓝色", "红色", "我最喜欢的颜色现在是什么？"),
]


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    clock = SimulatedClock(START)
    with opened(tmp_path / "data", clock=clock) as rt:
        yield Home(rt, clock)


def by_rules(home: Home, old: str, new: str) -> None:
    """Let the extractor find out by itself that the new replaces the old."""
    home.user().add(old, wait=True)
    home.clock.advance(CHANGED * DAY)
    home.user().add(new, wait=True)


def by_hand(home: Home, old: str, new: str) -> None:
    kept = home.user().remember(old)
    home.clock.advance(CHANGED * DAY)
    home.user().remember(new, replaces=kept.memory_id)


@pytest.mark.parametrize("change", [by_rules, by_hand])
@pytest.mark.parametrize(("sentence", "was", "is_now", "question"), CHANGES)
def test_a_preference_that_changed_last_week(
    home: Home, change: Callable[..., None], sentence: str, was: str, is_now: str, question: str
) -> None:
    change(home, sentence.format(was), sentence.format(is_now))
    home.clock.advance(7 * DAY)
    user = home.user()

    assert is_now in user.search(question)[0].text
    everything = [hit.text for hit in user.search(question, include_retired=True)]
    assert is_now in everything[0]
    assert any(was in text for text in everything[1:])  # it is not hidden: it was so

    before = [hit.text for hit in user.search(question, as_of=START + (CHANGED - 1) * DAY)]
    assert was in before[0]
    assert not any(is_now in text for text in before)


def test_of_turns_alone_the_newer_is_the_first_among_equals(home: Home) -> None:
    user = home.user()
    for day in (0, CHANGED):
        home.clock.set(START + day * DAY)
        turn = {"text": "My favourite drink is tea.", "id": str(day), "session": str(day)}
        user.add(turn, infer=False)
    home.clock.advance(7 * DAY)
    found = [hit.external_id for hit in user.search("favourite drink")]
    assert found == [str(CHANGED), "0"]
    then = START + (CHANGED - 1) * DAY
    assert [hit.external_id for hit in user.search("favourite drink", as_of=then)] == ["0"]
