"""Whom statements are about: the same somebody, another, or a thing of theirs."""

from __future__ import annotations

import re

from reverie.models.rules.chinese_rules import KIN as CHINESE_KIN
from reverie.models.rules.claims import KIN_PREDICATES, USER_LABELS, Claim
from reverie.models.rules.text import fold, is_chinese, key_words, remembered
from reverie.models.rules.vocab import KIN

# Words for one and the same relative; others in the same slot may be two people.
_ONE_PERSON = tuple(
    frozenset(words.split())
    for words in (
        "mother mom mum mommy mummy",
        "father dad daddy",
        "wife spouse partner",
        "husband spouse partner",
        "girlfriend partner",
        "boyfriend partner",
        "fiancee fiancée partner",
        "fiance fiancé partner",
        "boss manager supervisor",
        "sister sisters",
        "brother brothers",
        "daughter daughters",
        "son sons",
        "kid kids child children",
        "grandma grandmother granny",
        "grandpa grandfather",
        "friend friends mate buddy",
        "roommate flatmate housemate roommates",
        "colleague coworker co-worker colleagues teammate",
        "neighbour neighbor neighbours neighbors",
        "aunt auntie",
        "老婆 媳妇 妻子 太太 爱人 对象 伴侣",
        "老公 丈夫 先生 爱人 对象 伴侣",
        "男朋友 男友 对象 伴侣",
        "女朋友 女友 对象 伴侣",
        "老板 上司 经理 领导 主管",
        "妈妈 母亲 妈 老妈",
        "爸爸 父亲 爸 老爸",
        "姐姐 姐",
        "妹妹 妹",
        "哥哥 哥",
        "弟弟 弟",
        "女儿 闺女",
        "孩子 宝宝 小孩",
        "好朋友 朋友 闺蜜 好友 哥们",
        "室友 舍友",
        "父母 爸妈",
    )
)
_KIN_WORD = re.compile("|".join(sorted(CHINESE_KIN, key=len, reverse=True)))
MAX_NAME_CHARS = 3  # of most Chinese names
LONG_SUBJECT = 3  # words; few names have so many


def other_person(a: Claim, b: Claim) -> bool:
    """Return whether two claims of one subject, as slots write it, are about different relatives:
    姐姐 and 妹妹 are both a sister, but never the same one."""
    if a.owner != b.owner:
        return False
    one, other = _relative(a.subject), _relative(b.subject)
    if not one or not other or one == other or is_chinese(one) != is_chinese(other):
        return False
    return not any(one in words and other in words for words in _ONE_PERSON)


def _relative(subject: str) -> str:
    """The word for a relative at the end of a subject; "" where there is none."""
    if is_chinese(subject):
        found = _KIN_WORD.findall(subject.removeprefix(USER_LABELS[1]))
        return found[-1] if found and subject.endswith(found[-1]) else ""
    word = fold(subject).rpartition("'s ")[2].rpartition(" ")[2]
    return word if "'s " in subject and word in KIN else ""


@remembered
def named_people(text: str) -> tuple[str, ...]:
    """Return the words for relatives in a text, in order of the alphabet, with "user" where it
    names the owner of the graph."""
    if is_chinese(text):
        found = _KIN_WORD.findall(text) + ["user"] * (USER_LABELS[1] in text)
    else:
        words = (word.removesuffix("'s") for word in fold(text).split())
        found = [word for word in words if word in KIN or word == "user"]
    return tuple(sorted(found))


def relations(text: str) -> frozenset[object]:
    """Return what the relatives that a text names are to somebody, whatever they are called."""
    people = named_people(text)
    return frozenset(KIN.get(word) or CHINESE_KIN.get(word) or word for word in people)


def other_people(one: Claim, other: Claim) -> bool:
    """Return whether two subjects are different people; somebody's thing may stand for them."""
    for x, y in ((one, other), (other, one)):
        # "has a mother who is 41", "mother is 41"
        if x.predicate == "kin" and x.tail_type == "none" and y.owner == f"{x.owner}'s {x.detail}":
            return False
    a, b = (
        re.sub(r" (?:has|have|is|no longer|finally|now|just)$", "", c.owner) for c in (one, other)
    )
    if a == b:
        return False
    if is_chinese(a + b):
        return _other_han(a, b)
    shorter, longer = sorted((a, b), key=len)
    if not longer.startswith(shorter + "'s "):
        (whose, _, thing), (others, _, second) = a.partition("'s "), b.partition("'s ")
        if whose == others and thing and second and not _has_kin(thing, second):
            # two words for one thing, perhaps
            alike = key_words(thing) & key_words(second) or one.key == other.key
            return not alike
        if (
            "'s " not in a + b
            and len(longer.split()) >= LONG_SUBJECT
            and a.split()[0] == b.split()[0]
        ):
            return False  # read with a verb too many: "the player knows who"
        if f" {shorter} " in f" {longer} ":  # "the food that user likes most"
            return _has_kin(longer)
        return True
    return longer.removeprefix(shorter + "'s ").split(" ")[0] in KIN_PREDICATES or any(
        longer.endswith(word) for word in (" partner", " manager")
    )


def _has_kin(*things: str) -> bool:
    return any(word in KIN for thing in things for word in re.split(r"'s | ", thing))


def _other_han(a: str, b: str) -> bool:
    """Whether two subjects, one Chinese at least, are different people. A subject that was read
    from a text may hold an adverb too many: 北城门如今."""
    one, other = (
        re.sub(r"user(?:'s )?", USER_LABELS[1], owner, count=1) if "user" in owner else owner
        for owner in (a, b)
    )
    if other in one:
        one, other = other, one
    if one in other:
        return _KIN_WORD.search(other.replace(one, "", 1)) is not None
    shared = 0
    while shared < min(len(one), len(other)) and one[shared] == other[shared]:
        shared += 1
    if shared < len(USER_LABELS[1]) or max(len(one), len(other)) <= MAX_NAME_CHARS:
        return True
    words = [_KIN_WORD.findall(owner[shared:]) for owner in (one, other)]
    kin = [{CHINESE_KIN[word] for word in found} for found in words]
    return kin[0] != kin[1]
