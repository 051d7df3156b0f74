"""Deeds that end or fulfil what was so: left the guild, finished the novel, gave the amulet away.

The new statement's verb must fit what the old one says, and its object must be that of the old one.
"""

# ruff: noqa: E501 - a table reads better a line a case
from __future__ import annotations

import re
from typing import NamedTuple

from reverie.memory_graph.drafts import Operation
from reverie.models.rules.apart import is_unreal
from reverie.models.rules.changes import (
    HAN_FILLERS,
    HAN_LEADS,
    common,
    elsewhere,
    is_denied,
    other_moment,
    subject_of_statement,
)
from reverie.models.rules.reading import Said, is_unsaid
from reverie.models.rules.sides import CARRIERS, sides
from reverie.models.rules.text import is_chinese, key_words


class _Deed(NamedTuple):
    """`old` is found in the old statement, `new` in the new one, before its object."""

    old: re.Pattern[str]
    new: re.Pattern[str]
    op: Operation


def _deed(old: str, new: str, op: Operation) -> _Deed:
    return _Deed(re.compile(old, re.IGNORECASE), re.compile(new, re.IGNORECASE), op)


_HAS = r"\b(?:has|have|owns?|holds?|carries|wields?|keeps?|wears?|possesses)\b"
_DOING = (
    r"\b(?:is|are) (?:\w+ly |still |currently )?(?:working on|writing|building|reading|painting|making|restoring|knitting"
    r"|training for|studying for|preparing for|saving (?:up )?for|waiting for|looking for|searching for|hunting|planning"
    r"|applying (?:for|to)|expecting|fixing|renovating|in the middle of)\b|\bseeks?\b|\bwants to (?:buy|find|get|adopt|finish)\b"
)
_ENGLISH = (
    _deed(r"member of|belongs? to|part of|plays? (?:for|in|on)|sings? in|serves?|\bis (?:in|on|with|at) |\bis (?:the|an?) |leads?|studies|attends?|works?|lives?|is staying|is hiding",
          r"\b(?:left(?! (?:back|wing|half|hand)\b)|quit|resigned (?:from|as)|retired (?:from|as)|stepped down (?:from|as)|dropped out of|moved out of|deserted|defected from|fled(?: from)?|was (?:expelled|dismissed|fired|kicked out|thrown out|banished|exiled|removed) (?:from|of|as))\b", "DELETE"),
    _deed(_HAS, r"(?<!\bthe )(?<!\ba )(?<!\ban )\b(?:gave(?!(?: \S+){1,5} as\b)|handed|passed|sold(?! out)|lost|dropped|returned|threw|donated|traded|destroyed|surrendered|misplaced|burned|buried)\b", "DELETE"),
    _deed(r"subscri|member|booked|signed up|registered|enrolled|reserv|\buses?\b|\bhas (?:an? |the |their )?", r"\b(?:cancell?ed|terminated|unsubscribed from|opted out of)\b", "DELETE"),
    _deed(_DOING, r"\b(?:finished|completed|published|abandoned|gave up on|submitted|passed|found|bought|got|received|shelved|adopted|killed|caught|slew|was (?:accepted|admitted) (?:to|into|by|at)|was rejected (?:by|from))\b", "UPDATE"),
    _deed(r"afraid of|fears?\b|phobia|\bhas (?:an?|the) |suffers from|is (?:ill|sick) with", r"\b(?:got over|overcame|has overcome|recovered from|shook off|conquered|was cured of|is cured of)\b", "DELETE"),
    _deed(r"student|studies|attends?|enrolled|goes to", r"\b(?:graduated from|finished|transferred from)\b", "UPDATE"),
    _deed(r"\b(?:hates?|is angry (?:at|with)|holds a grudge against|distrusts?|resents?|is at odds with|fears?|is afraid of)\b",
          r"\b(?:forgave|has forgiven|made up with|(?:has )?reconciled with|made peace with|befriended|fell in love with)\b", "UPDATE"),
    _deed(r"\b(?:loves?|trusts?|likes?|is (?:friends|allied|in love) with|is loyal to|serves?|follows?|admires?)\b",
          r"\b(?:betrayed|turned (?:against|on)|fell out with|broke with|attacked|abandoned)\b", "UPDATE"),
)  # fmt: skip
_CHINESE = (
    _deed("成员|加入|属于|效力|效忠|在|是", "退出|离开|脱离|背叛|叛离|被逐出|被开除", "DELETE"),
    _deed("在(?:写|读|看|做|准备|找|等)|正在|想买|打算买", "写完|读完|看完|做完|完成|找到|等到|收到|买到|买了|通过", "UPDATE"),
    _deed("在|正", "放弃了?|停止了?", "DELETE"),
    _deed("读书|上学|就读|念书|上大学|学生|大学", "毕业", "UPDATE"),
    _deed("恨|讨厌|敌视|不信任|害怕", "原谅|和好|信任了|喜欢上|结盟", "UPDATE"),
    _deed("信任|喜欢|爱|效忠|结盟", "背叛|反目|翻脸|敌视", "UPDATE"),
)  # fmt: skip
_LOOSE = key_words("fear phobia lesson class course habit practice")  # "the fear of flying"
# Where an object ends: what follows tells where, when, why or to whom.
_AFTER = re.compile(
    r"[,;.!]|(?<=\s)(?:in|at|on|for|to|from|last|this|because|and|with|after|before|by|of all|yesterday|today|since|when|into)\b"
)
_RELATIVE = re.compile(r"\b(?:who|that|which|when|if|whether)\b")
_ENDS = "in|at|on|of|for|with|and|or|to|from|as|since|now|by|near|that|who|which|every|this|next|called|named"
_HAN_AFTER = re.compile("[，。；！]|因为|之后|以后")


def ended_by_deed(new: Said, old: Said) -> str:
    """Return "DELETE" or "UPDATE" where `new` tells a deed that ends or fulfils `old`, else ""."""
    han = is_chinese(new.text)
    if han != is_chinese(old.text) or is_unreal(new.text) or is_denied(new.text):
        return ""
    if is_denied(old.text) or (old.claim is not None and old.claim.ended) or other_moment(new, old):
        return ""
    if elsewhere(new, old):
        return ""
    return _chinese(new, old) if han else _english(new, old)


def stays(new: Said, old: Said) -> bool:
    """Return whether `new` cannot end `old`: it is over by its own words, or not all of it is denied."""
    was = sides(old.text)
    # "is burned down", "is no longer burned down": here the end is what is over
    undone = is_denied(new.text) and bool(was.ending) and was.ending <= new.words
    if (was.ends and not undone) or (was.former and was.former <= new.words):
        return True
    return is_unsaid(new.text) and bool(new.words - old.words - CARRIERS - HAN_FILLERS)


def _english(new: Said, old: Said) -> str:
    subject = subject_of_statement(new)
    if not subject or subject != subject_of_statement(old):
        return ""
    for deed in _ENGLISH:
        done = deed.new.search(new.text)
        if done is None or not deed.old.search(old.text):
            continue
        if _RELATIVE.search(new.text, 0, done.start()):
            continue  # "wonders who gave the order"
        named = _AFTER.split(new.text[done.end() :], maxsplit=1)[0]
        thing = key_words(named)
        thing -= _LOOSE
        if all(word.isdigit() for word in thing):
            continue
        if thing <= old.words - key_words(subject) and _is_head(named, old.text):
            return deed.op
    return ""


def _is_head(named: str, old: str) -> bool:
    """Whether the last word of `named` ends a name in `old`: "the harbour" is no "harbour office"."""
    words = [word for word in re.findall(r"[\w'-]+", named) if not key_words(word) <= _LOOSE]
    if not words:
        return True
    stem = re.escape(words[-1][: max(3, len(words[-1]) - 2)])
    if words[-1].islower() and re.search(rf"(?<!^)\b{words[-1].capitalize()}\b", old):
        return False  # "the watch" is not the Night Watch
    return bool(re.search(rf"\b{stem}\w*(?=\W*$|[,.;!]| (?:{_ENDS})\b)", old, re.IGNORECASE))


def _chinese(new: Said, old: Said) -> str:
    for deed in _CHINESE:
        done, was = deed.new.search(new.text), deed.old.search(old.text)
        if done is None or was is None:
            continue
        head = common(new.text, old.text).rstrip(HAN_LEADS)
        if len(head) < 2 or len(head) > done.start():  # noqa: PLR2004 - the shortest name
            continue
        rest = new.text[len(head) : done.start()] + " " + new.text[done.end() :]
        thing = (
            frozenset(_HAN_AFTER.split(rest, maxsplit=1)[0])
            - HAN_FILLERS
            - frozenset("从把给跟和 ")
        )
        if thing and thing <= frozenset(old.text):
            return deed.op
    return ""
