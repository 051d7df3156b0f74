"""What holds and what is over by a statement; who it is about; what is left to the model."""

# ruff: noqa: E501 - a case a line
from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from reverie.memory_graph.drafts import Decision, Known, MemoryDraft
from reverie.models.decide_model import offered
from reverie.models.rules import RulesDecider
from reverie.models.rules.apart import apart, is_unreal
from reverie.models.rules.reading import read, told_in
from reverie.models.rules.sides import contrary, names_former, sides
from reverie.models.rules.text import key_words, numbers


def decide(new: str, *old: str, similarity: float = 0.7) -> Decision:
    known = [
        Known(str(i), text, similarity=similarity, recorded_at=float(i))
        for i, text in enumerate(old)
    ]
    return RulesDecider().decide(MemoryDraft(new), known)


# -- what holds and what is over -----------------------------------------------------------------

SIDES = [
    ("User moved from Graz to Linz", "linz", "graz"),
    ("User replaced sugar with honey", "honey", "sugar"),
    ("User wears boots instead of sandals now", "boot", "sandal"),
    ("User wants tables and not charts any more", "tabl", "chart"),
    ("User no longer likes squash and prefers golf now", "golf", "squash"),
    ("User left the orchestra for the jazz trio", "trio", "orchestra"),
    ("The gate is no longer rusty but new-painted", "paint", "rusti"),
    ("用户从拉面改吃米线了", "米", "拉"),
    ("用户把咖啡机换成了茶壶", "茶", "咖"),
    ("用户不骑摩托了，改坐地铁", "铁", "摩"),
    ("用户想要表格，不要图片", "表", "图"),
    ("用户离开青龙帮去了白虎帮", "虎", "龙"),
]


@pytest.mark.parametrize(("text", "holds", "over"), SIDES)
def test_the_sides_of_a_statement(text: str, holds: str, over: str) -> None:
    found = sides(text)
    assert holds in found.current
    assert over in found.former
    assert found.goes_on
    assert not found.ends  # what is left of it tells of no end


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("User sold the loom", True),
        ("User hurt the left knee", False),
        ("User reads once a week", False),
        ("User had the cast removed", True),
        ("User no longer rows for good", True),
        ("User left the choir for good", True),
        ("User quit the job for health reasons", True),
        ("User rows", False),
        ("用户退出了合唱团", True),
        ("用户的感冒好了", True),
        ("用户参加了合唱团", False),
        ("用户放弃了，不再练了", True),
    ],
)
def test_an_end_that_goes_on_to_nothing(text: str, ends: bool) -> None:  # noqa: FBT001 - a table
    assert sides(text).ends is ends
    assert not sides(text).goes_on


TEXTS = st.text(
    st.sampled_from(
        "User left for and from to no longer sold replaced with 从把换成不再了，。是用户AB'"
    ),
    max_size=60,
)


@given(TEXTS, TEXTS)
def test_sides_of_any_text(one: str, other: str) -> None:
    assert not sides(one).former & sides(one).current
    assert contrary(one, other) is contrary(other, one)
    assert not contrary(one, one)


def test_names_former_needs_most_of_the_name() -> None:
    assert names_former("User moved from Graz to Linz", "User has a flat in Graz")
    assert not names_former("User moved from Graz to Linz", "User has a flat in Wels")
    assert not names_former("用户不住北京了，搬到了厦门", "用户住在南京")


# -- the same words, and not the same ------------------------------------------------------------

NOT_THE_SAME = [
    ("User replaced butter in the dough with lard", "User replaced lard in the dough with butter"),
    ("User moved from finance to marketing", "User works in finance now"),
    ("User's best throw went from 41 to 44 metres", "User's best throw is 41 metres now"),
    ("User left Lima for Quito", "User moved to Lima"),
    ("User had the mural of a whale removed", "User has a mural of a whale"),
    ("User left the debating club", "User is in the debating club"),
    ("Ines and Pavel are not friends any more", "Ines and Pavel are friends"),
    ("User was once rich as a child", "User is rich now"),
    ("User has a husband who is a pilot", "User has a husband who is a surgeon"),
    ("User is now engaged", "User is now divorced"),
    ("User suffers from vertigo", "User has got over vertigo"),
    ("User has an allergy to latex", "User has an allergy to wool"),
    ("User missed a rehearsal of a brass band", "User is in a brass band"),
    ("The bakery is open", "The bakery is closed"),
    ("Mira guards the east tower", "Mira guards the west tower"),
    ("Mira feels calm", "Mira's mother feels calm"),
    ("Friends call Viktor Moss", "Friends call User Moss"),
    ("User would hate to work nights", "User works nights"),
    ("The lamp in the hall is on", "The lamp in the hall is off"),
    ("The lamp in the hall is on", "The lamp in the hall is new"),
    ("User still has enough flour", "User is out of flour"),
    ("User helps a stray dog", "User was helped by a stray dog"),
    ("User votes for the new bridge", "User votes against the new bridge"),
    ("User lives in New York", "User lives in York"),
    ("User writes Rust", "User writes Go"),
    ("面馆这阵子是营业的", "面馆这阵子是歇业的"),
    ("用户把存款从东行转到了西行", "用户把存款从西行转到了东行"),
    ("用户的脚伤痊愈了", "用户的脚受伤了"),
    ("用户其实对芝麻不过敏", "用户对芝麻过敏"),
    ("用户最不喜欢的季节是冬天", "用户最喜欢的季节是冬天"),
    ("用户的姐姐在上大学", "用户的妹妹在上大学"),
    ("沈青失去了隐身术", "沈青会隐身术"),
    ("用户每天8点起床", "用户每天8点半起床"),
]


@pytest.mark.parametrize(("one", "other"), NOT_THE_SAME)
def test_near_texts_that_do_not_say_the_same(one: str, other: str) -> None:
    assert decide(other, one, similarity=0.98).op != "NOOP"
    assert decide(one, other, similarity=0.98).op != "NOOP"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("User moved from Graz to Linz", "User lives in Linz"),
        ("User quit smoking", "User gave up smoking"),
        ("User has an allergy to latex", "User is allergic to latex"),
        ("User is in bed by 9:00 pm", "User is in bed by 9 pm these days"),
        ("The gate is burned down", "The gate is burned down these days"),
        ("The food that User likes most is rice", "User's favourite food is rice"),
        ("用户今年31岁", "用户的年龄是31岁"),
        ("用户有芝麻过敏", "用户对芝麻过敏"),
        ("米饭是用户最喜欢的食物", "用户最喜欢的食物是米饭"),
        ("用户的经理是钱进", "用户的老板换成钱进了"),
    ],
)
def test_what_says_the_same_still_does(old: str, new: str) -> None:
    assert decide(new, old, similarity=0.98).op == "NOOP"


# -- left alone -------------------------------------------------------------------------------------

LEFT_ALONE = [
    ("Ines needs to copy the keys", "Ines moved their savings from Orbis to a savings club"),
    ("Ines is going to Corfu in spring", "Ines cancelled the week in Malta"),
    ("Pavel always orders a lemonade", "User no longer orders a lemonade"),
    ("Ines and Pavel are friends", "User is no longer friends with Pavel"),
    ("Mira has a bike", "User's bike was stolen"),
    ("The old mill is tall", "The old mill is locked now"),
    ("Mira is apprenticed to Old Tam", "Mira is now badly burned"),
    ("The duke is allied with the river clans", "The duke is at war with the hill clans"),
    ("Gorin is locked up in the lighthouse", "Gorin escaped from the quarry"),
    ("User serves the River Guard", "User abandoned the guard at the mill"),
    ("User has set the ring size to 12", "User gave 12 as ring size"),
    ("User's goal is to run a bakery", "User's goal is to learn to dive"),
    ("Ines's wife is a nurse", "Ines's husband works as a tailor"),
    ("Aylin has a flight at noon", "User's flight was delayed to 3pm"),
    ("The garden party will be catered", "The garden party was moved to Friday"),
    ("User moved a fitting to Thursday", "User cancelled a fitting on Tuesday"),
    ("User respects the order to wear a hat", "User wonders who gave the order to wear a hat"),
    ("Gorin keeps a vow to find the lost mine", "Gorin made a vow to find the lost mine"),
    ("沈青待客从泡龙井改泡普洱", "沈青待客不泡龙井了"),
    ("沈青囚禁在地窖", "沈青逃出了水窖"),
    ("User's boss is Jun", "User's brother's new boss is Pia"),
    ("User has a dog named Rex", "User's cousin's dog Rex died"),
    ("User lives on the third floor", "User moved up to third grade"),
    ("User works with Priya", "The meeting with Priya was moved to Monday"),
    ("User has a cat named Plum", "User no longer has the cat Fig"),
    (
        "User has a daughter who lives in Lyon",
        "It is no longer true that User has a daughter who lives in Bath",
    ),
    ("User had to rehome a parrot", "User no longer has a parrot"),
    ("User has left logistics at work", "User no longer works in logistics"),
    ("User works with Svelte", "User works with Ember"),
    (
        "User's colleague's code is written with Ember",
        "User's colleague's code is written with Svelte",
    ),
    ("User goes to work by tram", "User stopped going to work by car"),
    ("The wedding was a success last year", "The wedding was moved to Friday"),
    ("The fair takes place in the barn", "The fair was moved to the barn"),
    ("The dinner takes place on Sunday", "The dinner has been postponed to Sunday"),
    ("User changed the paper size from A5 to A4", "User's paper size is no longer A5"),
    ("袁朗的茶里加薄荷", "袁朗的狗现在三岁了"),
    ("用户打算参加诗会", "用户取消了参加马拉松的计划"),
    ("沈青下周三有牙医预约", "沈青取消了周五的体检"),
    ("用户住在云来客栈", "用户换到了东海银行"),
    ("用户家在江南", "用户家在江北，但现在不是这样了"),
    ("用户的姐姐家烧柴取暖", "用户家不烧柴取暖了"),
    ("用户的姐姐住在宁波", "用户的妹妹搬到了温州"),
    ("玩家守着粮仓", "玩家现在躲在粮仓"),
    ("沈青被关在石塔", "沈青逃出了山洞"),
    ("用户有只狗，名字叫毛豆", "用户不养狗年糕了"),
    ("用户放弃了去庐山的行程", "用户不去庐山了"),
    ("沈青想要简短的回答", "沈青不再要正式的回答"),
    ("玩家家在白水镇", "玩家在白水镇有房子住着"),
    ("用户的同事弃了这部剧", "用户的同事不看这部剧了"),
]


@pytest.mark.parametrize(("old", "new"), LEFT_ALONE)
def test_what_is_of_another_matter_or_over_already(old: str, new: str) -> None:
    assert decide(new, old).op == "ADD"


# -- what is over, and what holds instead ---------------------------------------------------------

GOES_ON = [
    ("User belongs to the chess club", "User left the chess club for the go club"),
    ("User plays in a folk band", "User left the folk band to play in a big band"),
    ("User has a Fiat Panda", "User traded a Fiat Panda for a Dacia Logan"),
    ("Niko lives in Porto", "Niko left Porto and lives in Faro now"),
    ("User likes squash", "User no longer likes squash and prefers golf now"),
    ("用户骑一头青牛", "用户不骑一头青牛了，改骑一匹白马"),
    ("用户是书法协会的成员", "用户退出书法协会，进了合唱团"),
]


@pytest.mark.parametrize(("old", "new"), GOES_ON)
def test_an_end_that_says_what_holds_instead_is_kept(old: str, new: str) -> None:
    """A deletion would lose the second half."""
    assert decide(new, old).op == "UPDATE"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("User belongs to the chess club", "User left the chess club for good"),
        ("User lives in Boston", "User moved away from Boston"),
        ("User is Sikh", "User left the faith and is not Sikh any more"),
        ("User enjoys eating olives", "User doesn't care for olives any more"),
        ("User lives in Lyon", "It is no longer true that User lives in Lyon"),
        ("User plays judo", "User plays judo, but not any more"),
        ("用户会弹二胡", "以前用户会弹二胡，现在不了"),
        ("用户和子涵结婚了", "用户和子涵不在一起了"),
        ("用户喜欢昆曲", "用户对昆曲没兴趣了"),
    ],
)
def test_an_end_that_is_no_more_is_a_deletion(old: str, new: str) -> None:
    assert decide(new, old).op == "DELETE"


@pytest.mark.parametrize(
    ("old", "new", "op"),
    [
        ("User owns a loom", "User does not own a loom", "DELETE"),
        ("The ski lift is running", "The ski lift is not running", "UPDATE"),
        ("User is vaccinated against mumps", "User is not vaccinated against mumps", "UPDATE"),
        ("Mira trusts the captain", "Mira does not trust the captain", "UPDATE"),
        ("The barn is burned down", "The barn is no longer burned down", "DELETE"),
        ("沈青会打铁", "沈青不会打铁", "UPDATE"),
    ],
)
def test_what_is_not_so_is_news_and_what_one_has_not_is_nothing(
    old: str, new: str, op: str
) -> None:
    assert decide(new, old).op == op


def test_a_whole_statement_may_be_told_only_to_be_denied() -> None:
    assert told_in("It is no longer true that User rows") == "User rows"
    assert told_in("User rows, but not any more.") == "User rows"
    assert told_in("用户划船，但现在不是这样了") == "用户划船"
    assert told_in("User rows") == "User rows"


# -- left to the model -------------------------------------------------------------------------------

ASKED = [
    ("User is travelling to Eastmoor", "User is travelling to Westmoor"),
    ("User reads the Herald every day", "User reads the Courier instead of the Herald now"),
    ("User drives a Fiat Panda", "User drives a Dacia now instead of a Fiat Panda"),
    ("User plays as goalkeeper", "User plays as winger"),
    ("Mira goes to bed at 10pm", "Mira goes to sleep at 10pm"),
    ("User's usual drink is a flat white", "User's standing drink at the bar is a cortado"),
    ("User goes by Moss", "User wants to be called Fern"),
    ("User goes by Moss", "User does not want to be called Moss any more"),
    (
        "User asked for a reminder to feed the fish",
        "User does not want to be reminded to feed the fish any more",
    ),
    ("User's office is the one in Delhi", "User left the Delhi office as of May"),
    ("User has a mother who is 61", "User's mother is 62 years old"),
    ("User's girlfriend goes to Leiden", "User's girlfriend goes to Ghent"),
    ("User's tutor is Ida", "User has Olu as tutor now"),
    ("The sofa was delayed to Friday", "The sofa will come on Sunday after all"),
    ("The kitchen of the Blue Boar is run by Ida", "The cook of the Blue Boar is Ida"),
    ("User wants a piano for Christmas", "User would like a piano"),
    ("北城门如今是待售的", "北城门这阵子是营业的"),
    ("用户的弟弟记着要订酒店", "用户的弟弟还要订酒店"),
    ("用户的室友打算养猫", "用户的室友从想养猫改为想养鱼"),
    ("用户的表哥每天走路去公司", "用户的表哥每天骑车去公司"),
    ("用户一直是全素的", "大家都知道用户是全素的"),
    ("沈青的开户行是东海银行", "沈青在西山银行有账户"),
    ("乐乐有关节炎", "今年春天乐乐没有关节炎了"),
    ("李雷是用户的姐姐的房东", "用户的姐姐的房东换成了曹颖"),
    ("用户想要深色界面", "用户不想要深色界面了"),
]


@pytest.mark.parametrize(("old", "new"), ASKED)
def test_what_may_bear_on_each_other_is_offered(old: str, new: str) -> None:
    known = [Known("m0", old, similarity=0.95)]
    assert offered(MemoryDraft(new), known, floor=0.5, limit=2) == known


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("User works at Orbis", "User's husband left Orbis for Nordlicht"),
        ("User's sister has a flat in Graz", "User's brother has a flat in Linz"),
        ("User likes tea", "User likes skiing"),
        ("User has a motorbike", "User might sell the motorbike in May"),
        ("User lives in Graz", "User wants to move to Linz one day"),
        ("User flew to Oslo", "User flew to Rome"),
        ("用户住在成都", "用户的妈妈住在沈阳"),
        ("用户的姐姐住在宁波", "用户的妹妹住在宁波"),
        ("王小明住在宁波", "王小红搬到了温州"),
        ("用户会说英语", "用户会说法语"),
    ],
)
def test_what_is_certainly_apart_is_not_offered(old: str, new: str) -> None:
    assert apart(read(new), read(old))


# -- words ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "unreal"),
    [
        ("User left the Delhi office as of May", False),
        ("User may leave the Delhi office", True),
        ("User wants to be called Fern", False),
        ("User wants to be a baker", True),
        ("用户的电脑是联想", False),
        ("用户想了很久，搬到了厦门", False),
        ("用户想搬到厦门", True),
    ],
)
def test_wishes(text: str, unreal: bool) -> None:  # noqa: FBT001 - a table
    assert is_unreal(text) is unreal


def test_names_that_are_made_of_empty_words_count() -> None:
    assert key_words("User lives in New York") != key_words("User lives in York")
    assert key_words("User's new bike") == key_words("User's bike")
    assert key_words("User writes Go") != key_words("User writes")
    assert key_words("User has to go") == key_words("User has")


def test_a_full_hour_is_one_number_and_a_half_hour_another() -> None:
    assert numbers("at 8:00 pm") == numbers("at 8 pm")
    assert numbers("at 8:30 pm") != numbers("at 8 pm")
    assert numbers("8点半起床") != numbers("8点起床")


@pytest.mark.parametrize(
    ("text", "slot", "value"),
    [
        ("User left Lima for Quito", "user|lives_in", "Quito"),
        ("User has outgrown the allergy to cats", "user|allergic_to", "cats"),
        ("User's favourite drink is no longer cider", "user|favourite_drink", "cider"),
        ("User has a rabbit whose name is Plum", "user|has_pet", "rabbit"),
        ("User's boss is Dana as before", "user|manager", "Dana"),
        ("用户有个46岁的母亲", "user|mother", "母亲"),
        ("用户的妻子已经30岁了", "user's partner|age", "30"),
    ],
)
def test_readings(text: str, slot: str, value: str) -> None:
    claim = read(text).claim
    assert claim is not None
    assert (claim.slot, claim.object) == (slot, value)


@pytest.mark.parametrize("text", ["User dropped out of a relay race", "用户的弟弟记着要订酒店"])
def test_what_is_no_school_and_no_name(text: str) -> None:
    claim = read(text).claim
    assert claim is None or claim.predicate not in {"studied_at", "kin"}
