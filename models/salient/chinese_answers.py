"""What a short Chinese answer says with its question: "有什么忌口吗" - "不吃羊肉"."""

# ruff: noqa: E501 - a pattern reads better whole than broken
from __future__ import annotations

import re
from collections.abc import Sequence

from reverie.models.rules import chinese_frame, cues
from reverie.models.rules.chinese_rules import KIN, PETS
from reverie.models.rules.chinese_things import people_in
from reverie.models.rules.names import chinese_names

MAX_ANSWER_CHARS = 30
MAX_QUESTION_CHARS = 30
MIN_SAID_CHARS = 2  # of an answer that is a clause of its own

_KIN = "|".join(sorted(KIN, key=len, reverse=True))
_WHAT = "什么|啥|哪(?:[里儿款种家个本部首条支类])?"
# (question, statement); {a} is the answer. The first that fits is taken.
_FRAMES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), made)
    for pattern, made in (
        ("(?:你|您)(?:现在)?(?:住在?|家在)(?:哪里?|哪儿|什么地方|哪个城市)", "我住在{a}"),
        ("(?:你|您)(?:是哪里人|来自哪里|老家在?哪里?|是哪儿人|从哪(?:里|儿)?来的?)", "我来自{a}"),
        ("(?:你|您)(?:现在)?在(?:哪里?|哪儿|什么公司|哪家公司|什么单位|哪个单位)(?:工作|上班|高就)", "我在{a}工作"),
        ("(?:你|您)(?:现在)?在?(?:哪里?|哪儿|哪所大学|哪个学校|什么学校|哪所学校)(?:上学|读书|念书|上大学|读大学)", "我在{a}读书"),
        ("(?:你|您)(?:是|现在|现在是)?(?:做什么(?:工作|行业)?的?|干什么的|干哪行的?|做哪行的?)|(?:你|您)的(?:职业|工作)是什么", "我是{a}"),
        ("(?:你|您)(?:叫什么(?:名字)?|怎么称呼|的名字是什么)|(?:请问)?(?:您)?贵姓|怎么称呼(?:您|你)?", "我叫{a}"),
        ("(?:你|您)(?:今年)?(?:多大了?|几岁了?|多大年纪了?)", "我今年{a}"),
        ("(?:你|您)(?:养了?什么宠物|有什么宠物)", "我养了{a}"),
        ("(?:你|您)对什么过敏|(?:你|您)?有什么过敏的?", "我对{a}过敏"),
        ("(?:你|您)(?:最)?喜欢(?:吃|喝|看|听|玩)?(?:什么|哪[个种部本])[\u4e00-\u9fff]{0,6}", "我喜欢{a}"),
        ("(?:你|您)(?:的)?(?P<x>生日|爱好|梦想|专业|血型|星座|微信号|电话|邮箱|身高|体重|鞋码|预算)(?:是(?:什么|多少|哪天|几号|什么时候)|多少)", "我的{x}是{a}"),
        ("(?:你|您)?(?:平时|最近|平常)?有(?:什么|啥|哪些)(?P<x>爱好|兴趣|特长|梦想|目标)", "我的{x}是{a}"),
        ("(?:你|您)(?:上周|上个月|昨天|周末|假期|去年|暑假|国庆|春节)?去了?(?:哪里?|哪儿|什么地方)(?:了|玩了?)?", "我去了{a}"),
        (f"(?:你|您)家?的?(?P<x>{_KIN}|{PETS})(?:叫(?:什么|啥)(?:名字)?|是(?:谁|哪位)|怎么称呼|姓什么|的名字是什么)", "我{x}叫{a}"),
        (f"(?:你|您)家?的?(?P<x>{_KIN}|{PETS})(?:今年|现在)?(?:几岁|多大)了?", "我{x}今年{a}"),
        (f"(?:你|您)(?P<x>(?:平时|一般|通常|早上|晚上|经常|最近|现在)*(?:喝|吃|用|看|听|玩|养|学|练|弹|开|骑))的?(?:是)?(?:{_WHAT})[\u4e00-\u9fff]{{0,6}}", "我{x}{a}"),
    )
)  # fmt: skip
_AGREED = re.compile(
    "(?:嗯+|哦|啊|是的|是啊|对的?|对啊|不是的?|没有|没|不|有的?|有啊|当然)[，,、 。]+"
)
# Answers about the talk; a clause that only says no.
_EMPTY = re.compile(
    "(?:不用|不必|不需要|没事|没关系|不了|不是|没什么|没有?$|没有[，,]?|还没|在的|在呢|在$|有的|有啊|有$|去吧|是的|是啊|是$|不知道|不清楚|不太清楚|不确定|随便|都行|可以|没想好|不告诉|不行|不要)[，,了啊呀呢吧谢你您]*"
)
_ABOUT_OTHERS = re.compile(f"[她他它]|(?:你|您)(?:们|的|家)|(?:{_KIN})")
_SHE_FIRST = re.compile("[她他](?!们|俩|人|乡|日)")
_OWN_RELATIVE = re.compile(f"(?P<whose>[我你您])(?:家|的)?(?P<kin>{_KIN})")
MAX_TURNS_BACK = 3  # where somebody may have been named whom "she" means
_PRONOUN = re.compile("(?:^|(?<=[，,]))[她他](?!们|俩)")


def statement_of(question: str, fragment: str) -> str | None:
    """Return an answer as a full sentence in the first person; "" where only the words of the
    question tell what it means; None where it is no short answer.

    Args:
        question: without its question mark.
        fragment: the sentence that answers it.
    """
    value = fragment.strip("。！!，,~～ ")
    if len(value) > MAX_ANSWER_CHARS or len(question) > MAX_QUESTION_CHARS:
        return None
    if re.search("[？?]", value):
        return None
    bare = _AGREED.sub("", value, count=1)
    if told := _about_person(question, bare):
        return told
    if "我" in value:
        return None
    question = re.sub("^(?:那|那么|请问|对了|客官|这位[\u4e00-\u9fff]{2})[，,]?", "", question)
    question = question.rstrip("呢呀啊吗")
    is_own = not _ABOUT_OTHERS.search(question) and not people_in(question)
    if is_own and _says_itself(bare):
        return f"我{bare}"
    for pattern, made in _FRAMES:
        if found := pattern.fullmatch(question):
            inner = re.sub("^(?:住在|住|在|去了|叫|是|来自)", "", bare).rstrip("了呀啊吧")
            inner = re.sub("[吧呀啊哦](?=[，,])", "", inner)
            if re.match("不|没|无|保密", inner) or not inner:
                break
            return made.format(a=inner, x=found.groupdict().get("x") or "")
    return ""


def about_her(sentence: str, before: Sequence[tuple[str, bool]]) -> tuple[int, str] | None:
    """Return a sentence that begins with "she" or "he" with the person put in whom the turns before
    name, and the place of that turn in `before`; None where nobody or several could be meant.

    Args:
        sentence: the first of a turn.
        before: the texts of the turns before it, oldest first, and whether it has the same speaker.
    """
    if not _SHE_FIRST.match(sentence) or cues.ZH_QUESTION.search(sentence):
        return None
    for back, (text, is_own) in enumerate(reversed(before[-MAX_TURNS_BACK:]), 1):
        relatives = {
            found["kin"]
            for found in _OWN_RELATIVE.finditer(text)
            if is_own == (found["whose"] == "我")
        }
        if name := person_asked_about(text):
            return len(before) - back, _PRONOUN.sub(name, sentence)
        if len(relatives) == 1:
            return len(before) - back, _PRONOUN.sub(f"我{relatives.pop()}", sentence)
        if relatives or people_in(text):
            return None
    return None


def person_asked_about(question: str) -> str:
    """Return the only person that a text names, "" where there is none or more than one."""
    named = {*people_in(question), *(n.name for n in chinese_names(question) if n.type == "person")}
    longest = {name for name in named if not any(name != o and name in o for o in named)}
    if len(longest) != 1:
        return ""
    (name,) = longest
    others = re.search(
        f"(?<![我你您])(?:和|跟|与|、){name}|{name}(?:和|跟|与|、)(?![我你您])", question
    )
    return "" if others else name


def _about_person(question: str, bare: str) -> str:
    """Return an answer about her or him with the name that the question gives, or ""."""
    if not _PRONOUN.search(bare):
        return ""
    name = person_asked_about(question)
    return _PRONOUN.sub(name, bare) if name else ""


def _says_itself(bare: str) -> bool:
    """Whether an answer is a clause that lacks only its subject: "在医院当护士", "不吃羊肉"."""
    if (
        re.match("[\\d一二三四五六七八九十]", bare)
        or _EMPTY.fullmatch(re.split("[，,]", bare)[0])
        or len(bare) <= MIN_SAID_CHARS
    ):
        return False
    if re.match("以前|曾经|现在|最近|平时|偶尔|经常|一般|每", bare):
        return True
    return chinese_frame.begins_without_subject(bare) and not re.match(
        "是|在(?:的|呢|家|这|那)", bare
    )
