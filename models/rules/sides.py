"""The two sides of a statement: what it says holds, and what it says is over.

"Replaced oat milk with soy milk" and "replaced soy milk with oat milk" have the same words, and
so have "is in the club" and "left the club". Two statements that differ in their sides are never
the same, and one that says that something is over bears on it, whatever else it says.
"""

# ruff: noqa: E501 - a table reads better a line a case
from __future__ import annotations

import re
from typing import NamedTuple

from reverie.models.rules.text import MAX_CLAUSE_CHARS, is_chinese, key_words, remembered

MAX_SIDES_CHARS = 2 * MAX_CLAUSE_CHARS  # of a statement; the rest is not looked at

_SPAN = r"[^,;.!]{1,60}?"
_STOP = (
    r"(?=$|[,;.!]| (?:now|these days|nowadays|any ?more|any longer|from now on|in the (?:morning|evening|afternoon)s?"
    r"|at|for|since|and|but|last|this|every|recently|lately|after|because|as|in [A-Z])\b)"
)
# "for" before another value, not before a reason, a price or a time
_FOR = (
    r"for (?!good\b|now\b|ever\b|a (?:while|few|long|time|bit)\b|\d|[$€£]|the (?:moment|sake|time|summer|winter|weekend|best|night)\b"
    r"|(?:health|money|personal|family|private|lack|fear|years|months|weeks|days|lunch|dinner|breakfast)\b)"
)
_AND = r"(?:and|but)(?: (?:now|then|has|is))* (?:is|has|\w+s|joined|became|took|went|started|began|bought|got|moved|signed|subscribed|chose)\b(?! not\b| no\b)"
_TO = r"(?<!plans )(?<!plan )(?<!hopes )(?<!attempt )(?<!dream )to (?:play|work|join|live|study|become|sing|serve|train|teach|learn|sail|travel|fight|lead|run|open|found|start)\b"
_NO_AIM = r"(?!(?:the |their |all )?(?:search|hopes?|fight|plans?|attempts?|idea|quest|hunt|campaign|struggle|love|taste|support)\b)"
_CHANGED = (
    "moved|renamed|switched|changed|went|gone|transferred|converted|relocated|turned|upgraded|downgraded|promoted|demoted|shifted"
    "|rose|risen|fell|fallen|dropped|grew|grown|raised|lowered|increased|decreased|reduced|postponed|rescheduled|brought forward"
    "|pushed|delayed|extended|took|taken|passed"
)
_ENGLISH = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\b(?:instead of|rather than|in place of) (?P<f>{_SPAN}){_STOP}",
        rf"(?:,| and|, and|, but) (?:not (?:any |for )?|no longer (?:for|at|in|to|by|with|from) )(?P<f>{_SPAN})(?: any ?more| any longer)?{_STOP}",
        rf"\b(?:{_CHANGED})\b[^,;.!]{{0,40}}?(?P<cut> from (?P<f>{_SPAN}))(?= (?:to|into|as)\b)",
        rf"\b(?:{_CHANGED})\b[^,;.!]{{0,60}}? (?:to|into) {_SPAN}(?P<cut> from (?P<f>{_SPAN})){_STOP}",
        rf"\b(?:replaced|exchanged|swapped(?: out)?|traded(?: in)?) (?P<f>{_SPAN}) (?=(?:with|for|by|against)\b)",
        rf"\b(?:left|dropped|quit|ditched|abandoned|deserted|(?:gave|given) up(?: being)?) (?P<f>{_NO_AIM}{_SPAN}),? (?=(?:{_AND}|{_TO}|{_FOR}))",
        rf"\b(?:cancell?ed|sold|ended|closed|finished|forsook|stopped(?: being)?) (?P<f>{_SPAN}),? (?=(?:{_AND}))",
        (
            r"\b(?:no longer|used to(?: be)?|(?:does|do|did|is|was)(?: not|n't)) (?P<f>[^,;.!]{1,80}?)(?: any ?more| any longer)?"
            r"(?=,? (?:and(?: now| has| is)* (?:is|has|\w+s)\b(?! not\b| no\b)|but (?!not\b|no\b|never\b|only\b)\w))"
        ),
        rf"^(?P<f>{_SPAN}) (?:was|were|has been|got) (?=(?:replaced|succeeded) (?:by|with)\b)",
    )
)
_HAN_SPAN = "[^，,。；;！]{1,20}?"
_CHINESE = tuple(
    re.compile(pattern)
    for pattern in (
        rf"(?:离开|告别|放弃)(?P<f>{_HAN_SPAN})(?=[去上加转投改住进][了到入]?[^，。]{{2}})",
        rf"从(?P<f>{_HAN_SPAN})(?=改[\u4e00-\u9fff])",
        rf"从(?P<f>{_HAN_SPAN})(?=[改换变搬转调升降涨跳移迁跌减增切推提延](?:回|去|来|迟|前|期|槽|行|学)?[到成为去至进入喝吃用听看住骑开做学支信])",
        rf"把(?P<f>{_HAN_SPAN})(?=(?:换|改|变|替换)(?:[成为]|了[，,。]|掉))",
        r"(?:代替|取代|替换|接替|顶替)[了掉]?(?P<f>[^，,。；;！]{1,20})",
        rf"(?:以前|原来|原先|曾经|过去|本来)(?P<f>{_HAN_SPAN})[，,；;](?!但?(?:现在|如今|已经)*[不没])(?=.)",
        rf"(?:不再|不想|不用|不要|不是|不喜欢|不|没有|没|戒掉?了?|退出了?|离开了?|放弃了?|辞(?:掉|去|了)了?|停(?:掉|了)了?|卖(?:掉|了)了?)(?P<f>{_HAN_SPAN})了?[，,；;](?!因为|由于|太|很|毕竟|[但可]是?[没不]|没|不|再也|所以|非常|以后)(?=.)",
        r"[，,](?:而)?(?:不是|不要|不再是?|不用|不喜欢|不想要?|不叫|没有)(?P<f>[^，,。；;！]{1,20}?)了?(?=[。！]?$)",
        r"而不是(?P<f>[^，,。；;！]{1,20}?)(?=[。！，,]|$)",
    )
)
# Stems and characters that only carry the predicate: they never make a statement a new one.
CARRIERS = key_words(
    """allergic allergy love like enjoy adore hate dislike prefer favourite live reside move
    relocate
    based work job employed position wife husband spouse married marry partner have own drive keep
    called live stand study degree graduate drink eat go play speak speaks fluent is manager boss
    detest loathe fond fan keen stand can't bear home""",
) | frozenset(
    "对吃喝会过敏有个名字叫是在住的了养只条爱喜欢很最也1生活居住工作上班任职家人位员为热讨厌不非常特别"
)
_LIGHT = CARRIERS | frozenset("用户看听读骑开做当学玩打去上要想把从和跟与现在再没用到每天")
_CHANGING = key_words("moved changed switched transferred went replaced now") | frozenset(
    "把换成变改为搬转到"
)
# What tells an end, a time that is over, or a thing that is gone.
_END = re.compile(
    r"(?<!\bthe )(?<!\ba )(?<!\ban )(?<!\btheir )(?<!\bhis )(?<!\bher )\b(?:left(?!-| (?:hand|knee|arm|leg|foot|ankle|wrist|ear|eye|side|shoulder|hip|wing|back|half)\b)|quit|gave up|given up|stopped|ceased"
    r"|cancell?ed|called off|ended|dropped|sold|lost|removed|taken out|took out of|rehome[ds]?|broke (?:up|off|with|down|the habit)|broken up|split up"
    r"|got over|gotten over|outgrown|outgrew|overcame|overcome|recovered|cured|healed|withdrawn|withdrew|forgot(?:ten)?|let\b.{1,40}\bgo|checked out"
    r"|laid down|ran out|run out|lapsed?|expired|escaped|freed|released|dissolved|resigned|retired|fired|laid off|dismissed|died|dead|passed away|demolished"
    r"|torn down|burn(?:ed|t) down|uninstalled|unsubscribed|divorced|separated|abandoned|deserted|defected|expelled|banished|exiled|overthrown|deposed"
    r"|gave (?:away|back)|given (?:away|back|to)|handed over|no longer|used to|formerly|former|ex-\w+|once(?! (?:a|an|every|more|per|again)\b)"
    r"|had enough of|relieved of|(?:sworn|swore|vowed) never|(?:is|are) over (?:an?|the|their|his|her)|parted (?:with|ways)|lost interest|fell out|tired of|fed up|shut down|closed down|closed the|put down|moved out|moved away|turned away|paid (?:back|off)"
    r"|as a (?:child|kid|boy|girl|student)|(?:years|months|ages) ago|vanished|disappeared|stolen|destroyed|discarded|revoked|lifted|finished|put an end|got rid|(?:took|taken|crossed)\b.{1,40}\boff|put\b.{1,40}\b(?:away|aside)|unfinished)\b"
    r"|放弃|取消|退出|离开|离职|辞[掉去职了]|搬[走离出]|卖[掉了]|送人|送走|送给|丢[了掉]|弄丢|没了|好了|痊愈|治好|康复|(?<![想望算要定])戒(?![指律尺])|停[了掉止]|不再|拔了|拆|烧[了毁]"
    r"|断了|作废|解除|破除|结束|退[房掉了学休]|注销|卸载|分手|离婚|离了|分开|反目|倒闭|以前|曾经?|过去|原来|小时候|[不没].{0,16}了[。！]?$|用不着|忘[了掉记]"
    r"|逃[出走脱]|释放|撤[了销回]|脱离|散了|转让|处理掉|扔[了掉]|灭了|被开除|被逐|裁员|告别|摆脱|过世|失去|丧失|去世|死了|不在了|弃了|吊销|不见了|收回",
    re.IGNORECASE,
)
# What turns a statement round, of which only one of two has it.
_OTHER_WAY = (
    re.compile(r"\b(?:against|oppos\w+)\b|反对", re.IGNORECASE),
    re.compile(
        r"\b(?:at war|enem(?:y|ies)|hostile|fights? against)\b|为敌|开战|敌人|交战|敌对|绝交",
        re.IGNORECASE,
    ),
    re.compile(r"\b(?:was|were|been|got) (?:\w+ly )?\w+(?:ed|en) by\b|被"),
)
_EXCEPT = re.compile(r"\b(?:without|except|off|out of|yet to)\b|除了", re.IGNORECASE)
# An end that is told beside what goes on: "paid off a part and owes 5 gold".
_BESIDE = re.compile(
    r"\b(?:and|but) (?:now |still )?(?:is|has|\w{3,}s)\b(?! not\b| no\b| (?:very |quite )?(?:proud|happy|glad)\b| for (?:many )?years)"
)
# The far end of a scale is another thing than its denial: 最不喜欢 is not 不 + 最喜欢.
_LEAST = re.compile(r"\b(?:least|worst)\b|最(?:不|讨厌|差)", re.IGNORECASE)


class Sides(NamedTuple):
    """What a statement says.

    Attributes:
        current: the key words of what holds by it.
        former: those of what is over by it, as far as it says that something else holds.
        ends: whether what is left of it, without the former part, still tells an end.
        least: whether it names the far end of a scale.
        ending: the key words that tell the end.
    """

    current: frozenset[str]
    former: frozenset[str]
    ends: bool
    least: bool
    ending: frozenset[str]

    @property
    def goes_on(self) -> bool:
        """Whether the statement says what holds instead of what is over."""
        return bool(self.former)


@remembered
def sides(text: str) -> Sides:
    """Return the sides of a statement, in either language."""
    text = text[:MAX_SIDES_CHARS]
    over: list[tuple[int, int]] = []
    named: list[str] = []
    for pattern in _CHINESE if is_chinese(text) else _ENGLISH:
        for found in pattern.finditer(text):
            if found.group()[0] in "，," and _END.search(text[: found.start()]):
                continue  # "gave it up, and does not want it any more" goes on to nothing
            named.append(found["f"])
            over.append(found.span("cut") if "cut" in pattern.groupindex else found.span())
    rest, at = "", 0
    for start, stop in sorted(over):
        rest += text[at:start] + " " if start > at else " "
        at = max(at, stop)
    rest += text[at:]
    current = key_words(rest)
    former = frozenset[str]().union(*(key_words(name) for name in named)) - current
    end = _END.search(rest)
    ends = end is not None and not _BESIDE.search(rest, end.end())
    ending = key_words(end.group()) if end and ends else frozenset[str]()
    return Sides(current, former, ends, _LEAST.search(text) is not None, ending)


def contrary(new: str, old: str) -> bool:
    """Return whether two statements cannot be one, however many words they share: what one says
    is over holds by the other, or only one of them tells an end."""
    apart = sides(new).ends != sides(old).ends or bool(_EXCEPT.search(new)) != bool(
        _EXCEPT.search(old)
    )
    return apart or opposed(new, old)


def opposed(new: str, old: str) -> bool:
    """Return whether two statements cannot be one, even if one of them tells an end in words that
    nobody knows."""
    one, other = sides(new), sides(old)
    return bool(
        (_meets(one, other) and _new_value(one, other))
        or (_meets(other, one) and _new_value(other, one))
        or one.least != other.least
        or any(bool(way.search(new)) != bool(way.search(old)) for way in _OTHER_WAY)
    )


def _new_value(one: Sides, other: Sides) -> bool:
    """Whether what holds by `one` instead is not what `other` says: "changed the curtains to blue"
    and "the curtains are blue" are one."""
    return bool(one.current - other.current - _LIGHT - _CHANGING)


def names_former(new: str, old: str) -> bool:
    """Return whether `new` says that something is over which `old` says holds."""
    return _meets(sides(new), sides(old))


def _meets(one: Sides, other: Sides) -> bool:
    """Whether most of what is over by `one` holds by `other`; the verb alone says nothing."""
    former = one.former - _LIGHT
    shared = len(former & other.current)
    # one character of two is no half of a name: 北京, 南京
    han = any(len(word) == 1 and word > "\u3400" for word in former)
    return shared > 0 and (2 * shared > len(former) if han else 2 * shared >= len(former))
