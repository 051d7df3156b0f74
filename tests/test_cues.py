"""What texts look like they say and questions look like they ask for, in seven languages."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from reverie.memory_graph import cues
from reverie.memory_graph.cues import MAX_NAMES, asks, says

SAYS: list[tuple[str, str]] = [  # of "time number", what the text says
    ("I went there yesterday.", "time"),
    ("We met in May.", "time"),
    ("You may go, and they march on.", ""),
    ("It lasted for three weeks.", "time number"),
    ("I have lived here since 2019.", "time number"),
    ("I love hiking.", ""),
    ("Two more came.", "number"),
    ("昨天我去了上海。", "time"),
    ("上个星期我很忙。", "time"),
    ("這週我很忙。", "time"),
    ("我三月去了北京。", "time number"),
    ("周三见。", "time"),
    ("我买了三个苹果。", "number"),
    ("我買了三個蘋果。", "number"),
    ("我很喜欢喝茶。", ""),
    ("昨日、東京に行きました。", "time"),
    ("金曜日に会う。", "time"),
    ("来年行きます。", "time"),
    ("りんごを三つ買いました。", "number"),
    ("私は猫が好きです。", ""),
    ("지난주에 만났어요.", "time"),
    ("다음 달에 갈 거예요.", "time"),
    ("사과를 세 개 샀어요.", "number"),
    ("저는 차를 좋아해요.", ""),
    ("Вчера я был дома.", "time"),
    ("В мае мы поехали домой.", "time"),
    ("У меня две кошки.", "number"),
    ("Я люблю чай.", ""),
    ("ذهبت إلى السوق أمس.", "time"),
    ("سافرت في مايو.", "time"),
    ("عندي ثلاثة كتب.", "number"),
    ("أحب الشاي.", ""),
]

ASKS: list[tuple[str, str]] = [  # of "time number name", what the question asks for
    ("When did Ana go?", "time"),
    ("Since when has Bo lived here?", "time"),
    ("On what day did he leave?", "time"),
    ("What year was it?", "time"),
    ("How long ago was that?", "time number"),
    ("How many cats has she?", "number"),
    ("How old is he?", "number"),
    ("Who came?", "name"),
    ("Where does he live?", "name"),
    ("What book did she read?", "name"),
    ("What is his cat named?", "name"),
    ("What does she like?", ""),
    ("Does she know when to go?", ""),
    ("我什么时候去的？", "time"),
    ("你什麼時候到？", "time"),
    ("几点见？", "time"),
    ("多久以前？", "time number"),
    ("多少钱？", "number"),
    ("有几个孩子？", "number"),
    ("谁来了？", "name"),
    ("他住在哪儿？", "name"),
    ("他住在哪裡？", "name"),
    ("她叫什么名字？", "name"),
    ("你喜欢吃什么？", ""),
    ("いつ行きましたか？", "time"),
    ("何年ですか？", "time"),
    ("何歳ですか？", "number"),
    ("いくらですか？", "number"),
    ("どこに住んでいますか？", "name"),
    ("誰が来ましたか？", "name"),
    ("何が好きですか？", ""),
    ("언제 갔어요?", "time"),
    ("며칠에 갔어요?", "time"),
    ("얼마예요?", "number"),
    ("누가 왔어요?", "name"),
    ("어디에 살아요?", "name"),
    ("뭐 좋아해요?", ""),
    ("Когда ты уехал?", "time"),
    ("В каком году это было?", "time"),
    ("Сколько стоит?", "number"),
    ("Где он живёт?", "name"),
    ("Как его зовут?", "name"),
    ("Что некто нигде не любит?", ""),
    ("متى ذهبت؟", "time"),
    ("كم عمره؟", "number"),
    ("أين يسكن؟", "name"),
    ("ما اسم القط؟", "name"),
    ("ماذا يحب كمال؟", ""),
]


@pytest.mark.parametrize(("text", "wanted"), SAYS)
def test_what_a_text_says(text: str, wanted: str) -> None:
    told = says(text)
    assert [name for name in ("time", "number") if getattr(told, name)] == wanted.split()


@pytest.mark.parametrize(("question", "wanted"), ASKS)
def test_what_a_question_asks_for(question: str, wanted: str) -> None:
    wants = asks(question)._asdict()
    assert [name for name, is_asked in wants.items() if is_asked] == wanted.split()


def test_who_asks() -> None:
    for text in ("Do you?", "你喜欢吗？", "هل تحب؟", 'She said "really?"', "You do (don't you?) "):
        assert (says(text).asks, says(text).asks_somewhere) == (True, True)
    assert (says("Where? Here.").asks, says("Where? Here.").asks_somewhere) == (False, True)
    assert (says("Here.").asks, says("Here.").asks_somewhere) == (False, False)


def test_names() -> None:
    assert says("He met Ana, Bo and Carla in Rome.").names == 4
    assert says("He met Ana and Bo.", {"ana"}).names == 1
    assert says("Then I said that I'm here, as I've said.").names == 0  # I is no name
    assert says("Ana slept. Bo too.").names == 0  # each begins a sentence
    assert says('I read "The Secret Garden" again.').names == 2 + 3
    assert says("我在读《红楼梦》。").names == 2
    assert says("Мы встретили Анну и Ёлку.").names == 2
    assert says("Nous avons vu Élodie à Orléans.").names == 2
    assert says("and Ana " * 3 + " ".join(f"b N{i}" for i in range(99))).names == MAX_NAMES


@given(st.text(max_size=200))
def test_any_text_is_looked_at(text: str) -> None:
    told = says(text)
    assert 0 <= told.names <= MAX_NAMES
    assert told.asks_somewhere or not told.asks
    asks(text)


def test_the_cache_forgets() -> None:
    cues.clear_caches()
    asks("Who?")
    assert asks.cache_info().currsize == 1
    cues.clear_caches()
    assert asks.cache_info().currsize == 0
