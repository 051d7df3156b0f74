"""Statements about invented people, in English and Chinese, and questions in other words."""

from __future__ import annotations

import random
from dataclasses import dataclass
from itertools import product

Relation = tuple[str, str, tuple[str, ...]]  # a statement, a question, and what may be the case

FIRST = "Maren Tobias Ingrid Paulo Yusuf Greta Anselm Noor Felix Odile Ravi Selma Bruno Hedda"
FIRST += " Karim Livia Otto Petra Samir Tilda Viggo Wanda Emeka Zora Joris"
LAST = "Olsen Barros Whitlock Adeyemi Lindqvist Farouk Castell Novak Draper Iyer Moreau Kessler"
LAST += " Pruitt Santoro Vance Halloran Okafor Bergman Tindall Reyes"
FAMILY = "欧阳 林 赵 周 吴 郑 冯 陈 褚 沈 韩 杨 朱 秦 许 何 吕 施 孔 曹"
GIVEN = "晓彤 文博 雨桐 建国 思远 丽华 志强 雪梅 子涵 浩然 秀英 俊杰 梦琪 德明 佳怡 海涛 春燕"
GIVEN += " 天佑 若兰 国栋 明珠 嘉诚 玉芬 永康 静怡"

ENGLISH: tuple[Relation, ...] = (
    (
        "{who} grew up in {what}",
        "In which town did {who} spend their childhood?",
        ("Quito", "Tromsø", "Galway", "Izmir", "Cusco", "Bath", "Lagos", "Nara", "Turin", "Kiel"),
    ),
    (
        "{who} plays the {what} in a small band",
        "Which instrument is {who} good at?",
        ("cello", "oboe", "trumpet", "banjo", "harp", "viola", "drums", "accordion"),
    ),
    (
        "{who} is allergic to {what}",
        "What must nobody serve {who}?",
        ("walnuts", "shellfish", "sesame", "kiwi", "celery", "soy", "eggs", "mustard"),
    ),
    (
        "{who} has a dog by the name of {what}",
        "What is the pet of {who} called?",
        ("Biscuit", "Rufus", "Juno", "Pepper", "Otis", "Waffle", "Nimbus", "Clover"),
    ),
    (
        "{who} works as a {what}",
        "How does {who} earn a living?",
        ("welder", "midwife", "pilot", "notary", "baker", "surveyor", "potter", "vet"),
    ),
    (
        "{who} is learning {what} in the evenings",
        "Which language does {who} study?",
        ("Finnish", "Swahili", "Korean", "Basque", "Tamil", "Welsh", "Arabic", "Polish"),
    ),
    (
        "{who} spent last summer in {what}",
        "Where did {who} go on holiday?",
        ("Iceland", "Madeira", "Patagonia", "Crete", "Lapland", "Oman", "Tasmania", "Sicily"),
    ),
    (
        "{who} collects {what}",
        "What fills the shelves of {who}?",
        ("old maps", "teapots", "beetles", "stamps", "vinyl records", "keys", "fossils"),
    ),
)
CHINESE: tuple[Relation, ...] = (
    (
        "{who}小时候住在{what}",
        "{who}的童年是在哪个城市度过的?",
        ("昆明", "大连", "苏州", "西宁", "厦门", "洛阳", "桂林", "哈尔滨"),
    ),
    (
        "{who}在乐队里演奏{what}",
        "{who}会什么乐器?",
        ("古筝", "二胡", "小提琴", "长笛", "琵琶", "鼓", "钢琴", "大提琴"),
    ),
    (
        "{who}对{what}过敏",
        "给{who}做饭不能放什么?",
        ("花生", "虾", "芝麻", "芒果", "牛奶", "鸡蛋", "小麦", "螃蟹"),
    ),
    (
        "{who}养了一只叫{what}的狗",
        "{who}的宠物叫什么名字?",
        ("豆豆", "旺财", "团子", "毛毛", "可乐", "大福", "小黑", "年糕"),
    ),
    (
        "{who}的职业是{what}",
        "{who}靠什么工作谋生?",
        ("护士", "厨师", "会计", "司机", "律师", "木匠", "记者", "园丁"),
    ),
    (
        "{who}每天晚上学{what}",
        "{who}在学哪门外语?",
        ("法语", "日语", "俄语", "德语", "西班牙语", "韩语", "阿拉伯语", "泰语"),
    ),
    (
        "{who}去年夏天去了{what}旅行",
        "{who}上次度假去了哪里?",
        ("敦煌", "三亚", "拉萨", "青岛", "张家界", "丽江", "黄山", "威海"),
    ),
    (
        "{who}喜欢收藏{what}",
        "{who}家里的架子上摆满了什么?",
        ("邮票", "茶壶", "旧地图", "硬币", "唱片", "扇子", "化石", "钥匙"),
    ),
)
TAILS = ("", ", as far as I know", ", a friend told me", " these days", ", and is proud of it")
TAILS_ZH = ("", ",朋友告诉我的", ",他自己说的", ",这是真的", ",大家都知道")
MOST = 2 * len(FIRST.split()) * len(LAST.split()) * len(ENGLISH)


@dataclass(frozen=True)
class Fact:
    """A statement that nothing else says, the question that it answers, and its language."""

    text: str
    question: str
    language: str


def make_facts(count: int, seed: int) -> list[Fact]:
    """Return statements, no two of them alike; every second one is Chinese.

    Of each person there are several, so that neither the name nor what is asked for finds the
    one that answers: it takes both. At most MOST.
    """
    if count > MOST:
        msg = f"at most {MOST} statements, not {count}"
        raise ValueError(msg)
    chance = random.Random(seed)
    english = [f"{first} {last}" for first, last in product(FIRST.split(), LAST.split())]
    chinese = [family + given for family, given in product(FAMILY.split(), GIVEN.split())]
    half = _told(chance, english, ENGLISH, TAILS, "en", (count + 1) // 2)
    other = _told(chance, chinese, CHINESE, TAILS_ZH, "zh", count // 2)
    facts = half + other
    chance.shuffle(facts)
    return facts


def _told(
    chance: random.Random,
    people: list[str],
    relations: tuple[Relation, ...],
    tails: tuple[str, ...],
    language: str,
    count: int,
) -> list[Fact]:
    """Facts of one language: every relation of as few people as it takes."""
    chance.shuffle(people)
    stop = "." if language == "en" else "。"
    return [
        Fact(
            statement.format(who=who, what=chance.choice(things)) + chance.choice(tails) + stop,
            question.format(who=who),
            language,
        )
        for who, (statement, question, things) in list(product(people, relations))[:count]
    ]
