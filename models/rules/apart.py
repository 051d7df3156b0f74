"""What a new statement certainly leaves alone, whoever decides: both hold side by side.

The rules say ADD where they know nothing. Where they know better, a language model is not asked:
other people, wishes, one more of what there may be many of, and commands that stand in a text.
"""

from __future__ import annotations

import re

from reverie.models.rules.claims import KIN_PREDICATES, USER_LABELS, Claim
from reverie.models.rules.names import chinese_names, english_names
from reverie.models.rules.reading import Said
from reverie.models.rules.text import (
    MAX_CLAUSE_CHARS,
    MAX_SCAN_CHARS,
    fold,
    is_chinese,
    key_words,
    remembered,
)

MAX_STATEMENT_CHARS = 2 * MAX_CLAUSE_CHARS  # of a statement that is compared as a text

_UNREAL = re.compile(
    r"\b(?:would (?:like|love|hate|prefer|rather)|wants? to|wish(?:es)?|hopes?|hoping|dreams? of"
    r"|might|may|could|maybe|perhaps|probably|if|unless|considers?|considering|contemplat\w+"
    r"|(?:is )?thinking (?:about|of)|thinks? (?:about|of)|toying with|unsure|undecided|tempted"
    r"|in case|some ?day|one day)\b"
    r"|想|希望|考虑|可能|也许|或许|如果|要是|假如|万一|犹豫|说不定|有一天|将来|以后",
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
_WISHES = frozenset({"goal", "wants", "needs"})
_STANDINGS = frozenset({"state", "event", "plans", "does", "retracted"})


def is_command(text: str) -> bool:
    """Return whether a text orders memory or its reader about instead of stating something."""
    return bool(_COMMAND.search(text[:MAX_SCAN_CHARS]))


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

    A name counts as held wherever it stands: at the start of a sentence it is not always
    recognised as one.
    """
    known = fold(old.text)
    return not (
        new.numbers <= old.numbers and all(_stands_in(name, known) for name in names_of(new.text))
    )


def _stands_in(name: str, text: str) -> bool:
    if is_chinese(name):
        return name in text
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) is not None


def apart(new: Said, old: Said) -> bool:
    """Return whether `new` certainly changes nothing about `old`.

    Where it is False nothing is known: they may still have nothing to do with each other.
    """
    if is_command(new.text):
        return True
    a, b = new.claim, old.claim
    if is_unreal(new.text) and not (b is not None and (b.future or b.about.group == "plan")):
        return not is_unreal(old.text) and not (b is not None and b.predicate in _WISHES)
    if a is None or b is None:
        return False
    if a.owner != b.owner:
        return _other_people(a.owner, b.owner) and not _mentioned(new, old)
    if a.future and not a.ended and not b.future and b.about.group != "plan":
        return True
    return (
        a.slot == b.slot
        and a.predicate not in _STANDINGS
        and a.explicit
        and b.explicit
        and not (a.functional or a.ended or b.ended)
        and a.polarity == b.polarity
        and bool(a.key and b.key)
        and not _same_thing(a, b)
        and (new.numbers == old.numbers)
    )


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


def _other_people(a: str, b: str) -> bool:
    """Whether two subjects are different people; a thing of somebody's may stand for them."""
    shorter, longer = sorted((a, b), key=len)
    if not longer.startswith(shorter + "'s "):
        return True
    return longer.removeprefix(shorter + "'s ").split(" ")[0] in KIN_PREDICATES or any(
        longer.endswith(word) for word in (" partner", " manager")
    )
