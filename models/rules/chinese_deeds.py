"""What somebody did to something, in Chinese: 偷走了账本, 把玉佩给了孙掌柜, 参加漫展.

Read from new turns only: a deed names no state that a later one could replace.
"""

# ruff: noqa: E501 - a table reads better a line a case
from __future__ import annotations

import re

import msgspec

from reverie.models.rules import chinese
from reverie.models.rules.chinese_frame import frame_of
from reverie.models.rules.chinese_things import chinese_things, people_in
from reverie.models.rules.claims import Claim

_THINGS, _PLACES, _PEOPLE = (
    frozenset({"thing", "food"}),
    frozenset({"place"}),
    frozenset({"person"}),
)
# (predicate, what the clause says of its subject, the types that its object may have)
_DEEDS: tuple[tuple[str, re.Pattern[str], frozenset[str]], ...] = tuple(
    (predicate, re.compile(pattern), types)
    for predicate, pattern, types in (
        ("stole", "偷|抢(?:走|了|劫)|盗走|顺走|骗走", _THINGS | _PEOPLE),
        ("killed", "杀(?:死|了|掉|害)|打死|咬死|害死|斩杀|刺杀", _PEOPLE | _THINGS),
        ("saved", "救(?:了|下|出|活|起)|治好", _PEOPLE),
        ("betrayed", "背叛|出卖", _PEOPLE),
        ("gave", "(?:送|交|递|还|赠|借|卖|当|献|让|退|捐|转)(?:还|交|送)?给|赠予|赠与|送(?:了|你)|还给|献上|归还", _THINGS),
        ("found", "(?:捡|找|采|挖|收集|带|取|发现|打捞|夺|抢|搜)(?:到|回|来|出)|采(?:了|集)|找回", _THINGS),
        ("took_part", "参加|做|报名|报了|跑|考|出席|备战|备考|比赛|准备", frozenset({"event"})),
        ("has", "买|入手|购|得到|获得|收到|拿到|赢|中了|抽中|抽到|订了|租了|开了|养了|带着|开的是|骑的是|用的是|有", _THINGS | {"animal"}),
        ("learning", "学|练|沉迷|迷上", _THINGS | {"concept"}),
        ("visited", "去(?:了|过)|到(?:了|过)|进了|逛|参观|抵达|回了", _PLACES),
        ("met", "遇[到见]|碰[到见]|见(?:到|了)|认识|拜访", _PEOPLE),
        ("needs", "需要|得有|急需|缺", _THINGS),
        ("eats", "(?:常|天天|每天|平时|爱|少|多|只|点了|要了|吃了)", frozenset({"food"})),
        ("studies_at", "考(?:上|进|入)|录取|保送", frozenset({"organization"})),
        ("works_at", "上班|工作|当|做|实习|任职|offer|入职", frozenset({"organization"})),
    )
)  # fmt: skip
MAX_AHEAD_CHARS = 10  # before the subject: a time, a place, an occasion
_OTHERS = re.compile("[说让给跟和与把被对叫请替为比像忘记当作假]|的$|你|他|她")
_BEGINS = re.compile(
    "(?:已经|刚|又|终于|也|还|都)*(?:采|买|捡|找|挖|收|拿|带|送|丢|弄丢|偷|借|报|约|中|订|租|养|学|参加|报名|救|杀|打败|击败|遇|碰|入手|得到|获得)(?:到|了|下|回|走|好|名|死|见)+"
)
# These stay deeds when they are still to come, as a promise or a threat; others are plans then.
_ALSO_TO_COME = frozenset({"gave", "stole", "killed", "saved", "betrayed"})


def begins(clause: str) -> bool:
    """Return whether a clause begins with a deed, its subject left out: "采到了五株七叶莲"."""
    return bool(_BEGINS.match(clause))


def deeds(clause: str, label: str) -> list[Claim]:
    """Return what a third-person clause says somebody did: its subject, the speaker after what
    comes before ("公司年会抽奖用户中了…"), or somebody named in front ("老王借了用户…").

    Args:
        clause: for example "玩家偷走了药铺老板钱四的账本".
        label: the speaker's name in it, or another known subject's.
    """
    if found := deed(clause, label):
        return [found]
    at = clause.find(label)
    if 0 < at <= MAX_AHEAD_CHARS and not _OTHERS.search(clause[:at]):
        rest = clause[at:]
        told = deed(rest, label)
        claims = [told] if told else chinese.parse(rest, label)
        return [msgspec.structs.replace(claim, text=clause) for claim in claims]
    who = next((name for name in people_in(clause) if clause.startswith(name)), "")
    if not who or who == label:
        return []
    told = deed(clause, who)
    return [told] if told else chinese.parse(clause, who)


def deed(clause: str, label: str) -> Claim | None:
    """Return what a third-person clause says its subject did, where a thing of it is known.

    Args:
        clause: for example "玩家偷走了药铺老板钱四的账本".
        label: the speaker's name in it, or another known subject's.
    """
    frame = frame_of(clause, label, loose=False)
    if frame is None or frame.negated or frame.ended or frame.habit:
        return None
    things = [one for one in chinese_things(clause) if one.name in frame.core]
    subject = frame.name or frame.subject
    for predicate, pattern, types in _DEEDS:
        found = [one for one in things if one.type in types] if pattern.search(frame.core) else []
        found = [one for one in found if one.name != subject]
        if not found:
            continue
        # A thing before the person that it belongs to: 偷走了钱四的账本.
        found.sort(key=lambda one: (one.type == "person", frame.core.find(one.name)))
        main = found[0]
        whom = [one.name for one in things if one.type == "person" and one.name != subject]
        if frame.future and predicate not in _ALSO_TO_COME:
            return Claim(
                subject,
                "plans",
                frame.core.rstrip("了。！"),
                clause,
                future=True,
                tail_type=main.type,
            )
        return Claim(
            subject,
            predicate,
            main.name,
            clause,
            extra=whom[0] if predicate == "gave" and whom else "",
            past="了" in clause,
            future=frame.future,
            tail_type=main.type,
        )
    return None
