"""What a new statement certainly leaves alone, whoever decides: both hold side by side.

The rules say ADD where they know nothing. Where they know better, a language model is not asked:
other people, wishes, one more of what there may be many of, and commands that stand in a text.
"""

from __future__ import annotations

import re

from reverie.models.rules.claims import USER_LABELS, Claim
from reverie.models.rules.names import chinese_names, english_names
from reverie.models.rules.people import named_people, other_people, other_person, relations
from reverie.models.rules.reading import Said
from reverie.models.rules.sides import names_former, sides
from reverie.models.rules.text import (
    MAX_CLAUSE_CHARS,
    MAX_SCAN_CHARS,
    fold,
    is_chinese,
    key_words,
    remembered,
)

MAX_STATEMENT_CHARS = 2 * MAX_CLAUSE_CHARS  # of a statement that is compared as a text

# A request that stands: "wants to be called Ana".
_REQUEST = r"to be (?:called|addressed|answered|reminded|told|known)\b"
_UNREAL = re.compile(
    rf"\b(?:would (?:like|love|hate|prefer|rather)(?! {_REQUEST})"
    rf"|wants? to(?! {_REQUEST.removeprefix('to ')})|wish(?:es)?|hopes?|hoping|dreams? of"
    r"|might|(?-i:may)|could|maybe|perhaps|probably|if|unless|considers?|considering|contemplat\w+"
    r"|(?:is )?thinking (?:about|of)|thinks? (?:about|of)|toying with|unsure|undecided|tempted"
    r"|in case|some ?day|one day)\b"
    r"|(?<![思理梦联猜幻])想(?![念起到法象了])|希望|考虑|可能|也许|或许|如果|要是|假如|万一|犹豫|说不定"
    r"|有一天|将来|以后",
    re.IGNORECASE,
)
# A text that gives orders about memory or about the one who reads it; it states nothing.
_COMMAND = re.compile(
    r"\b(?:ignore|forget|disregard|override|bypass|delete|erase|wipe|purge|remove|clear|drop)\b"
    r"[^.!?\n]{0,40}\b(?:instructions?|prompts?|rules?|memor(?:y|ies)|everything|database|records?"
    r"|all (?:of )?(?:the|your|their|his|her|user)|previous|above)\b"
    r"|\bmemor(?:y|ies)\b[^.!?\n]{0,20}\b(?:deleted|erased|wiped|removed|cleared|purged)\b"
    r"|\b(?:system|assistant|developer) ?(?:prompt|message|override|:)"
    r"|\"?\bop\"?\s*[:=]\s*\"?(?:ADD|UPDATE|DELETE|NOOP)\b"
    r"|\b(?:delete|erase|remove|forget|drop|update|overwrite|replace) m\d+\b"
    r"|\[(?:memory|system)\b[^\]\n]{0,40}\]|</?(?:turn|system|assistant|user|instructions?|memor\w+)>"
    r"|\byou are now\b|\bnew instructions?\b"
    r"|(?:忽略|无视|忘记|忘掉|删除|清空|清除|抹掉|覆盖)[^。！？\n]{0,16}"
    r"(?:指令|提示|规则|记忆|所有|全部|一切|数据|设定|系统)"
    r"|(?:删除|删掉|忘记|忘掉|清除|去掉|更新|替换)\s*m\d+"
    r"|你现在是|新的?指令|系统(?:提示|消息|指令)",
    re.IGNORECASE,
)
# An old statement that a wish, or the end of one, may be about.
_WISHED = re.compile(
    r"\b(?:wants?|wish\w*|would|hopes?|aims?|asked for|likes? to|needs?|plans?|intends?|goal"
    r"|dreams?|reminder|decided)\b"
    r"|想|要|希望|愿望|目标|打算|决定|计划|提醒|找|喜欢用|喜欢.*的",
    re.IGNORECASE,
)
_ROLES = frozenset({"teacher", "doctor", "roommate", "neighbour", "colleague"})
_COMING = re.compile(
    r"\b(?:is|are) (?:\w+ly |now )?(?:going|flying|travell?ing|driving|heading|on the way|sailing"
    r"|riding|walking) to\b"
    r"|前往|正?在?去.{1,8}的?路上|要去"
)
_WISHES = frozenset({"goal", "wants", "needs"})
_STANDINGS = frozenset({"state", "event", "plans", "does", "retracted"})


def is_command(text: str) -> bool:
    """Return whether a text orders memory or its reader about instead of stating something."""
    return bool(_COMMAND.search(text[:MAX_SCAN_CHARS]))


def is_loose(said: Said) -> bool:
    """Return whether the slot of a statement says nothing of what it is about: any event is in the
    slot of events."""
    return said.claim is not None and said.claim.predicate in _STANDINGS


@remembered
def is_unreal(text: str) -> bool:
    """Return whether a text tells a wish, a doubt or a condition, not how things are."""
    return bool(_UNREAL.search(text[:MAX_STATEMENT_CHARS]))


@remembered
def names_of(text: str) -> frozenset[str]:
    """Return the names in a text, folded."""
    found = chinese_names(text) if is_chinese(text) else english_names(text)
    return frozenset(fold(entity.name) for entity in found)


def says_more(new: Said, old: Said) -> bool:
    """Return whether `new` holds a number or name that `old` has not: no mere repetition.

    A name counts as held wherever its words stand: at the start of a sentence it is not always
    recognised as one, and "the Harrow bridge" is "the bridge at Harrow".
    """
    known = fold(old.text)
    former = sides(new.text).former  # what it says is over it may well name
    named = (name for name in names_of(new.text) if not key_words(name) <= former)
    counts = new.numbers - {word for word in former if word.isdigit()}
    return not (counts <= old.numbers and all(_stands_in(name, known) for name in named))


def _stands_in(name: str, text: str) -> bool:
    if is_chinese(name):
        return name in text
    return all(re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text) for word in name.split())


_LIVES = re.compile(r"\b(?:lives|resides|is based) in\b|住在", re.IGNORECASE)
_WORKS = re.compile(
    r"\b(?:works|studies|teaches) (?:in|at|for)\b|在.{1,8}(?:工作|上班|上学|读书|教书)",
    re.IGNORECASE,
)
_MOVES = re.compile(r"\b(?:mov|relocat|settl|left|leav|return)|[搬迁移离回]", re.IGNORECASE)


def _home_and_work(new: str, old: str) -> bool:
    """Whether one tells where somebody lives and the other where somebody works or studies, with no
    word of a move."""
    if _MOVES.search(new):
        return False
    return any(
        _LIVES.search(one)
        and not _WORKS.search(one)
        and _WORKS.search(two)
        and not _LIVES.search(two)
        for one, two in ((new, old), (old, new))
    )


def apart(new: Said, old: Said) -> bool:
    """Return whether `new` certainly changes nothing about `old`.

    Where it is False nothing is known: they may still have nothing to do with each other.
    """
    if is_command(new.text):
        return True
    a, b = new.claim, old.claim
    if names_former(new.text, old.text) and not _strangers(a, b):
        return False
    wish = is_unreal(new.text) and not sides(new.text).ends  # an ended wish is none
    if wish and not (b is not None and (b.future or b.about.group == "plan")):
        if is_unreal(old.text) or _WISHED.search(old.text):
            return a is not None and b is not None and other_person(a, b)
        return not (b is not None and b.predicate in _WISHES)
    if _home_and_work(new.text, old.text):
        return True
    if a is None or b is None:
        return False
    if other_person(a, b):
        return True
    if a.owner != b.owner:
        return other_people(a, b) and not _mentioned(new, old) and not _of_one_matter(new, old)
    sure = a.explicit or not is_chinese(new.text)  # 会 and 要 are no future by themselves
    sure = sure and not _WISHED.search(old.text)
    if sure and a.future and not a.ended and not b.future and b.about.group != "plan":
        return not new.text.startswith("The ")  # "will be held in the garden"
    return (
        a.slot == b.slot
        and a.predicate not in _STANDINGS
        and a.explicit
        and b.explicit
        and not (a.functional or a.ended or b.ended)
        and a.polarity == b.polarity
        and bool(a.key and b.key)
        and not _same_thing(a, b)
        and not (_behind(a) & _behind(b))
        and not (a.detail in _ROLES and _is_the_one(a) and _is_the_one(b))
        and not (_COMING.search(new.text) and _COMING.search(old.text))
        and not (a.predicate == "visited" and not (a.past or b.past))  # goes to a school
        and (new.numbers == old.numbers)
    )


def _strangers(a: Claim | None, b: Claim | None) -> bool:
    if a is None or b is None or (a.owner == b.owner and not other_person(a, b)):
        return False
    return relations(a.text) != relations(b.text)


def _is_the_one(claim: Claim) -> bool:
    """Whether a text says who fills a role ("X's teacher is Ana"), not that somebody does."""
    return (
        re.search(
            r"'s \w+ (?:is|was) |\bhas [A-Z]\w+ as \w|的[\u4e00-\u9fff]{1,4}[是叫]", claim.text
        )
        is not None
    )


def _behind(claim: Claim) -> frozenset[str]:
    """The words after the object, and its name: "at home" of "has a piano at home"."""
    return key_words(claim.text.partition(claim.object)[2]) | key_words(claim.extra)


def _of_one_matter(new: Said, old: Said) -> bool:
    """Whether two statements name the same people and share most words, whatever was read as their
    subjects: "the colour of Ana's car", "Ana's car"."""
    if named_people(new.text) != named_people(old.text) or names_of(new.text) != names_of(old.text):
        return False
    shared = len(new.words & old.words)
    return shared > 1 and 2 * shared >= min(len(new.words), len(old.words))


def _mentioned(new: Said, old: Said) -> bool:
    """Whether the subject of one statement stands in the other: "Ana is User's best friend"."""
    for one, other in ((new, old), (old, new)):
        subject = one.claim.subject if one.claim is not None else ""
        if is_chinese(subject):
            if not subject.startswith(USER_LABELS[1]) and subject in other.text:
                return True
            if (
                rest := subject.removeprefix(f"{USER_LABELS[1]}的")
            ) != subject and rest in other.text:
                return True
        elif (words := key_words(subject)) and words <= other.words:
            return True
    return False


def _same_thing(a: Claim, b: Claim) -> bool:
    """Whether two objects may be one: a word in common; in Chinese more than a character or so."""
    shared = a.key & b.key
    if is_chinese(a.object) and is_chinese(b.object):
        return 2 * len(shared) > min(len(a.key), len(b.key))
    return bool(shared)
