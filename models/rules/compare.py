"""How two statements stand to each other: the same, another value, the opposite, or unrelated."""

from __future__ import annotations

import re

from reverie.models.rules.apart import is_unreal
from reverie.models.rules.changes import (
    HAN_FILLERS,
    is_denied,
)
from reverie.models.rules.claims import Claim
from reverie.models.rules.people import named_people
from reverie.models.rules.reading import Said
from reverie.models.rules.sides import CARRIERS, contrary, sides
from reverie.models.rules.standing import is_over
from reverie.models.rules.text import fold, is_chinese, key_words, numbers

_LOOSE = frozenset({"state", "event", "plans", "does"})
_MAY_NOT = re.compile(
    r"\b(?:can(?:'t|not)|can not|mustn't|must not)\b|不能|不可以|不得", re.IGNORECASE
)
_INSTEAD_OF_IT = re.compile(
    r"\b(?:now|instead|new|changed|from now on|no longer)\b|现在|改|换|变|新|而是|不再",
    re.IGNORECASE,
)
_AIMS = frozenset({"quest", "dream", "hobby", "major"})
_MEAT = re.compile(r"\b(?:meat|chicken|beef|pork|steak|fish|bacon|burgers?)\b|肉|鱼")
_MEATLESS = frozenset(
    {
        "vegetarian",
        "vegan",
        "plant based",
        "pescatarian",
        "吃素",
        "素食者",
        "素食",
        "纯素",
        "素食主义者",
    }
)
_EXCLUSIVE_DIETS = _MEATLESS | {"carnivore", "keto", "flexitarian", "pescetarian", "paleo"}
_SIDELINES = re.compile(
    r"\b(?:writer|painter|dancer|singer|musician|artist|photographer|gardener|baker|hunter"
    r"|coach|trainer|author|actor|actress|veteran|student|tutor|volunteer|founder|apprentice"
    r"|cook)\b|学生|作家|画家|歌手|教练|老师$^"
)
_STATUSES = frozenset(
    """single married engaged divorced widowed separated 单身 结婚 已婚 离婚 订婚 未婚 离异 丧偶
    分手""".split(),
) | {"a widow", "a widower"}
_LASTING = re.compile(r"\bsince\b|\bfor (?:\w+ )?(?:years|months|weeks)\b|了")
_WHO = frozenset(
    {"partner", "manager", "name", "attribute", "age", "birthday", "email", "phone", "allergic_to"}
)
MIN_VAGUE_WORDS = 3  # of a habit that is over where all of it is named: "writes" is any writing
MAX_ROLE_WORDS = 3  # by which two namings of one person may differ; a Han character is a word
_STANDINGS = (
    ("marr", "married"),
    ("engag", "engaged"),
    ("propos", "engaged"),
    ("dat", "dating"),
    ("divorc", "divorced"),
    ("已婚", "married"),
    ("结婚", "married"),
    ("订婚", "engaged"),
    ("离", "divorced"),
    ("单身", "single"),
    ("未婚", "single"),
)


def says_the_same(new: Said, old: Said) -> bool:
    """Whether `new` adds nothing to `old`: the same subject and stand, and no word of its own."""
    if fold(new.text) == fold(old.text):
        return True
    a, b = new.claim, old.claim
    if (
        a is None
        or b is None
        or a.owner != b.owner
        or a.polarity != b.polarity
        or a.ended != b.ended
        or contrary(new.text, old.text)
        or differs_in_mood(new, old)
        or (not a.key and fold(a.object) != fold(b.object))  # "is on", "is new"
    ):
        return False
    counts = [
        {w for w in words if w.isdigit()}
        for words in (new.words - old.words, old.words - new.words)
    ]
    if (
        all(counts)
        or not new.numbers <= old.numbers
        or ("半" in new.numbers) != ("半" in old.numbers)
        or (a.future != b.future and not (a.explicit and b.explicit))
    ):
        return False
    kindred = a.slot == b.slot or (a.about.group == b.about.group and a.about.group == "taste")
    if a.predicate in {"event", "plans", "state"} and b.predicate in {"event", "plans", "state"}:
        kindred = True
    if a.slot == b.slot == "user|partner" and a.extra != b.extra and a.extra and b.extra:
        return False
    if a.predicate == b.predicate == "prefers" and a.key != b.key:
        return False
    if a.ended and b.ended and a.key == b.key:
        return kindred
    named = a.tail_type != "none" and b.tail_type != "none"  # not only "a wife"
    if (
        named
        and a.slot == b.slot
        and a.key == b.key
        and a.predicate in _WHO
        and a.explicit
        and b.explicit
    ):
        # One person in one role, under another word for the role ("wife", "spouse").
        roles = new.words - old.words - frozenset("了换成变改")
        return a.extra in {"", b.extra} and len(roles) <= MAX_ROLE_WORDS
    left = new.words - old.words - CARRIERS
    if a.predicate == "partner":
        left |= key_words(a.extra) - old.words  # "married" is the verb, and the news
    if a.predicate in _LOOSE and b.predicate in _LOOSE and not _begins_alike(new, old):
        return False
    if a.predicate in _LOOSE:
        left = new.words - old.words - {"stand", "go", "be", "都", "去", "会", "在"}
    return kindred and not left


def _begins_alike(new: Said, old: Said) -> bool:
    """Whether the first word of what an English statement says of its subject stands in the other:
    "missed a concert of a choir" holds all words of "is in a choir"."""
    if named_people(new.text) != named_people(old.text):
        return False
    if old.claim is None or is_chinese(old.text):
        return True
    for word in old.text.partition(old.claim.subject)[2].split():
        if key := key_words(word) - _LIGHT:
            return key <= new.words
    return True


# English words that say how or where to, not what.
_LIGHT = key_words(
    """really very always still just much quite also usually often over up out down off away back
    around together about regularly mostly generally normally particularly especially every day
    no longer not never doesn't isn't hasn't don't"""
)


def differs_in_mood(new: Said, old: Said) -> bool:
    """Return whether only one denies, wishes or tells of the past, as far as no claim says so.

    Likes and dislikes carry their denial in the claim; "cannot eat" is an allergy."""
    a, b = new.claim, old.claim
    if a is None or b is None:
        return False
    if is_denied(new.text) != is_denied(old.text) and not (
        sides(new.text).ends and sides(old.text).ends
    ):
        bound = _MAY_NOT.search(new.text) or _MAY_NOT.search(old.text)
        if not bound and a.about.group != "taste":
            return True
    loose = not (a.explicit and b.explicit and a.about.group == "taste")
    return loose and is_unreal(new.text) != is_unreal(old.text)


def another_value(new: Said, old: Said) -> bool:
    """Whether both fill a slot that has one value at a time, with different values."""
    a, b = new.claim, old.claim
    if a is None or b is None or a.slot != b.slot or not a.functional:
        return _same_but_count(new, old)
    if a.ended or b.ended or a.polarity < 0 or b.polarity < 0 or a.future or b.future:
        return False
    if is_over(a) or (sides(new.text).ends and new.text == a.text):
        return False
    if _is_aim(a) and not _INSTEAD_OF_IT.search(new.text):
        return False  # one of several, perhaps
    if b.past and not b.changed and not _LASTING.search(b.text):
        return False  # "once lived in Chile" was over before
    if a.predicate == "diet":
        return a.key != b.key and {fold(a.object), fold(b.object)} <= _EXCLUSIVE_DIETS
    if a.predicate == "works_as" and not _another_job(a, b):
        return False
    if a.predicate == "partner":
        return _partner_changed(a, b)
    if a.predicate == "name" and (a.key & b.key):
        return False
    return not _same_value(a, b)


def _is_aim(a: Claim) -> bool:
    return a.predicate == "goal" or (a.predicate == "attribute" and a.detail in _AIMS)


def _same_value(a: Claim, b: Claim) -> bool:
    """Whether two values of a slot may be one, or one of them was read with a word too many."""
    if fold(a.object) == fold(b.object) or (a.key and a.key <= b.key):
        return True
    if a.predicate == "age":
        return numbers(a.object) == numbers(b.object)  # 29岁, 29
    place = a.predicate in {"lives_in", "works_at", "studies_at"}
    return place and is_chinese(a.object) and b.object in a.object


def _another_job(a: Claim, b: Claim) -> bool:
    """Whether `a` replaces `b`: painting beside nursing does not, unless it is said to."""
    if a.key <= b.key or b.key <= a.key:
        return False
    meant = a.changed or "works as" in a.text
    return meant or not (_SIDELINES.search(a.object) or _SIDELINES.search(b.object))


def _partner_changed(a: Claim, b: Claim) -> bool:
    """Another person, or another standing with the same one."""
    named_a, named_b = a.object not in _STATUSES, b.object not in _STATUSES
    standing_a = a.extra or ("" if named_a else a.object)
    standing_b = b.extra or ("" if named_b else b.object)
    if named_a and named_b and a.key != b.key:
        return True
    if (
        not named_a
        and named_b
        and standing_a in {"married", "结婚", "已婚"}
        and standing_b in {"", "married", "结婚", "marry"}
    ):
        return False
    if _stand(standing_a) == "divorced" and not named_a and standing_b in {"", "married"}:
        return True
    if not standing_a or not standing_b:
        return not named_b and standing_b in {"single", "divorced", "单身", "离婚", "离异", "未婚"}
    return {_stand(standing_a)} != {_stand(standing_b)}


def _stand(word: str) -> str:
    for stem, to in _STANDINGS:
        if word.startswith(stem):
            return to
    return word


def _same_but_count(new: Said, old: Said) -> bool:
    """Whether only a number differs in a lasting statement: "has two cats", "has three cats"."""
    a, b = new.claim, old.claim
    if (
        a is None
        or b is None
        or a.owner != b.owner
        or a.slot != b.slot
        or a.ended
        or b.ended
        or a.past
    ):
        return False
    lasting = a.predicate in {"kin", "has_pet", "has", "does"} or (
        a.predicate == "event" and a.future
    )
    if not lasting or not new.numbers or not old.numbers or new.numbers == old.numbers:
        return False
    counts = new.numbers | old.numbers
    bare = {
        w
        for w in new.words ^ old.words
        if w not in counts and not re.fullmatch(r"\d+(?:am|pm)?", w)
    }
    return not bare and bool(new.words & old.words - counts)


def flipped(new: Said, old: Said) -> str:  # noqa: C901 - one branch per way to flip
    """Return "UPDATE" or "DELETE" where `new` denies or ends `old`, or "" where it does not.

    DELETE where it only says that the old no longer holds; UPDATE where it says what holds now.
    """
    a, b = new.claim, old.claim
    if a is None or b is None or a.owner != b.owner or b.ended or (b.future and not a.ended):
        return ""
    same_slot = a.slot == b.slot
    if a.ended and a.predicate == "has" and b.predicate == "works_as" and a.key == b.key:
        return "DELETE"  # sold the inn that they ran
    group = a.about.group is not None and a.about.group == b.about.group
    left = (
        re.match(
            r"(?:left|departed from|moved away from) (?P<o>[^,;]{2,60}?)(?: in| last| on| to"
            r"| for| after|$)",
            a.object,
        )
        if a.predicate == "event"
        else None
    )
    if (
        left
        and b.predicate in {"works_at", "lives_in", "studies_at"}
        and b.polarity > 0
        and not a.future
    ):
        return "DELETE" if key_words(left["o"]) == b.key else ""
    quit_ = _QUIT.match(a.object) if a.predicate == "event" and a.past else None
    if (
        quit_
        and b.predicate in {"does", "event", "learning", "plays", "has"}
        and b.polarity > 0
        and not b.past
    ):
        what = key_words(quit_["o"]) - key_words("lesson class course practice training")
        return "DELETE" if what and what <= old.words else ""
    if a.predicate == "retracted":
        topic = a.key - frozenset("关于的事")
        return "DELETE" if topic and topic <= old.words else ""
    if a.ended and a.predicate == "state" and not same_slot and not a.explicit:
        return ""
    if a.ended:
        return _ends(new, old) if same_slot or group else ""
    if not same_slot and not (group and a.about.group == "taste"):
        if (
            a.predicate == "eats"
            and a.polarity > 0
            and b.predicate == "diet"
            and fold(b.object) in _MEATLESS
            and _MEAT.search(a.object)
        ):
            return "UPDATE"
        return ""
    if a.predicate == "prefers" and b.predicate == "prefers":
        crossed = a.extra and b.extra and key_words(a.extra) & b.key and a.key & key_words(b.extra)
        turned = b.extra and not a.extra and a.key and a.key <= key_words(b.extra)
        return "UPDATE" if (crossed or turned) and a.polarity == b.polarity else ""
    if (
        a.former
        and b.polarity > 0
        and key_words(a.former)
        and _object(b) == key_words(a.former)
        and a.about.group == "taste"
    ):
        return "UPDATE"
    if a.polarity == b.polarity or not _same_object(a, b):
        return ""
    if not same_slot and {a.predicate, b.predicate} & {"prefers"}:
        return ""
    if a.about.group == "taste" or a.predicate in {
        "allergic_to",
        "skilled_in",
        "state",
        "does",
        "plays",
        "speaks",
        "favourite",
    }:
        return "UPDATE" if a.polarity > 0 or a.about.group == "taste" else "DELETE"
    return "DELETE" if a.polarity < 0 else ""


_TASTE_VERBS = key_words(
    "eating eat drinking drink playing play going go watching watch listening reading read cooking"
) | frozenset("吃喝看听玩打做抽吸")
_STRENGTHS = key_words("much lot really anymore anything again all")
_QUIT = re.compile(
    r"(?:quit|gave up|stopped|dropped|cancelled|canceled) (?:the |their |his "
    r"|her )?(?P<o>[^,;]{2,40}?)(?= in\b| last\b| because\b|$)"
)
PLAN_WORDS = key_words(
    "plan plans planning trip book booked visit visiting travel run running attend"
    " next week month year flight flying fly travelling"
)


def _object(claim: Claim) -> frozenset[str]:
    return claim.key - _TASTE_VERBS - _STRENGTHS or claim.key


def _same_object(a: Claim, b: Claim) -> bool:
    left, right = _object(a), _object(b)
    if not left or not right:
        return False
    if a.predicate == "has_pet" and a.extra and b.extra and fold(a.extra) != fold(b.extra):
        return False
    return left == right


def _ends(new: Said, old: Said) -> str:
    a, b = new.claim, old.claim
    if a is None or b is None or (b.polarity < 0 and a.polarity > 0):
        return ""
    if a.predicate == "works_at" and b.predicate == "works_at" and a.tail_type == "none":
        return "DELETE"
    if a.predicate == "partner" and a.slot == b.slot:
        named = b.object not in _STATUSES
        fits = a.key == b.key or (
            named
            and (
                a.key == b.key
                or a.tail_type == "none"
                or re.search(r"wife|husband|girlfriend|boyfriend|partner|fianc", a.object)
            )
        )
        keeps = a.extra in {"divorced", "divorcing", "separated", "离婚"}
        return ("UPDATE" if keeps else "DELETE") if fits else ""
    if a.predicate == b.predicate == "smokes":
        return "DELETE"
    if not _ends_object(a, b):
        return ""
    if a.past and re.search(r"\b(?:died|passed away|dead|put down|ran away)\b|去世|死", a.text):
        return "UPDATE"
    states_more = bool(a.former) or bool(
        re.search(
            r"\bswitched to\b|\bnow (?!\w*$)|\bbut\b(?! not| no longer| it\b| that\b)|\binstead\b"
            r"|\band (?:is|has|now|joined)\b(?! not| no )"
            r"|改|换成|而是|现在(?![已经也]*[不没])",
            new.text,
        )
    )
    cross = a.predicate != b.predicate and a.about.group == "taste"
    cross = cross and not {a.predicate, b.predicate} <= {"likes", "prefers"}
    return "UPDATE" if states_more or cross else "DELETE"


def _ends_object(a: Claim, b: Claim) -> bool:
    """Whether the ended object is the old one; a vaguer name for it counts ("the Civic")."""
    left, right = _object(a), _object(b)
    if not left or not right:
        return False
    if a.predicate == "has_pet" and b.extra:
        extra = a.extra
        if not extra and is_chinese(a.text):
            named = re.search(f"{re.escape(a.object)}(?P<n>[^了，。！]{{1,4}})", a.text)
            extra = named["n"] if named else ""
        if extra and fold(extra) != fold(b.extra):
            return False
    if a.predicate == "has_pet" and a.extra and fold(a.extra) not in fold(b.text):
        return False
    if left == right:
        return True
    if a.about.group == "plan" or b.about.group == "plan":
        left -= PLAN_WORDS
        right -= PLAN_WORDS
        loose = not (a.explicit or b.explicit)
        if loose and is_chinese(a.text) and _han_left(a.text, b.text):
            return False
        sure = (a.explicit and b.explicit) or len(right) >= MIN_VAGUE_WORDS
        vaguer = bool(right) and right <= left and sure
        return bool(left) and (left <= right or vaguer)
    if a.about.group == "having":
        # the last word is the thing, a name before it the make: "Civic" ends "Honda Civic"
        return left < right and bool(left & key_words(b.object.split(" ")[-1]))
    if a.predicate in {"works_at", "lives_in", "studies_at"}:
        return left <= right or right <= left
    return False


def _han_left(new: str, old: str) -> bool:
    """Whether a Chinese text has characters of its own beside those that end something."""
    ends = HAN_FILLERS | frozenset("停取消放弃止想要打算去来再从，。！")
    return bool(key_words(new) - key_words(old) - ends)
