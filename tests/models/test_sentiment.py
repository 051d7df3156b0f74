"""How texts feel: labelled sentences, negation, and what must feel nothing."""

# ruff: noqa: E501 - a case a line
from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from reverie.models.rules.sentiment import sentiment
from reverie.models.rules.sentiment_words import CHINESE, ENGLISH

FELT = 0.1  # from here on a sentence counts as good or bad

# (label, sentence): + good, - bad, 0 neither. Written without a look at the word lists.
ENGLISH_CASES = [
    ("+", "I finally got the job at the aquarium and I'm over the moon!"),
    ("+", "Our daughter took her first steps yesterday, it was wonderful."),
    ("+", "The soup at that little place is delicious."),
    ("+", "I'm really proud of how the garden turned out."),
    ("+", "We had a great time at the lake."),
    ("+", "Grandma is feeling much better after the operation."),
    ("+", "I love walking the dog early in the morning."),
    ("+", "My team won the quiz night again."),
    ("+", "The new flat is bright and quiet, we like it."),
    ("+", "That concert was not bad at all."),
    ("+", "Thanks to Priya I passed the exam."),
    ("+", "It was hard at first but now I enjoy every lesson."),
    ("+", "I can't wait to see the northern lights."),
    ("+", "The blacksmith was kind and gave me a sword."),
    ("-", "I lost my wallet on the tram."),
    ("-", "My cat died on Monday."),
    ("-", "I hate flying, it makes me sick."),
    ("-", "The landlord raised the rent again and I'm furious."),
    ("-", "I don't like my new manager."),
    ("-", "We broke up after six years."),
    ("-", "He was fired last Thursday."),
    ("-", "I'm terrified of the dentist."),
    ("-", "The hotel was dirty and the staff were rude."),
    ("-", "I haven't slept well for weeks and I feel exhausted."),
    ("-", "The party was fun, but the drive home was a nightmare."),
    ("-", "It's not a good idea to trust that merchant."),
    ("-", "My knee hurts every time it rains."),
    ("-", "Nobody came to my birthday, I felt so lonely."),
    ("-", "I'm worried about my father's surgery."),
    ("-", "The guild betrayed us at the bridge."),
    ("0", "I live in Utrecht with two flatmates."),
    ("0", "The meeting was moved to Wednesday at three."),
    ("0", "My phone number ends in 42."),
    ("0", "I work as an electrician."),
    ("0", "She parked the car behind the library."),
    ("0", "Tomorrow we take the seven o'clock train to Lyon."),
    ("0", "My sister studies linguistics."),
    ("0", "The package is in the hallway."),
    ("0", "I feel like it will rain later."),
    ("0", "He reads two newspapers a day."),
    ("0", "The caravan left the village at dawn."),
]
CHINESE_CASES = [
    ("+", "我终于拿到了驾照，开心死了！"),
    ("+", "女儿昨天第一次叫我妈妈，太感动了。"),
    ("+", "楼下那家面馆的牛肉面特别好吃。"),
    ("+", "我为儿子感到骄傲。"),
    ("+", "周末在湖边玩得很愉快。"),
    ("+", "奶奶手术以后身体好多了。"),
    ("+", "我最喜欢清晨跑步。"),
    ("+", "我们队赢了比赛。"),
    ("+", "新家又安静又明亮，我很满意。"),
    ("+", "这部电影还不错。"),
    ("+", "多亏小王帮忙，我考试通过了。"),
    ("+", "刚开始很难，但是现在我很享受每节课。"),
    ("+", "好期待下个月的旅行。"),
    ("+", "铁匠很善良，送了我一把剑。"),
    ("-", "我的钱包在地铁上被偷了。"),
    ("-", "我家的猫上周去世了。"),
    ("-", "我讨厌坐飞机，每次都难受。"),
    ("-", "房东又涨房租，气死我了。"),
    ("-", "我不喜欢新来的经理。"),
    ("-", "我们在一起六年，最后还是分手了。"),
    ("-", "他上周四被公司裁员了。"),
    ("-", "我特别害怕看牙医。"),
    ("-", "酒店很脏，服务员态度很差。"),
    ("-", "我连着几周失眠，累得不行。"),
    ("-", "聚会很好玩，但是回家的路上太可怕了。"),
    ("-", "相信那个商人可不是好主意。"),
    ("-", "一下雨我的膝盖就疼。"),
    ("-", "生日那天没人来，我觉得很孤独。"),
    ("-", "我很担心爸爸的手术。"),
    ("-", "公会在桥上背叛了我们。"),
    ("0", "我和两个室友住在南京。"),
    ("0", "会议改到了周三下午三点。"),
    ("0", "我的手机号尾号是四二。"),
    ("0", "我是一名电工。"),
    ("0", "她把车停在图书馆后面。"),
    ("0", "明天我们坐七点的火车去杭州。"),
    ("0", "我妹妹在学语言学。"),
    ("0", "包裹放在门口了。"),
    ("0", "我的爱好是下围棋。"),
    ("0", "他每天看两份报纸。"),
    ("0", "商队天一亮就离开了村子。"),
]
# Measured agreement; docs/concepts.md has the figures. What is missed is listed, not hidden.
MISSED = {
    "I finally got the job at the aquarium and I'm over the moon!",  # an idiom
    "It's not a good idea to trust that merchant.",  # "trust" outweighs what is denied
}


def label_of(text: str) -> str:
    value = sentiment(text)
    return "+" if value > FELT else "-" if value < -FELT else "0"


@pytest.mark.parametrize(("label", "text"), [*ENGLISH_CASES, *CHINESE_CASES])
def test_labelled_sentences(label: str, text: str) -> None:
    assert (label_of(text) == label) != (text in MISSED)


# Words before which a negation makes no sense, or that are more than a predicate.
_ODD = {
    "yay",
    "hooray",
    "hurray",
    "best",
    "worst",
    "favourite",
    "favorite",
    "congratulations",
    "okay",
    "like",
}


def test_a_negation_turns_every_word_round_and_weakens_it() -> None:
    for word in sorted({w for w in ENGLISH if "-" not in w} - _ODD):
        plain, negated = sentiment(f"That is {word}."), sentiment(f"That is not {word}.")
        assert plain * negated < 0, word
        assert abs(negated) < abs(plain), word
        assert plain * sentiment(f"That is really {word}.") > 0, word


@pytest.mark.parametrize("no", ["不", "并不", "从不", "没有"])
def test_a_chinese_negation_turns_every_word_round_and_weakens_it(no: str) -> None:
    for word in sorted(CHINESE):
        if no[-1] + word[0] in {*CHINESE, "不过"}:  # 不幸运 holds 不幸, a word of its own
            continue
        plain, negated = sentiment(f"他{word}。"), sentiment(f"他{no}{word}。")
        assert plain * negated < 0, word
        assert abs(negated) < abs(plain), word


negated_twice = st.sampled_from(["I am not {}, and she is not {}.", "他不{}，她也不{}。"])


@given(negated_twice, st.data())
def test_two_words_negated_are_no_better_than_both(frame: str, data: st.DataObject) -> None:
    lexicon = ENGLISH if frame.isascii() else CHINESE
    good = sorted(w for w, value in lexicon.items() if value > 0 and "-" not in w)
    one, two = data.draw(st.sampled_from(good)), data.draw(st.sampled_from(good))
    plain = frame.replace(" not", "").replace("不", "")
    assert sentiment(frame.format(one, two)) < sentiment(plain.format(one, two))


@given(st.text(max_size=200))
def test_any_text_is_within_bounds_and_gives_the_same_twice(text: str) -> None:
    assert -1.0 <= sentiment(text) <= 1.0
    assert sentiment(text) == sentiment(text)


@pytest.mark.parametrize(
    "text",
    ["", "…", "Я очень рад!", "とても嬉しいです", "It is likely to work.", "What kind of bird is it?",
     "特别专用通道在左边。", "你好！", "他去出差了。"],
)  # fmt: skip
def test_what_is_not_read_or_felt_is_zero(text: str) -> None:
    assert sentiment(text) == 0.0


@pytest.mark.parametrize(
    ("weaker", "stronger"),
    [
        ("I am happy.", "I am extremely happy!"),
        ("It is slightly boring.", "It is boring."),
        ("The food was good.", "The food was delicious."),
        ("我高兴。", "我非常高兴。"),
        ("有点累。", "累。"),
        ("还好。", "太棒了。"),
    ],
)
def test_degrees_and_strong_words_count_more(weaker: str, stronger: str) -> None:
    assert 0 < abs(sentiment(weaker)) < abs(sentiment(stronger))


def test_what_comes_after_but_counts_more() -> None:
    assert sentiment("The room was nice, but the noise was terrible.") < 0
    assert sentiment("The noise was terrible, but the room was wonderful.") > 0
    assert sentiment("房间不错，但是噪音太可怕了。") < 0
    assert sentiment("噪音很可怕，不过房间太完美了。") > 0
    assert sentiment("开心死了") > 0 > sentiment("我家的狗死了")
