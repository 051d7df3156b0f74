"""A Chinese clause taken apart: its subject, what it denies or ends, and its core."""

# ruff: noqa: E501 - a pattern reads better whole than broken
from __future__ import annotations

import re
from typing import NamedTuple

from reverie.models.rules.chinese_rules import ATTRIBUTES, KIN, PETS, RULES, SURNAMES

TIME = (
    "(?:(?:19|20)\\d\\d年(?:\\d\\d?月)?(?:\\d\\d?[日号])?|\\d\\d?月(?:\\d\\d?[日号]|份)?|大?前年|去年|今年|明年|后年"
    "|(?:上上|上|这|本|下下|下)个?(?:月|周末|周[一二三四五六日天]?|星期[一二三四五六日天]?|礼拜[一二三四五六日天]?)(?:\\d\\d?[日号])?"
    "|大?前天|昨天|昨晚|今天|今晚|今早|明天|明晚|大?后天|周末|周[一二三四五六日天]|星期[一二三四五六日天]"
    "|[\\d一二两三四五六七八九十几半]{1,3}个?(?:天|周|星期|月|年)(?:以前|之前|前|以后|之后|后)"
    "|最近|现在|目前|如今|刚才|早上|上午|中午|下午|晚上|凌晨|从小|小时候|平时|一直|从来|后来|当时|[\\d一二两三四五六七八九十]{1,3}点半?|的时候)"
)
_PAST_WORDS = "以前|曾经|过去|之前|原来|本来|原先"
_ADVERB = re.compile(
    f"(?:{TIME}|{_PAST_WORDS}|[春夏秋冬]天|已经|刚刚|刚|也|还|都|其实|特别|非常|真的|真是|真|很|超级|超|挺|比较|平常|通常|有点"
    "|确实|当然|终于|总算|又|就|才|只|尤其|并|并且|仍然|仍|依然|突然|正式|因此|一起|常常|经常|总是|每天|每周|每年|每个月|每晚|每早|习惯|开始|偶尔|有时候?|并不是|因为工作|(?:早上|晚上))"
)
_LEAD = re.compile(
    "(?:但是|不过|而且|所以|然后|可是|因为|但|并且|另外|还有|其实|说实话|老实说|对了|嗯+|哦+|啊+|哈+|好的?|是的|对|那个|那|于是|结果|同时|另外|顺便说一下|没错|不是)[，,、 ]?"
)
_FUTURE = re.compile(
    "(?:要|会|打算|准备|计划|将要?|即将|快要|想要?|希望|决定)(?!不|过敏|说|讲|弹|游泳|做饭|做|开车|唱|拉|画)"
)
_NOT = re.compile("不再|再也不|已经不|不太|不怎么|从不|从来不|不|没有|没|并不|不是很")
_NAME = re.compile(
    f"(?:{SURNAMES})[\u4e00-\u9fff]{{1,2}}?(?=说|是|住|在|喜欢|讨厌|有|要|会|去|来|想|弄|拥|失|偷|杀|救|给|打|守|恨|相信|得|变|已|的|和|也|最|今年|养|爱|对|从|把|被|不|没|结婚|卖|丢|搬|买|叫|决定|打算|送|还[要会在有想]|需要|现在|如今|目前|眼下|每[天周月]|正在|平时|一直|常常|经常|看起来|用不着|这阵子|这几年|手[上里]|习惯|供奉)|(?:小|阿|老)(?!的)[\u4e00-\u9fff](?=是|住|在|喜欢|讨厌|有|要|会|去|来|的|最|今年|养|爱|对|从|把|被|不|没|结婚|搬|叫)"
)
_KIN_FIRST = re.compile("(?P<noun>" + "|".join(sorted(KIN, key=len, reverse=True)) + ")")
# An attribute whose value follows without a verb or 的: 体重70公斤, 月薪涨到一万.
_MEASURED = re.compile(
    f"的?(?P<a>{'|'.join(ATTRIBUTES)})(?=[涨降升减增]到|提高到|[\\d零一二三四五六七八九十百千万两])"
)
_CALLED = re.compile(
    "的(?P<a>[\u4e00-\u9fff]{1,6}?)(?=是|为|叫|改成|变成|换成|[涨降升减增]到|提高到|在|：|:)"
)
_SOMEBODY = re.compile(f"{'|'.join(sorted(KIN))}|{PETS}")
_IS_CALLED = re.compile(
    "(?:名字)?(?:叫做|名叫|叫)(?P<name>[\u4e00-\u9fff·A-Za-z]{1,8}?)(?=[，。！；,、\\s]|$|今年)"
)
# Adverbs that a subject of unknown words must not end in: 北城门如今(是).
_TRAILING = re.compile(
    "(?<=[\u4e00-\u9fff]{2})(?:这阵子|这几年|如今|现在|目前|眼下|最近|今天|看起来|似乎|好像|一直|还|也|都|就|却|手上|手里|仍然?)+$"
)
_NAME_CHARS = re.compile(
    "[\u4e00-\u9fff·]{1,4}?(?=迷上|被|把|在|和|跟|给|爱|怕|前天|大前天|后天|今天|明天|昨天|上周|下周|今年|下|上|明|去年|昨|前天|今天|已经|刚|就|要|是|住|在|喜欢|讨厌|有|会|去|来|结婚|生|的|也|很|最近|都|对|从|不|考|开|得|正|马上|终于|最|搬|想|爱|养|学|毕业|病|$|，)"
)

# What a given name never begins with: verbs and adverbs that come right after a relative.
_NO_NAME = (
    "死|打算|一有|一直|一般|一个人|迷上|爱上|经常|家(?:里|在|住)|早上|晚上|中午|上午|下午|凌晨|周[一二三四五六日末]|大学|学的|坐|记着|偏好|每|现在|现$|还|需|用|穿|戴|想|认为|反对|支持|改|午饭|早饭|晚饭|把|去|常|中午|种|持有|拿|拥有|正在|正在?前往|被"
    "|给|听|看|玩|读|写|学(?:会|习|着|起|过|了)|开(?:着|车|始|了)|骑|吃|喝|买|卖|租|参加|加(?:入|班)|收(?:养|到|集)|供|信(?:仰|佛|任|教)"
    "|讨厌|受不|没|又|就|再|跟|和(?!平)|与|向|因为|会(?!会)|能(?:说|够|用)|可以|应该|最近|习惯|平时|一直|见过|见到|去过|去了|病|喜欢|认识|结婚|考|毕业|出差|搬|住|工作|上班|上学"
)
# A name without a word that says so: with a surname, doubled, 小雨 and 阿杰, or two plain characters.
_GIVEN = re.compile(
    f"(?:{SURNAMES})[\u4e00-\u9fff]{{1,2}}|([\u4e00-\u9fff])\\1|[小阿老大][\u4e00-\u9fff]{{1,2}}"
    "|(?:(?![爱开学做看说走跑生病中当教骑养种写画唱想怕懂特非真打买卖吃喝在有是去来找赢输得挺很太都])[^了着过的在吃喝给被把很太]){2,3}"
)


class Frame(NamedTuple):
    """A clause taken apart, as `phrases.Frame` is; `habit`: said to be done again and again."""

    subject: str
    owner: str
    noun: str
    name: str
    core: str
    negated: bool
    ended: bool
    past: bool
    future: bool
    habit: bool


def to_third(clause: str, label: str) -> str:
    """Return `clause` with 我 replaced by `label` ("用户", a name)."""
    return re.sub("我们家|我们|咱们|本人|俺|我", lambda _: label, clause)


def strip_lead(clause: str) -> str:
    """Drop connectives and interjections that start a clause."""
    for _ in range(3):
        match = _LEAD.match(clause)
        if match is None or match.end() == len(clause):
            break
        clause = clause[match.end() :]
    return clause.strip("，,、 ")


def begins_without_subject(clause: str) -> bool:
    """Return whether a clause leaves its subject out, as the second of two often does."""
    bare = clause
    for _ in range(6):
        match = _ADVERB.match(bare) or _FUTURE.match(bare) or _NOT.match(bare)
        if match is None:
            break
        bare = bare[match.end() :]
    if bare.startswith(("有人", "有个", "有一个", "有只")):
        return False  # that is its subject
    return any(rule.pattern.match(bare) for rule in RULES) or bare.startswith(
        ("是", "有", "在", "去", "参加")
    )


def carried_on(clause: str, label: str) -> str:
    """Return whom the next clause is about when it leaves its subject out, after a clause about
    somebody of the speaker's: by name if it has one; "" after any other clause.

    Args:
        clause: in the third person, for example "安娜妹妹叫小梅".
        label: the speaker's name in it.
    """
    frame = frame_of(clause, label, loose=False)
    if frame is None or frame.owner != label or not _SOMEBODY.fullmatch(frame.noun):
        return ""
    called = _IS_CALLED.match(frame.core)
    return frame.name or (called["name"] if called else frame.subject)


def frame_of(clause: str, label: str, *, loose: bool) -> Frame | None:  # noqa: C901, PLR0912, PLR0915 - the particles come in any order
    """Take a third-person clause apart, or return None where no subject is found.

    Args:
        clause: for example "用户的女儿小雨不再住在上海".
        label: the speaker's name in it.
        loose: whether any words before a stative verb may be the subject.
    """
    lead = ""
    for _ in range(4):
        match = _ADVERB.match(clause)
        if match is None or clause.startswith(label):
            break
        lead += match.group()
        clause = clause[match.end() :].lstrip("，, ")
    noun = name = ""
    if clause.startswith(label):
        owner = label
        rest = clause[len(label) :]
        bare = rest.removeprefix("的").removeprefix("家的").removeprefix("家")
        kin = _KIN_FIRST.match(bare)
        if kin:
            noun = kin["noun"]
            rest = bare[kin.end() :]
            if (
                (m := _NAME_CHARS.match(rest))
                and _GIVEN.fullmatch(m.group())
                and not re.match(
                    rf"{_NO_NAME}|叫|名|是|在|有|今年|也|都|喜欢|住|不|要|会|很|的|，|从|对|最|昨|明|上|下|去|来|结|生病|刚|已"
                    r"|[一二两三四五六七八九十百\d]+(?:个?半?月|岁|周岁)",
                    rest,
                )
            ):
                name = m.group()
                rest = rest[m.end() :]
        elif m := re.match(
            f"(?:的|家的?)(?P<pet>{PETS})(?P<n>[\u4e00-\u9fff]{{0,4}}?)(?=叫|名|是|死|走|去世|不见|丢)",
            rest,
        ):
            noun, name = m["pet"], m["n"]
            if len(noun) == 2 and noun in {"猫咪", "狗狗"} and name:  # 猫 + 咪咪, not 猫咪 + 咪  # noqa: PLR2004 - a few words
                noun, name = noun[0], noun[1] + name
            rest = rest[m.end() :]
        elif m := _MEASURED.match(rest) or _CALLED.match(rest):
            noun = m["a"]
            rest = rest[m.end() :]
    elif (m := re.match("玩家|主角|旅行者|冒险者", clause)) or (m := _NAME.match(clause)):
        owner = m.group()
        rest = clause[m.end() :]
    elif loose and (
        m := re.match(
            "(?P<s>[\u4e00-\u9fff]{2,8}?)(?=已经|又|再次|是|变|被|很|干净|不再|关|有|恢复)", clause
        )
    ):
        owner = _TRAILING.sub("", m["s"])
        rest = clause[m.end() :]
    else:
        return None
    subject = owner + (("的" if noun else "") + noun) + name
    core = rest
    habit = negated = ended = past = future = False
    past = bool(re.search(_PAST_WORDS, lead))
    for _ in range(8):
        if m := re.match("不再|再也不|已经不|早就不|没有再", core):
            ended = True
            core = core[m.end() :]
        elif m := _ADVERB.match(core):
            word = m.group()
            past = past or bool(re.fullmatch(_PAST_WORDS, word))
            habit = habit or word.startswith(
                ("每", "开始", "经常", "总是", "习惯", "常常", "平时", "通常")
            )
            core = core[m.end() :]
        elif (m := _NOT.match(core)) and not core.startswith(
            ("不是在", "不能", "没想到", "没关系", "没问题", "不好意思", "不错", "不客气")
        ):
            negated = True
            core = core[m.end() :]
            if m.group() in {"没有", "没"} and re.match(
                f"(?:{PETS})|[\u4e00-\u9fff]*(?:狗|猫|车|孩子|女儿|儿子|男朋友|女朋友)", core
            ):
                core = "有" + core
        elif (m := _FUTURE.match(core)) and not core.startswith(("想念", "会员", "要求", "想法")):
            future = True
            core = core[m.end() :]
        elif m := re.match("能吃|可以吃", core):
            core = core[m.end() - 1 :]
        else:
            break
        core = core.lstrip("，, ")
    if core.startswith("不能吃"):
        negated, core = True, core[2:]
    if negated and core.rstrip("。！ ").endswith("了"):
        ended, negated = True, False
    if (
        past
        and not habit
        and re.match("住|在|是|喜欢|爱|养|有|抽烟|喝|吃", core)
        and "以前" in (lead + rest)
    ) or "曾经" in (lead + rest):
        ended = True
    return Frame(subject, owner, noun, name, core, negated, ended, past, future, habit)
