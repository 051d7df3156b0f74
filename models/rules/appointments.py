"""Appointments that are moved or called off."""

from __future__ import annotations

import re

from reverie.models.rules.changes import (
    HAN_FILLERS,
    is_denied,
    moments,
    other_moment,
    subject_of_statement,
)
from reverie.models.rules.chinese_rules import SURNAMES
from reverie.models.rules.claims import slot_subject
from reverie.models.rules.compare import PLAN_WORDS
from reverie.models.rules.reading import Said
from reverie.models.rules.text import is_chinese, key_words

_MOVED = re.compile(
    r"\b(?:(?:was|is|has been|been|got|gets) (?:now |just )?(?:moved|rescheduled|postponed"
    r"|pushed(?: back)?|delayed|shifted|brought forward|changed)"
    r"|(?:moved|rescheduled|postponed|pushed back|delayed|shifted) (?:the|their|his|her"
    r"|User's))\b(?=.* (?:to|until|till|by) )|(?:改到|推迟到|提前到|延期到|挪到)",
)
_OFF = re.compile(
    r"\b(?:is|are) off(?= *[.!]*$)|\b(?:won't|will not) (?:happen|take place|go ahead)\b"
    r"|\bfell through\b|"
    r"\b(?:was|is|has been|been|got) (?:cancelled|canceled|called off)\b|\b(?:cancelled"
    r"|canceled|called off) (?:the|their|his|her)\b|取消"
)
_COMING = re.compile(
    r"\b(?:is|are) (?:\w+ly )?(?:going|flying|travell?ing|driving|heading|visiting)\b"
)
# What was, not what was planned.
_WAS = re.compile(
    r"\b(?:was|were)\b(?! (?:\w+ly |just |now )?(?:scheduled|set|due|planned|moved"
    r"|postponed|rescheduled|pushed|delayed"
    r"|supposed|going|meant|booked|fixed|brought|shifted|changed|extended))"
)
_ONGOING = re.compile(r"\b(?:is|are) (?:\w+ly )?\w+ing\b")
_DONE_TO = frozenset({"the", "their", "his", "her", "user's"})


def rescheduled(new: Said, old: Said) -> str:
    """Return "UPDATE" where `new` moves the appointment that `old` is, "DELETE" where it is off."""
    moved = _MOVED.search(new.text)
    cut = moved or _OFF.search(new.text)
    if cut is None or not _is_planned(old) or _is_of_others(new, old, cut):
        return ""
    if moments(new.text) and moments(new.text) == moments(old.text) and new.numbers == old.numbers:
        return ""  # told again how it came to be then
    if not moved and other_moment(new, old):
        return ""  # another one is off
    goal = key_words(re.split(r"\b(?:to|until|till|by) ", new.text[cut.end() :])[-1]) - HAN_FILLERS
    if moved and goal and goal <= old.words:
        return ""  # it is known to be then and there
    every = key_words(_topic(new.text, cut)) - key_words("cancelled moved meeting's plan plans")
    if is_chinese(new.text):
        every -= (HAN_FILLERS - {"会"}) | frozenset("和跟与的把将议预约排行程活动计划")
        words = every - frozenset("去参加赴办") or every
    else:
        words = every - PLAN_WORDS or every
    return ("UPDATE" if moved else "DELETE") if words and words <= old.words else ""


def _is_planned(old: Said) -> bool:
    """Whether a statement tells what is to come, at a time or as a plan."""
    b, timed = old.claim, bool(moments(old.text))
    if is_denied(old.text) or _WAS.search(old.text):
        return False
    if b is None or b.ended:
        return b is None and timed
    if timed:
        return True
    if old.text.startswith("The "):
        return False  # what it will be like, not when it is
    coming = b.predicate == "visited" and _COMING.search(old.text) is not None
    planned = b.about.group == "plan" and (b.future or not (b.past or _is_usual(old)))
    return planned or coming


def _is_of_others(new: Said, old: Said, cut: re.Match[str]) -> bool:
    """Whether the appointment is somebody's by name, and what is moved or off another's."""
    if old.claim is None or not _is_somebody(old.claim.subject):
        return False
    whose = re.match(r"(?P<who>.+?)'s ", new.text)
    if whose and slot_subject(whose["who"]) != old.claim.owner.split("'s ")[0]:
        return True
    doer, doers = subject_of_statement(new), subject_of_statement(old)
    active = _is_somebody(new.text[: cut.start()].strip())
    return active and bool(doer and doers) and doer != doers


def _is_usual(said: Said) -> bool:
    """Whether an English statement tells what is always so, not what is to come."""
    claim = said.claim
    loose = claim is not None and claim.predicate == "event" and not claim.explicit
    return loose and not is_chinese(said.text) and not _ONGOING.search(said.text)


def _topic(text: str, cut: re.Match[str]) -> str:
    """What was moved or called off; "" where only somebody is named who did it or was moved."""
    before, after = text[: cut.start()].strip(), text[cut.end() :]
    if is_chinese(text):
        thing = re.sub("^[了掉]+|[。！]$", "", after)
        if cut.group() == "取消" and thing:
            return thing
        return "" if re.fullmatch(f"(?:{SURNAMES})[\u4e00-\u9fff]{{1,2}}", before) else before
    if cut.group().split(" ")[-1].casefold() in _DONE_TO:
        return re.split(r" (?:to|until|till|on|from) ", after, maxsplit=1)[0]
    return "" if _is_somebody(before) else before


def _is_somebody(text: str) -> bool:
    """Whether a text is no more than a name, of the speaker's or another."""
    return bool(re.fullmatch(r"[A-Z][\w'-]*(?: [A-Z][\w'-]*)*", text))
