"""The town at any size: the first of its people, or with more of them in new quarters.

The people beyond the named ones are drawn from lists of names. They live in quarters of their own
with their own places; each has somebody who is a friend, and now and then a feud.
"""

from __future__ import annotations

from random import Random

import msgspec

from reverie.memory_graph.errors import ConfigError
from reverie.town.setting import Person, Place, Setting
from reverie.town.streams import stream

QUARTER = 400  # people who share work places
_STREETS = 4  # of a quarter; its people's homes

_FIRST = """
Ada Alban Anna Arne Barbara Basil Clara Conrad Dora Edgar Elsa Emil Faye Felix Flora Fritz Gerda
Gilbert Hanna Henry Ida Ivo Jana Jonas Katya Kilian Laura Leo Lena Lothar Magda Marius Mona Niels
Olga Otto Paula Quentin Rhea Robin Runa Silas Sonja Theo Tilda Ulrich Vera Viktor Wanda Xaver Yara
Zeno
""".split()
_LAST = """
Archer Barrow Birch Bolt Brook Burr Chandler Clay Cooper Cross Dale Drake Elm Fairlie Fenn Field
Flint Fletcher Gale Glover Gray Hale Hart Heath Hill Hurst Kerr Lake Lock Mason Mill Moor Nash Oak
Page Park Pool Quill Reeve Ridge Rook Sawyer Sharp Shaw Slate Stark Thorn Tyler Vale Webb West
Wick Wren York
""".split()
_SURNAMES = "王 李 张 刘 杨 黄 周 徐 孙 马 朱 胡 郭 何 高 罗".split()
_GIVEN = "秀英 志强 桂兰 建国 玉梅 文华 小红 海燕 明 芳 磊 静 勇 艳 杰 娟".split()
_SURNAMES_LATIN = "Wang Li Zhang Liu Yang Huang Zhou Xu Sun Ma Zhu Hu Guo He Gao Luo".split()
_GIVEN_LATIN = """
Xiuying Zhiqiang Guilan Jianguo Yumei Wenhua Xiaohong Haiyan Ming Fang Lei Jing Yong Yan Jie Juan
""".split()
_WORKS = (
    ("the tannery of {n}", "{n}皮坊", "tanner"),
    ("the rope walk of {n}", "{n}绳坊", "rope maker"),
    ("the brewery of {n}", "{n}酒坊", "brewer"),
    ("the pottery of {n}", "{n}陶坊", "potter"),
    ("the docks of {n}", "{n}码头", "docker"),
    ("the stalls of {n}", "{n}货摊", "trader"),
)
_CHINESE_SHARE = 0.12
_FEUD_SHARE = 0.2


def with_people(setting: Setting, count: int, seed: int) -> Setting:
    """Return the town with `count` people: the first of the named ones, or all and a crowd.

    Raises:
        ConfigError: fewer than two people.
    """
    if count < 2:
        msg = f"a town has at least 2 people, not {count}"
        raise ConfigError(msg, npcs=count)
    ids = list(setting.people)[:count]
    people = {
        name: msgspec.structs.replace(
            person,
            friends=tuple(other for other in person.friends if other in ids),
            feuds=tuple(other for other in person.feuds if other in ids),
        )
        for name, person in setting.people.items()
        if name in ids
    }
    planted = tuple(deed for deed in setting.planted if {deed.a, deed.b} <= {None, *ids})
    places, routines = dict(setting.places), dict(setting.routines)
    for quarter in range((count - len(people) + QUARTER - 1) // QUARTER):
        more = _quarter(quarter, min(QUARTER, count - len(people)), seed)
        places |= more.places
        people |= more.people
        routines |= more.routines
    return msgspec.structs.replace(
        setting, places=places, people=people, planted=planted, routines=routines
    )


class _Quarter(msgspec.Struct):
    places: dict[str, Place]
    people: dict[str, Person]
    routines: dict[str, dict[str, tuple[str, ...]]]


def _quarter(number: int, size: int, seed: int) -> _Quarter:
    draw = stream(seed, "crowd", number)
    name, label = f"quarter {number + 1}", f"第{number + 1}区"
    key = f"q{number + 1}"
    spots = {
        f"{key}_{word}": Place(en=en.format(n=name), zh=zh.format(n=label))
        for word, en, zh in (
            ("market", "the market of {n}", "{n}集市"),
            ("tavern", "the tavern of {n}", "{n}酒馆"),
        )
    }
    homes = {
        f"{key}_street{i}": Place(en=f"street {i + 1} of {name}", zh=f"{label}{i + 1}街")
        for i in range(_STREETS)
    }
    works = {
        f"{key}_work{i}": Place(en=en.format(n=name), zh=zh.format(n=label))
        for i, (en, zh, *_) in enumerate(_WORKS)
    }
    named = [
        _name(number * QUARTER + i + 1, draw, is_chinese=draw.random() < _CHINESE_SHARE)
        for i in range(size)
    ]
    ids = [english for english, _ in named]
    people = {}
    for i, (person_id, chinese) in enumerate(named):
        work = draw.randrange(len(_WORKS))
        others = {ids[(i + step) % size] for step in (1, draw.randrange(1, max(2, size)))}
        foe = ids[draw.randrange(size)]
        has_feud = draw.random() < _FEUD_SHARE and foe not in {person_id, *others}
        people[person_id] = Person(
            zh=chinese,
            job=_WORKS[work][2],
            home=f"{key}_street{draw.randrange(_STREETS)}",
            work=f"{key}_work{work}",
            routine=key,
            profile="crowd",
            languages=("zh", "en") if chinese else ("en",),
            friends=tuple(sorted(others - {person_id})),
            feuds=(foe,) if has_feud else (),
        )
    market, tavern = spots
    routine = {
        "7": ("work",),
        "12": (market,),
        "13": ("work",),
        "18": (tavern, market),
        "21": ("home",),
    }
    return _Quarter(spots | homes | works, people, {key: routine})


def _name(number: int, draw: Random, *, is_chinese: bool) -> tuple[str, str]:
    """Return a name in English and, for some, in Chinese; the number makes it the only one."""
    if is_chinese:
        last, first = draw.randrange(len(_SURNAMES)), draw.randrange(len(_GIVEN))
        latin = f"{_SURNAMES_LATIN[last]} {_GIVEN_LATIN[first]} {number}"
        return latin, f"{_SURNAMES[last]}{_GIVEN[first]}{number}"
    return f"{draw.choice(_FIRST)} {draw.choice(_LAST)} {number}", ""
