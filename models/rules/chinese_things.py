"""What Chinese facts are about, found by the frame it stands in: 弄丢了钥匙, 在美团上班, 孙掌柜.

Chinese writes no word boundaries, so a thing is taken only from a place where one must stand: after
a verb that has such an object, between 在 and what is done there, before 过敏, after a trade. Words
of a closed list that name nothing in particular (东西, 公司, 外面) are left out.
"""

# ruff: noqa: E501 - a table reads better a line a case
from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from reverie.memory_graph.drafts import EntityDraft
from reverie.models.rules import chinese_frame, cues
from reverie.models.rules.chinese_rules import (
    CITIES,
    CONDITIONS,
    EVENTS,
    GENERIC,
    GENERIC_PLACES,
    GIVEN_TITLES,
    KIN,
    NOT_NAMES,
    ORGANIZATIONS,
    PLACE_TAILS,
    SINGLE,
    SURNAMES,
    TRADES,
    WILDS,
)
from reverie.models.rules.chinese_words import plain
from reverie.models.rules.names import chinese_names
from reverie.models.rules.text import MAX_CLAUSE_CHARS, MAX_CLAUSES, sentences

_HAN = "\u4e00-\u9fff"
_NUMBER = "[一两二三四五六七八九十几半数百千\\d]{1,4}"
_CLASSIFIER = "[个只条匹头辆台把部件本位名套栋间家架艘块张支枝瓶颗粒双对些场趟碗杯壶份盘串顿株棵朵束枚封幅副根卷袋包盒片座群队款门首篇节种味帖剂柄坛斤捆桶罐]"
# Without a number a classifier may as well begin the noun (家具, 本子), so few are taken for one.
_BARE = f"[个只辆台把件套间家碗杯壶份盘瓶颗株棵束枚副串盒袋块部趟封](?![子人体])(?=[{_HAN}]{{2}})"
_LEAD = f"(?:(?:这|那|某)?{_NUMBER}?{_CLASSIFIER}(?<!家)(?=[{_HAN}A-Za-z])(?<=[这那某一两二三四五六七八九十几半数百千\\d].)|{_NUMBER}家|{_BARE})?"
_OF = f'(?:[^，。！？；：,、“”"的了我你您他她它]{{1,8}}的|[{_HAN}]{{1,3}}家)?'
_END = (
    f"(?=[^{_HAN}\\w]|$|[了吧呢啊呀哦嘛啦着过也都就才又很太真被把给和跟与从在是不没还半\\d]|[两三四五六七八九十](?=[年天个月块元次])|以及|回来|回去|过敏|会(?=[{_HAN}])(?!$)|[上中下](?=[了丢弄]|$)|上班|工作|实习|送给|交给|还给|当给|卖给"
    "|因为|所以|但是|不过|而且|的|这|那|今|明|昨|前|我|你|您|他|她|它)"
)
_BODY = f"(?![在下])(?P<o>[{SINGLE}]|[{_HAN}A-Za-z][{_HAN}A-Za-z\\d]{{1,6}}?)"
_NAME = f"(?:{SURNAMES})[{_HAN}]{{1,2}}?"
_DONE = "(?:了|过|走|到|回|下|掉|来|好|中|取|上){1,2}"


class _Rule(NamedTuple):
    kind: str
    pattern: re.Pattern[str]


def _after(kind: str, verb: str) -> _Rule:
    """A thing after a verb: its measure word and what it belongs to are no part of it."""
    return _Rule(kind, re.compile(f"(?:{verb}){_LEAD}{_OF}{_LEAD}{_BODY}{_END}"))


def _between(kind: str, before: str, after: str) -> _Rule:
    return _Rule(kind, re.compile(f"(?:{before}){_LEAD}{_OF}{_LEAD}{_BODY}(?={after})"))


_VERBS = "的了开办当做找有住在是去到从读上念考报进于和跟与把被给我你他她它，"
_WORK = "上班|工作|实习|任职|就职|打工|兼职|做|当|干|担任|带队|读书|读研|读博|上学|念书|念大学"
_RULES: tuple[_Rule, ...] = (
    _between("food", "对", "(?:严重|重度|有点|很|会|都|也)*过敏"),
    _after("food", "吃不(?:了|惯|得|来)|喝不(?:了|惯|得|来)|(?:从不|从来不|不再?|不能|不太?爱|爱|常|天天|每天|平时|只|少|多|想|戒)(?:吃|喝)(?![了过点完得])|戒(?:掉)?了?|忌口?|(?:吃|喝)(?:了|过)(?=[一两几半碗杯壶份盘顿])|(?:泡|来|点|喝|吃|煮|炖|要|上)(?=[一两三几半]?[碗杯壶份盘瓶串锅笼])"),
    _after("thing", f"(?:买|卖|丢|捡|偷|抢|借|换|养|采|挖|送|订|修|带|赢|收|找|拿|取|夺|藏|打碎|弄丢|弄坏|抽|中|得|赔|摔|砸|烧|种){_DONE}(?!你|我|人|吗|没)"),
    _after("thing", f"(?:买|养|借|带|送|要|有|献|赠|修|挑|订|开|骑|租|得有|是)(?={_NUMBER}{_CLASSIFIER})"),
    _after("thing", "(?:入手|购入|购买|获得|得到|拥有|需要|急需|得有|想要|弄丢|偷走|抢走|捡到|挖到|采集|打造|锻造|炼制|修复|夺回|取回|归还|献上|带来|交出)了?"),
    _after("thing", "(?:最近|现在|正|在|开始|想|打算)(?:学习?|练习?)(?![校生期院会完到的过做])|(?:弹|拉|吹|打)的是|(?:开|骑|用|戴|养|玩|买|穿)的是|迷上了?|沉迷"),
    _between("thing", "把", "(?:偷偷|都|全)?(?:送|交|还|赠|献|卖|丢|弄|落|忘|偷|借|藏|扔|当给|当了|修|砸|烧|带|拿|放|埋|换|退|递|塞|抵押)"),
    _between("thing", f"(?:这|那)(?:{_NUMBER})?{_CLASSIFIER}", "(?:就|请|麻烦|我)?(?:送|交|还给|还你|赠|归你|给你|献)"),
    _between("thing", "(?:你|您|他|她)的", "(?:我|玩家)(?:已经|都|给你|帮你)?(?:修|找|买|带|还|拿|弄|送)"),
    _Rule("event", re.compile(f"(?:(?:参加|报名?|跑|去|看|考|准备|办|出席|备战|备考|做|有|是|开|举行|赶|逛)(?:了|过|完|一下)*)+{_LEAD}(?P<o>(?:(?![参报去跑看考准备出做有是开举赶逛办])[{_HAN}A-Z\\d]){{0,5}}?(?:{EVENTS}))")),
    _between("organization", "在", _WORK),
    _after("organization", "(?:入职|跳槽(?:到|去)|跳到|就职于|任职于|供职于|毕业于|加盟|考上|考进|考入|考取|保送|签约|转会到|投靠|加入|效力于?|隶属于?)了?"),
    _between("organization", "(?:死|落|栽)在了?", "的?手[里上中]"),
    _between("organization", "从", "离职|辞职|辞了|裸辞|跳槽|跳到|毕业|退休|退学"),
    _between("organization", "(?:已经)?不在", "(?:上班|工作|做|干|待)?了"),
    _between("organization", "(?:拿到|收到|拿了|收了|接到|接了|拒了)", "的?(?:offer|录取|邀请)"),
    _between("organization", "被", "(?:录取|录用|裁|挖走|挖去|优化)"),
    _after("place", "(?:来自|搬(?:家)?(?:到|去|来|回|进)|移居到?|定居在?|住(?:在|进|到)|前往|赶往|飞往|飞到|逃往|逃到|路过|途经|潜入|闯入|流落到?|出差去|(?:去|到|回)(?:了|过)(?:趟|一趟)?|去趟|进(?:了|入)|困在|关在|藏在|埋在|葬在|死在|落在|位于|坐落在|约在|定在|驻扎在|长在|生长在|(?:地点|地方|地址)(?:在|是|定在|改在|改到|选在))了?"),
    _between("place", "从", "(?:里|中|上|那边|那里)?(?:带|取|拿|偷|逃|搬|来的?|回来|搬|出发|飞|逃|赶|过来)"),
    _between("place", "(?:不|还|都|一直|现在)?住", "(?:那边|附近|这边|了)?$"),
    _between("place", "(?:要|想|会|打算|准备|计划|一起|下周|明天|自己|出差|飞|带队|回|跑|国庆|春节|暑假|寒假|五一|周末|带.{1,3})去", f"(?:拍照|散心|玩|旅游|旅行|出差|团建|度假|参加|开会|看|拍|找|读|上|工作|面试|探亲|爬山|滑雪|采|救|送|$|[^{_HAN}]|了|一趟)"),
    _between("place", "在", "(?:里|中|上|下|那边|附近)?(?:吃|聚|见面|碰头|集合|请客|会合|租房|租了|买房|买了房|开店|开了|看见|看到|遇到|遇见|碰到|碰见|发现|找到|捡到|救|挖|采|出生|长大|办|举行|举办|结婚|出差|旅游|度假|定居|住|生活|养伤|失踪)"),
    _Rule("place", re.compile(f"^在{_OF}(?P<o>[^的做当上下去来吃看学找聊打等忙，]{{2,7}}?)(?:里|那边|附近)?$")),
    _Rule("place", re.compile(f"(?:在|只有|到|去|往|向|了|是)(?P<o>(?!了|到)[{_HAN}]{{1,4}}?(?:{WILDS}))(?=[里上中下的有才，。！]|附近|深处|$)")),
    _after("thing", "(?:咬死|打死|杀|毁|烧毁|砸烂)了"),
    _after("thing", "(?:开|经营|盘下|办)了?(?=一?[家间座])"),
    _Rule("organization", re.compile(f"(?:考|报|上|读|念|在|去|从|进|是|的|到|于|了|^)(?P<o>(?![一两几这那哪某])[^{_VERBS}]{{2,6}}?(?:{ORGANIZATIONS}))(?!里)")),
    _Rule("place", re.compile(f"(?:^|[在到去])(?P<o>[{_HAN}]{{2,4}}(?:公园|广场|大厦|路口|车站|商场|酒店|餐厅|咖啡馆|图书馆))(?=门口|见|集合|碰头|会合)")),
    _after("thing", "(?:来|去|要|想|得|(?:帮|替|给)[^，]{1,4}?)(?:取|采|寻|找|求|讨|买|借|打造)(?:回|到|一?些|点)?(?![他她它你我人])"),
    _Rule("thing", re.compile(f"(?:卖|养|放|骑|抓|捉|钓|怕|遛|杀)(?P<o>[{SINGLE}]){_END}")),
    _between("thing", "被", "(?:抓|杀|打|抢|偷|骗|咬|带走|绑|追|救|关|困|挟持|劫|吃|烧|拆)"),
    _after("thing", "(?:看见|看到|撞见|碰见|碰到|遇见|遇到|抓住|抓到|打败|击败|杀死)了"),
    _between("concept", "(?:自己|现在|在|是|主要|一直|专门|改行|转行)(?:在)?做", "的?$"),
    _Rule("concept", re.compile(f"(?:有|得了?|患了?|患有|查出了?|确诊了?)(?P<o>{CONDITIONS})")),
)  # fmt: skip
_PEOPLE: tuple[re.Pattern[str], ...] = (
    re.compile(f"(?<![多感致])(?P<o>(?:{SURNAMES})(?:{GIVEN_TITLES}))(?!店|铺|家的店)"),
    re.compile(f"(?:{'|'.join(sorted((*TRADES, *KIN), key=len, reverse=True))})(?P<o>(?:{SURNAMES})(?:[{_HAN}]{{1,2}}?|[一二三四五六七八九]))(?=的|[，。！？；,、\\s]|$|家|死|被|把|在|说|给|是|从|也|又|正|就|昨|今|明|前|上|下|每|对|去|来|要|有|还|刚|已|会|想|喜|爱|住|结|考)"),
    re.compile("^(?P<o>[小阿老](?![姐师板爷乡兄弟大婆公哥伙子心姨妹朋家王])[\u4e00-\u9fff])(?=[，,！!]|$)"),
    re.compile(f"(?:^|[，,；。和跟与找给问约请让叫是的])(?P<o>{_NAME})(?=教授|老师|医生|大夫|先生|女士|师傅|主任|博士|律师|将军|同学)"),
    re.compile(f"(?:^|[，,；和跟与找给问约请让叫见换是])(?:成)?(?P<o>[老小](?:{SURNAMES}))(?=[借带不没说要想去来在是也都今明昨把被给和跟与从到约请结搬住有会和，,。！]|$)"),
    re.compile(f"(?P<o>阿(?![姨婆公爷妈爸姐哥妹弟嬷拉])[{_HAN}])(?=[借带不没说要想去来在是也都今明昨前把被给和跟与从到约请结搬住有会进考对和，,。！的]|$)"),
    re.compile(f"(?:^|[，,])(?P<o>{_NAME})(?=(?:现在|以前|就|也|才)?是(?:我|你|您|咱)(?:们|家|的)?[{_HAN}]{{0,4}}(?:{'|'.join(sorted(KIN, key=len, reverse=True))}))"),
    re.compile(f"(?:^|[，,])(?!{NOT_NAMES})(?P<o>{_NAME})(?=现在|还|最近|今[天年]|昨[天晚]|去年|上周|上个月|已经|刚|怎么样|去哪|呢[？?]|结婚|生日|回来)"),
    re.compile(f"(?:[我他她它]|名字?|人称|全名|本名|大名|小名|家[猫狗]|名)(?:就|就是)?(?:叫做?|唤作)(?P<o>(?!什么|我|你|他|她)[{_HAN}·]{{2,4}}?)(?=[，。！？；,\\s]|$)"),
    re.compile(f"(?:{'|'.join(sorted(KIN, key=len, reverse=True))})(?:名字)?叫(?P<o>(?!什么)[{_HAN}]{{1,4}}?)(?=[，。！？；,\\s]|$)"),
    re.compile(f"(?:救下?|杀死?|打败|击败|拜访|背叛|出卖|保护|护送|嫁给|娶|认识|遇[到见]|见到)了?(?:[{_HAN}]{{2,3}}的)?(?P<o>{_NAME})(?=[，。！？；,\\s的]|$)"),
)  # fmt: skip
_PRONOUN = re.compile(
    "[我你您他她它咱们这哪谁啥]|什么|怎么|自己|大家|别人|有人|一下|一点|一起|多少|那[个里边些儿]"
)
_NO_PERSON = re.compile("[生师员人家者的了]$|^小[时米麦马路说]|^老(?:师|板|家)")
_GENERIC = re.compile(
    f"(?:{GENERIC})|[一两三几半\\d]*个?半?个?(?:小时|分钟|钟头|礼拜|星期)|(?:{GENERIC_PLACES})|(?:{'|'.join(KIN)})|{chinese_frame.TIME}|{_NUMBER}.?"
)
# What makes another thing of a word: 苹果树, 篮球场, 牛奶店.
_NO_THING_AFTER = re.compile("[店馆厅树场队班课节迷味色架盒厂群友]|老师|教练|比赛|公司|爱好者|大学")
_ORDERS = re.compile("别|千万|记得|推荐|不许|务必")
_TIME = re.compile(chinese_frame.TIME)
_NO_START = re.compile(
    f"[在了着过的和跟与把被给从就也都还很太不没点些]|[好新旧破大小](?:[{SINGLE}])$"
)
_TAIL = re.compile("(?<=..)(?:里面|里|那边|这边|附近|旁边|脚下|深处|外面|手里|手上)$")
# 国贸的 in "在国贸的星巴克": what a place or an organisation is part of.
_WHOLE = re.compile(f"(?:.*[在到是去了上进])?(?P<o>{CITIES}|[{_HAN}]{{2,4}})的$")
_PLACE = re.compile(f"(?:{CITIES})|[{_HAN}]{{1,6}}(?:{PLACE_TAILS})")
_NOT_OURS = re.compile(
    "^(?:请|麻烦|帮|给我|告诉|推荐|假如|如果|要是|假设|你能|能不能|可以帮|写|讲|翻译|解释|介绍|怎么|为什么|什么|如何)"
)
_TELLS = re.compile("[我俺咱]")
_ASKED = re.compile(
    "[？?]|[吗么呢]$|怎么|为什么|什么|哪[个些里家]|多少|是不是|能不能|要不要|有没有"
)
_SPLIT = re.compile("[，,；;。！!\n]")


def chinese_things(text: str) -> list[EntityDraft]:
    """Return the people, things, places and organisations that statements of a text are about.

    Args:
        text: a turn's own words or a memory, in any person; questions, requests and hypotheticals
            in it give nothing.
    """
    return [one for clause in _statements(text) for one in _of_clause(clause)]


def _statements(text: str) -> Iterator[str]:
    for sentence in sentences(text)[:MAX_CLAUSES]:
        if cues.ZH_UNREAL.match(sentence):
            continue
        clauses = _SPLIT.split(sentence.rstrip("。！!.~～ "))
        for place, clause in enumerate(clauses):
            bare = chinese_frame.strip_lead(clause.strip()[:MAX_CLAUSE_CHARS])
            if bare and not _NOT_OURS.match(bare) and not _ASKED.search(bare):
                yield bare
            elif place == 0 and _NOT_OURS.match(bare) and not _TELLS.search(sentence):
                break  # what follows belongs to the request


def people_in(text: str) -> list[str]:
    """Return the people that a text names by a title, a trade, a relative or a nickname."""
    titled, *others = _PEOPLE
    return [match["o"] for match in titled.finditer(text)] + [
        match["o"]
        for pattern in others
        for match in pattern.finditer(text)
        if not _NO_PERSON.search(match["o"]) and match["o"] not in KIN
    ]


def _of_clause(clause: str) -> list[EntityDraft]:
    people = people_in(clause)
    found = [EntityDraft(name, "person") for name in people]
    taken: list[tuple[int, int]] = []
    for kind, pattern in _RULES:
        for match in pattern.finditer(clause):
            start, end = match.span("o")
            if any(a < end and start < b for a, b in taken):
                continue
            where = kind in {"place", "organization"}
            name = _TAIL.sub("", match["o"]) if where else match["o"]
            whole = _WHOLE.match(clause, 0, start) if where else None
            named = _names_something(name) and not any(
                name in person or person in name for person in people
            )
            if named:
                taken.append((start, end))
                found.append(EntityDraft(name, _kind_of(name, kind)))
            if whole and whole.start("o") >= match.start() and _names_something(whole["o"]):
                found.append(EntityDraft(whole["o"], "place" if named else kind))
    for start, word, kind in [] if _ORDERS.search(clause) else plain(clause):
        end = start + len(word)
        known = any(a < end and start < b for a, b in taken) or any(word in p for p in people)
        if not known and not _NO_THING_AFTER.match(clause, end):
            found.append(EntityDraft(word, kind))
    return found


def named(text: str) -> list[EntityDraft]:
    """Return all names and things of a Chinese text; a place that only names another is left out:
    武汉 in 武汉大学."""
    found = [
        one
        for clause in _statements(text)
        for one in (*chinese_names(clause), *_of_clause(clause))
        if not _GENERIC.fullmatch(one.name)
    ]
    whole = [
        one.name for one in found if one.type in {"organization", "thing", "person", "concept"}
    ]
    return [
        one
        for one in found
        if not any(
            one.name in n and one.name != n and one.name not in text.replace(n, "") for n in whole
        )
    ]


def _names_something(name: str) -> bool:
    return not (
        _PRONOUN.search(name)
        or _GENERIC.fullmatch(name)
        or _NO_START.match(name)
        or _TIME.match(name)
    )


def _kind_of(name: str, kind: str) -> str:
    if kind == "organization" and _PLACE.fullmatch(name):
        return "place"
    if kind == "thing" and re.fullmatch(f"[老小](?:{SURNAMES})|阿.", name):
        return "person"
    return kind
