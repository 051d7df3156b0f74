"""How two statements stand to each other: the same, another value, the opposite, or unrelated."""

from __future__ import annotations

import re

from reverie.models.rules.changes import moments
from reverie.models.rules.claims import Claim
from reverie.models.rules.reading import Said
from reverie.models.rules.standing import is_over
from reverie.models.rules.text import fold, is_chinese, key_words

# Stems and characters that only carry the predicate: they never make a statement a new one.
_CARRIERS = key_words(
    """allergic allergy love like enjoy adore hate dislike prefer favourite live reside move
    relocate
    based work job employed position wife husband spouse married marry partner have own drive keep
    called live stand study degree graduate drink eat go play speak speaks fluent is manager boss
    detest loathe fond fan keen stand can't bear home""",
) | frozenset(
    "对吃喝会过敏有个名字叫是在住的了养只条爱喜欢很最也1生活居住工作上班任职家人位员为热讨厌不非常特别"
)
_ANTONYMS = [
    frozenset(key_words(a) | key_words(b))
    for a, b in (
        pair.split("/")
        for pair in """open/closed opens/closes alive/dead poisoned/clean locked/unlocked
        trusts/distrusts
        friendly/hostile friend/enemy ally/enemy safe/dangerous healthy/sick broken/repaired
        hired/fired
        loves/hates awake/asleep empty/full lit/dark rich/poor peace/war enabled/disabled
        free/imprisoned up/down raised/lowered hot/cold calm/angry frozen/thawed loyal/disloyal
        online/offline visible/hidden allowed/forbidden legal/illegal guilty/innocent present/absent
        happy/sad strong/weak clean/dirty wild/tame lost/found busy/free sharp/blunt wet/dry
        abandoned/inhabited hopeful/hopeless brave/cowardly
        wounded/healed healthy/ill broken/fixed employed/unemployed pregnant/postpartum""".split()
    )
]
# Words of which a thing or person is one at a time.
_SCALES = tuple(
    key_words(words)
    for words in (
        "friendly neutral hostile wary indifferent suspicious loyal disloyal kind unfriendly",
        "happy sad angry calm anxious content depressed cheerful",
        "beginner novice intermediate advanced expert master",
        "cold cool warm hot freezing",
        "poor rich wealthy broke",
        "thin slim fat overweight",
        "weak strong",
        "dirty clean filthy spotless",
        "ruined intact destroyed standing",
        "alone married single",
    )
)
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
_FRESH = re.compile(r"\b(?:again|now|once more|these days|restored)\b|再次|又|现在|已经|恢复")
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
    ):
        return False
    counts = [
        {w for w in words if w.isdigit()}
        for words in (new.words - old.words, old.words - new.words)
    ]
    if (
        all(counts)
        or not new.numbers <= old.numbers
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
    if a.slot == b.slot and a.key == b.key and a.predicate in _WHO and a.explicit and b.explicit:
        # One person in one role, under another word for the role ("wife", "spouse").
        return a.extra in {"", b.extra} and len(new.words - old.words) <= MAX_ROLE_WORDS
    left = new.words - old.words - _CARRIERS
    if a.predicate in {"state", "event", "plans", "does"}:
        left = new.words - old.words - {"stand", "go", "be", "都", "去", "会", "在"}
    return kindred and not left


def another_value(new: Said, old: Said) -> bool:
    """Whether both fill a slot that has one value at a time, with different values."""
    a, b = new.claim, old.claim
    if a is None or b is None or a.slot != b.slot or not a.functional:
        return _same_but_count(new, old)
    if a.ended or b.ended or a.polarity < 0 or b.polarity < 0 or a.future or b.future:
        return False
    if is_over(a):
        return False
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
    if fold(a.object) == fold(b.object):
        return False
    return not (a.key and a.key <= b.key)


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
_PLAN_WORDS = key_words(
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
            r"\bswitched to\b|\bnow (?!\w*$)|\bbut\b|\binstead\b|\band (?:is|has|now|joined)\b"
            r"|改|换成|而是|现在(?![已经也]*[不没])",
            new.text,
        )
    )
    cross = a.predicate != b.predicate and a.about.group == "taste"
    return "UPDATE" if states_more or cross else "DELETE"


def _ends_object(a: Claim, b: Claim) -> bool:
    """Whether the ended object is the old one; a vaguer name for it counts ("the Civic")."""
    left, right = _object(a), _object(b)
    if not left or not right:
        return False
    if a.predicate == "has_pet" and a.extra and b.extra and fold(a.extra) != fold(b.extra):
        return False
    if left == right:
        return True
    if a.about.group == "plan" or b.about.group == "plan":
        left -= _PLAN_WORDS
        right -= _PLAN_WORDS
        return bool(left) and (left <= right or (bool(right) and right <= left))
    if a.about.group == "having":
        # the last word is the thing, a name before it the make: "Civic" ends "Honda Civic"
        return left < right and bool(left & key_words(b.object.split(" ")[-1]))
    if a.predicate in {"works_at", "lives_in", "studies_at"}:
        return left <= right or right <= left
    return False


def rescheduled(new: Said, old: Said) -> str:
    """Return "UPDATE" where `new` moves the appointment that `old` is, "DELETE" where it is off."""
    moved, off = bool(_MOVED.search(new.text)), bool(_OFF.search(new.text))
    b = old.claim
    coming = b is not None and b.predicate == "visited" and _COMING.search(old.text)
    if not (moved or off) or (b is None and not moments(old.text)):
        return ""
    if b is not None and (b.ended or not (b.about.group == "plan" or coming or moments(old.text))):
        return ""
    cut = (_MOVED if moved else _OFF).search(new.text)
    if cut is None:
        return ""
    before, after = new.text[: cut.start()], new.text[cut.end() :]
    topic = (
        before
        if len(key_words(before))
        else re.split(r" (?:to|until|till|on|from) ", after, maxsplit=1)[0]
    )
    every = (
        key_words(topic)
        - key_words("cancelled moved meeting's plan plans")
        - frozenset("和跟与的把议预约排行程活动计划")
    )
    words = every - _PLAN_WORDS or every
    return ("UPDATE" if moved else "DELETE") if words and words <= old.words else ""


def opposite_state(new: Said, old: Said) -> bool:
    """Whether `new` says the opposite of `old` of the same thing, in the same words otherwise."""
    a, b = new.claim, old.claim
    if a is None or b is None or a.owner != b.owner or b.ended or a.ended:
        return False
    loose = {"state", "event", "plans", "does", "works_as"}
    if (
        a.predicate == "event"
        and b.predicate == "state"
        and _FRESH.search(new.text)
        and is_chinese(new.text)
    ):
        return not _noun_like(b.object) and len(a.object) <= 6  # noqa: PLR2004 - a few words
    if a.predicate not in loose or b.predicate not in loose:
        return False
    markers = key_words("again now finally still once more today")
    left, right = new.words - old.words - markers, old.words - new.words - markers
    if len(left) == len(right) == 1:
        pair = frozenset(left | right)
        if pair in _ANTONYMS or any(pair <= scale for scale in _SCALES):
            return True
    if a.predicate == b.predicate == "state" and left and _FRESH.search(new.text):
        thing = new.text[:4].lower() == "the " or is_chinese(new.text)
        return thing and not _noun_like(a.object) and not _noun_like(b.object) and len(left) <= 2  # noqa: PLR2004 - a few words
    return False


def _noun_like(state: str) -> bool:
    return bool(
        re.match(
            r"(?:the|an?|in|at|on|near|from|under|made|called|named|owned|located|built) ?\b"
            r"|.*\bof\b|(?:一|在)",
            state,
        )
    )
