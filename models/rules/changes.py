"""How two statements differ as texts, for what no pattern of claims recognises.

Denied in the same words, the same but for a number or a time, a state and the event that ends it,
a thing that is gone. Each asks for nearly all words to be shared, since nothing else is known.
"""

# ruff: noqa: E501 - a table reads better a line a case
from __future__ import annotations

import re

from reverie.models.rules.apart import MAX_STATEMENT_CHARS, is_unreal
from reverie.models.rules.claims import KIN_PREDICATES, USER_LABELS, Claim, slot_subject
from reverie.models.rules.phrases import subject_of
from reverie.models.rules.reading import Said, is_unsaid, told_in
from reverie.models.rules.sides import sides
from reverie.models.rules.text import fold, is_chinese, key_words, numbers, remembered
from reverie.models.rules.vocab import BASES, NATIONALITIES, PASTS

_OVER = r"no longer|any ?more|any longer|(?:has |have )?(?:stopped|quit|ceased|given up|gave up)|gave up"
# "not ... any more" denies once: what only comes after another word is not counted here.
_DENIAL = re.compile(
    r"\b(?:no longer|(?:has |have )?(?:stopped|quit|ceased|given up|gave up)|not|never|no|cannot|without|nor|neither)\b|n't\b"
    r"|(?<!最)不(?![错但仅过同久少得只可论])|没(?!关系|问题)|戒(?:掉|了)|停止",
    re.IGNORECASE,
)
_IS_OVER = re.compile(rf"\b(?:{_OVER})\b|不再|再也不|已经不|[不没].*了[。！]?$", re.IGNORECASE)
_ANY = re.compile(r"\bany(?:thing|one|body)?\b|任何", re.IGNORECASE)
_DENIALS = key_words(
    """no not never longer anymore any anything anyone anybody doesn't don't isn't aren't hasn't
    haven't can't cannot won't didn't wasn't weren't stopped stop quit ceased cease given gave give up
    has have had more now these days"""
)
# Characters that say how, not what; 有 and 是 too, since "has no" is 没有.
HAN_FILLERS = frozenset("不没有再也了现在已经早就常总很会的是着呢吧啊每都去还用户这那个1")
_THEIRS = re.compile(r"User's ")
_USER = re.compile(r"\b[Uu]ser\b|用户")
HAN_LEADS = "已经终于又刚就都也很正在现仍还的"  # characters between a Chinese subject and its verb
_INSTEAD = re.compile(r"\binstead\b(?! of)", re.IGNORECASE)
MAX_SWAPPED = 2  # words of a statement that another may have in their place
_HAN_NUMERAL = re.compile(r"[\d.]+|[零〇一二两三四五六七八九十百千万]+")
_HAN_ADVERBS = re.compile(r"现在|目前|如今|已经|改成|改为|每天|都|了|[。！]")
_BARE_PASTS = frozenset("read put cut hit hurt let set bet quit shut split".split())
_MARKERS = key_words(
    "now instead again currently lately longer anymore these days since nowadays moment recently"
)
_MARKED = re.compile(
    r"\b(?:now|instead|'s new|these days|nowadays|currently|from now on|as of)\b|现在|改成|改为|如今|了[。！]?$",
    re.IGNORECASE,
)
_DAYS = "monday tuesday wednesday thursday friday saturday sunday"
_MONTHS = "january february march april june july august september october november december"
_TIMES = key_words(
    f"""{_DAYS} {_MONTHS} day noon midnight dawn dusk morning evening afternoon night today tomorrow
    tonight weekend weekday spring summer autumn winter am pm o'clock half quarter past"""
)
_VALUE = re.compile(
    r"\d[\d.,:]*(?:am|pm|st|nd|rd|th|k|kg|km|h|m|cm)?|first|second|third|fourth|fifth|sixth"
    r"|seventh|eighth|ninth|tenth"
)
_ORDINALS = key_words("first second third fourth fifth sixth seventh eighth ninth tenth")
_HAN_VALUES = frozenset("零〇一二两三四五六七八九十百千万半1")
_HAN_MOMENT = re.compile(
    r"(?:上|下|这|本)*个?(?:周|星期|礼拜)[一二三四五六日天末]|[\d一二三四五六七八九十]{1,3}[月日号点]"
    r"|[今明昨后前][天年晚]|[上下]个?[月周]|早上|早晨|白天|夜里|夜晚|上午|中午|下午|晚上|凌晨|春天|夏天|秋天|冬天"
)
_MOMENT = re.compile(
    r"\b(?:(?:mon|tues|wednes|thurs|fri|satur|sun)days?|january|february|march|april|june|july|august"
    r"|september|october|november|december|noon|midnight|dawn|dusk|mornings?|evenings?|afternoons?"
    r"|nights?|today|tomorrow|yesterday|tonight|(?:last|next|this) (?:week|month|year))\b",
    re.IGNORECASE,
)
_IS = r"\b(?:is|are|lies|stays|remains|has been|have been) (?:\w+ly |still |very )?"
_CASE = re.compile(
    r"\b(?:on (?:week\w+|holidays|(?:mon|tues|wednes|thurs|fri|satur|sun)days?)|at (?:lunch|dinner|breakfast|night|work|school)"
    r"|in (?:the )?(?:mornings?|evenings?|afternoons?|winter|summer|spring|autumn|rain)|when|while|unless|except|only"
    r"|that [a-z]+|who|which|without|during|alone)\b"
    r"|的时候|时候|周末|早上|晚上|夜里|以外|除了|只有|上班时|生(?=鱼|肉|菜)",
    re.IGNORECASE,
)
_PLACE = re.compile(r"\b(?:in|at|near) ([A-Z]\w+)")
# A state, and what ends it, whoever is in it. Said of the same subject.
_TURNS: tuple[tuple[str, str], ...] = (
    (
        r"pregnant|expecting",
        r"gave birth|had (?:a|her|the|their) baby(?! shower)|miscarried|has a newborn",
    ),
    (
        _IS + r"(?:ill|sick|unwell|wounded|injured|in (?:the )?hospital|bedridden)\b",
        r"recovered|has healed|(?:got|is|feels) (?:well|better)(?! at| than| known)|is healthy|out of hospital|discharged",
    ),
    (_IS + r"(?:closed|shut)\b", r"re-?opened|has opened|opened (?:again|its)|is open"),
    (_IS + r"open\b", r"has closed|closed (?:down|its)|shut down|went out of business|is closed"),
    (
        r"\bat war\b",
        r"made peace|signed (?:a|the) (?:peace|truce)|agreed (?:on|to) a truce|at peace",
    ),
    (
        r"\b(?:at peace|allied|allies)\b",
        r"declared war|at war|attacked|broke (?:the|its|their) alliance",
    ),
    (r"\basleep\b|is sleeping", r"woke up|has woken|is awake"),
    (
        _IS + r"(?:missing|lost)\b",
        r"was found|has been found|came back|has returned|returned safely",
    ),
    (
        r"\b(?:imprisoned|in prison|in jail|jailed|captured|a prisoner|locked up|held captive)\b",
        r"released|freed|set free|escaped|broke out",
    ),
    (
        _IS + r"(?:broken|damaged|out of order)\b",
        r"(?:was|been|got) (?:repaired|fixed|mended|rebuilt)|works again",
    ),
    (
        _IS + r"(?:wanted|outlawed|banned|exiled|an outlaw)\b",
        r"pardoned|cleared|allowed back|acquitted",
    ),
    (
        _IS + r"(?:intact|standing)\b",
        r"(?:was|were|has been) (?:destroyed|ruined|torn down)|collapsed|burned down",
    ),
    (_IS + r"(?:in a relationship|seeing someone)", r"is single|broke up"),
    (_IS + r"locked\b", r"unlocked|was opened|is open"),
    (
        r"\b(?:unemployed|out of work|between jobs|jobless|(?:looking for|seeking) (?:a |an? new )?(?:job|work))\b",
        r"(?:got|found|started|landed|accepted|took|has) (?:\w+ ){0,3}(?:job|position|work|post)\b|was hired|works (?:at|for|as)",
    ),
    (
        r"\bon (?:fire|strike|leave|holiday|vacation)\b|\bburning\b",
        r"put out|extinguished|ended|(?:came|is) back|returned (?:to work|from)",
    ),
    (
        r"\b(?:cursed|enchanted|bewitched|under a (?:curse|spell))\b",
        r"(?:curse|spell) (?:was|has been|is) (?:lifted|broken)|freed from|disenchanted",
    ),
    (r"\balive\b", r"\b(?:died|dead|was killed|passed away)\b"),
    (r"怀孕", r"生了|生下|分娩|流产"),
    (r"病|受伤|重伤|住院|感冒", r"痊愈|康复|恢复健康|病好了|好转|出院|好了"),
    (r"关着|关门|关闭|紧闭|停业", r"打开|开了|开门|重新开|恢复营业|开放"),
    (r"开着|开门|营业|敞开|开放", r"关上|关了|关闭|关门|停业|倒闭"),
    (r"打仗|交战|开战|战争|敌对", r"停战|议和|讲和|和好|和平|签了?和约"),
    (r"睡着|在睡|昏迷", r"醒"),
    (r"失踪|走失|丢了|不见了", r"找到|找回|回来"),
    (r"坐牢|被关|被囚|囚禁|被捕|被抓|被绑|监狱|被俘", r"获释|释放|逃出|逃走|放出|救出|获救|得救"),
    (r"坏了|坏的|损坏|故障|断了|塌了|破了", r"修好|修复|恢复"),
    (r"锁着|锁上|上锁", r"解锁|打开"),
    (r"失业|待业|没有工作|找工作", r"找到.*工作|入职|上班|被录用|开始.*工作"),
    (r"着火|燃烧", r"扑灭|灭了"),
    (r"诅咒", r"解除|破除"),
    (r"中毒|有毒", r"解毒|净化|干净"),
    (r"活着", r"死了|去世|牺牲|身亡"),
)
_TURN_PATTERNS = tuple(
    (re.compile(a, re.IGNORECASE), re.compile(b, re.IGNORECASE)) for a, b in _TURNS
)
_GONE = re.compile(
    r"\b(?:(?:was|were|has been|have been|got|is|are) (?:\w+ly )?(?:driven (?:off|out|away)|chased (?:off|away)"
    r"|wiped out|destroyed|demolished|torn down|pulled down|removed|stolen|cut down|felled|sunk|scrapped"
    r"|taken away|disbanded|given (?:away|to)|rehomed|put down|put to sleep)|burned down|burnt down|collapsed|disappeared|vanished|fled|ran away|moved out|moved away)\b"
    r"|被(?:人)?(?:赶走|赶跑|消灭|打败|拆|烧毁|烧|偷|抢|毁|砍|没收|撞坏)了?|消失了?|逃走了?|逃跑了?|不见了|塌了|没了",
    re.IGNORECASE,
)
_POSSESSED = re.compile(
    r"\b(?:has|have|owns?|possesses)\b(?! (?:to\b|been\b|\w+ed\b))|有", re.IGNORECASE
)
# What stands before a Chinese predicate and says when.
_HAN_WHEN = re.compile(
    "[上下这本]个?(?:月|周|星期)|今年|去年|明年|[今昨前]天|最近|现在|目前|如今|终于|后来|已经|早就|这阵子|春天|夏天|秋天|冬天|[，。]"
)
_THERE = re.compile(r"^(?:there (?:is|are)|[^，。]{1,8}有)", re.IGNORECASE)
_MANY_VALUED = frozenset(
    "likes speaks allergic_to met visited gave found born_in studied studied_at skilled_in learning".split()
)


@remembered
def is_denied(text: str) -> bool:
    """Return whether a text denies or ends something, an odd number of times."""
    return len(_DENIAL.findall(text[:MAX_STATEMENT_CHARS])) % 2 == 1


@remembered
def moments(text: str) -> frozenset[str]:
    """Return the days and times that a text names, folded."""
    text = text[:MAX_STATEMENT_CHARS]
    pattern = _HAN_MOMENT if is_chinese(text) else _MOMENT
    return frozenset(fold(found) for found in pattern.findall(text))


def denied(new: Said, old: Said) -> str:
    """Return "DELETE" where `new` denies what `old` says in its words, "UPDATE" the other way round,
    else ""."""
    if is_unreal(new.text) or is_unreal(old.text) or is_chinese(new.text) != is_chinese(old.text):
        return ""
    now, before = is_denied(new.text), is_denied(old.text)
    if is_unsaid(new.text):
        same = is_denied(told_in(new.text)) == before and _bare(new) == _bare(old)
        return "DELETE" if same else ""
    if now == before:
        return ""
    left, right = _bare(new), _bare(old)
    if not left or not right:
        return ""
    if not now and sides(new.text).ends:
        return ""  # it ends what is over: said once more
    if left == right:
        # What one has not is nothing to keep; that one does not trust, or cannot swim, is news.
        news = not (_IS_OVER.search(new.text) or _POSSESSED.search(old.text))
        return "DELETE" if now and not news else "UPDATE"
    if now and not left & right <= sides(old.text).current:
        return ""  # the old statement itself says that it is over
    over = now and (_IS_OVER.search(new.text) or _ANY.search(new.text))
    in_part = over and left < right and _verb_shared(new, old) and _same_subject(new, old)
    return "DELETE" if in_part else ""


def _same_subject(new: Said, old: Said) -> bool:
    """Whether a denial is of the one whom the old statement is about."""
    if is_chinese(new.text):
        match = _DENIAL.search(new.text)
        head = _HAN_WHEN.sub("", new.text[: match.start()] if match else "").rstrip(HAN_LEADS)
        told = _HAN_WHEN.sub("", old.text)
        return told.startswith(head) and not re.match("的|家(?!里)", told[len(head) :])
    if bool(_USER.search(new.text)) != bool(_USER.search(old.text)):
        return False
    one, other = subject_of_statement(new), subject_of_statement(old)
    return one == other or not (one and other)


def _bare(said: Said) -> frozenset[str]:
    return said.words - (HAN_FILLERS if is_chinese(said.text) else _DENIALS)


def _verb_shared(new: Said, old: Said) -> bool:
    """Whether the words after the denial begin with the verb of `old`: "no longer owes ..."."""
    match = _DENIAL.search(new.text)
    rest = new.text[match.end() :] if match else ""
    if is_chinese(new.text):
        rest = rest.rstrip("了。！")
        return len(rest) > 1 and rest in old.text
    after = fold(rest).split()
    if not after or (match and not match.group().endswith("longer") and after[0][-3:] != "ing"
                     and not _ANY.search(rest)):  # fmt: skip
        return False
    return bool(key_words(after[0]) & old.words)


def same_but_value(new: Said, old: Said) -> bool:
    """Return whether a lasting statement only has another number, or is said to have another time."""
    if is_unreal(new.text) or is_denied(new.text) != is_denied(old.text):
        return False
    a, b = new.claim, old.claim
    for claim in (a, b):
        if claim is not None and (
            claim.past or claim.ended or (claim.explicit and claim.predicate in _MANY_VALUED)
        ):
            return False
    if a is not None and b is not None and a.owner != b.owner:
        return False
    if numbers(_before_verb(new.text)) != numbers(_before_verb(old.text)):
        return False  # "Room 4", "Room 7"
    if _is_past(new.text) or _is_past(old.text):
        return False
    han = is_chinese(new.text)
    if han != is_chinese(old.text):
        return False
    if han and _counts_differ(new.text, old.text):
        return not (moments(new.text) or moments(old.text)) or bool(_MARKED.search(new.text))
    extra = frozenset("了现在改成为") if han else _MARKERS
    left, right = new.words - old.words - extra, old.words - new.words - extra
    if not left or not right or not all(map(_is_value, left | right)):
        return False
    shared = new.words & old.words - (HAN_FILLERS if han else key_words("user"))
    if not any(not _is_value(word) for word in shared):
        return False
    loose = a is None or not a.explicit or a.predicate not in {"event", "plans", "training_for"}
    years = any(re.fullmatch(r"(?:1[0-9]|20)\d\d", word) for word in left | right)
    timed = (
        years or bool((left | right) & (_TIMES | _ORDINALS)) or (han and bool(moments(new.text)))
    )
    return bool(_MARKED.search(new.text)) or (loose and not timed) or bool(left & _ORDINALS)


def _counts_differ(new: str, old: str) -> bool:
    """Whether two Chinese texts are the same but for their numerals."""
    one, other = (_HAN_NUMERAL.sub("#", _HAN_ADVERBS.sub("", text)) for text in (new, old))
    numerals = (_HAN_NUMERAL.findall(text) for text in (new, old))
    return one == other and "#" in one and len({tuple(found) for found in numerals}) > 1


def instead(new: Said, old: Said) -> bool:
    """Return whether `new` says of a word or two of `old` that another takes its place."""
    if not _INSTEAD.search(new.text) or is_unreal(new.text) != is_unreal(old.text):
        return False
    if is_chinese(new.text) or is_denied(new.text) or is_denied(old.text) or _is_past(old.text):
        return False
    if not _same_subject(new, old):
        return False
    left, right = new.words - old.words - _MARKERS, old.words - new.words
    shared = new.words & old.words
    return 0 < len(left) <= MAX_SWAPPED and 0 < len(right) <= MAX_SWAPPED <= len(shared)


def _before_verb(text: str) -> str:
    found = re.search(r"\b(?:is|are|was|has|have|[a-z]+s)\b|[是有在]", text)
    return text[: found.start()] if found else ""


def narrows(new: Said, old: Said) -> bool:
    """Return whether one of two statements is only about a case that the other does not name: "on
    weekends", "dogs that bark", "at lunch". Then neither denies the other."""
    one = {fold(found) for found in _CASE.findall(new.text)}
    other = {fold(found) for found in _CASE.findall(old.text)}
    return one != other


def elsewhere(new: Said, old: Said) -> bool:
    """Return whether both name a place, and not the same."""
    one, other = (set(_PLACE.findall(text)) for text in (new.text, old.text))
    return bool(one and other) and not one & other


def _is_value(word: str) -> bool:
    return (
        bool(_VALUE.fullmatch(word)) or word in _TIMES or word in _ORDINALS or word in _HAN_VALUES
    )


def _is_past(text: str) -> bool:
    if is_chinese(text):
        return bool(re.search("去年|昨天|上个?[月周]|以前|曾经|过(?!敏)|前天", text))
    words = fold(text).split()
    bare = bool(set(words[1:3]) & _BARE_PASTS)  # "User read": not "reads"
    return bare or any(w in PASTS and w not in BASES for w in words[:6]) or "last" in words


def turned(new: Said, old: Said) -> bool:
    """Return whether `new` tells the event that ends the state that `old` tells."""
    if is_unreal(new.text) or is_denied(new.text) or is_denied(old.text):
        return False
    if is_chinese(new.text) != is_chinese(old.text) or other_moment(new, old):
        return False
    if not is_chinese(new.text) and (
        not subject_of_statement(new) or subject_of_statement(new) != subject_of_statement(old)
    ):
        return False
    for state, event in _TURN_PATTERNS:
        before, after = state.search(old.text), event.search(new.text)
        if before and after and not event.search(old.text):
            if _of_another(new.text[after.end() :], old.text[before.end() :]):
                continue
            if not is_chinese(new.text):
                return True
            heads = (old.text[: before.start()], new.text[: after.start()])
            one, other = (head.rstrip(HAN_LEADS) for head in heads)
            if one and one == other:
                return True
    return False


_AGAINST = re.compile(r"\b(?:with|against) (?P<o>[^,;.]+)")
_WHERE = re.compile(
    r"\b(?:in|at|inside|under|from|out of) (?:the |an? )?(?!night|morning|evening|end|spring|summer|autumn|winter)(?P<o>[^,;.]+)"
)


def _of_another(new: str, old: str) -> bool:
    """Whether what follows a state and what follows its end name with whom or where, and not the
    same: peace with one does not end the war against another."""
    if is_chinese(new + old):
        rests = [
            frozenset(text) - HAN_FILLERS - frozenset("在于了里中。！，出从") for text in (new, old)
        ]
        named, known = rests
        return min(map(len, rests)) > 1 and not (named <= known or known <= named)
    for pattern in (_AGAINST, _WHERE):
        one, other = pattern.search(new), pattern.search(old)
        if one and other:
            named, known = key_words(one["o"]), key_words(other["o"])
            if not (named <= known or known <= named):
                return True
    return False


_ROLES = frozenset({"doctor", "teacher", "roommate", "colleague", "neighbour", "friend"})
_TITLES = key_words("dr mr mrs ms prof professor doctor sir")
_HAN_NUMBER = re.compile(r"[\d零〇一二两三四五六七八九十百千万]")


def another_holder(new: Said, old: Said) -> bool:
    """Return whether `new` gives another value to what `old` gives one: "X's laptop is a MacBook",
    "X's therapist is Dr Adeyemi now". Values of different sorts ("red", "a Honda") can both hold."""
    a, b = new.claim, old.claim
    if a is None or b is None or a.slot != b.slot or a.ended or b.ended:
        return False
    if a.polarity < 0 or b.polarity < 0 or a.future or b.future:
        return False
    left, right = a.key - _TITLES, b.key - _TITLES
    if not left or not right or left & right:
        return False
    if a.predicate == "state" and a.text.startswith("The ") and "'s " not in a.owner:
        return _sort(a.object) == _sort(b.object) == "name"  # "The mayor is Henna"
    if a.predicate == "state" and re.match(r".+'s ", a.owner):
        sort = _sort(a.object)
        kin = a.owner.rpartition("'s ")[2] in KIN_PREDICATES
        marked = re.search(r"\b(?:changed|switched) to\b|换成|变成|改成", new.text)
        return sort == _sort(b.object) and bool(sort or marked) and not kin
    if a.predicate != "kin" or a.detail not in _ROLES:
        return False
    named = all(_sort(claim.object) == "name" or is_chinese(claim.text) for claim in (a, b))
    value = re.escape(a.object)
    if not re.search(
        rf"\b(?:is|are) (?:now |currently )?(?:called |named )?{value}(?: now| instead| these days)?\W*$"
        rf"|(?:是|叫|换成|换成了|改成){value}了?\W*$",
        new.text,
    ):
        return False
    role = (new.words & old.words) - a.key - b.key - key_words("user now") - HAN_FILLERS
    best = "best" in new.words & old.words or ("最好" in new.text and "最好" in old.text)
    return named and bool(role) and bool(best or _MARKED.search(new.text) or "换" in new.text)


def _sort(value: str) -> str:
    """Whether a value is a number or a name; "" where it is neither."""
    bare = re.sub(r"^(?:an?|the|called|named) ", "", value, flags=re.IGNORECASE)
    if _HAN_NUMBER.match(bare):
        return "number"
    if re.match(r"[^\W\d_]?[A-Z]", bare) and not re.fullmatch(NATIONALITIES, bare):
        return "name"
    return ""


def other_moment(new: Said, old: Said) -> bool:
    """Return whether both name a time and not the same: "closed at night", "open at noon"."""
    return bool(moments(new.text) and moments(old.text) and moments(new.text) != moments(old.text))


def subject_of_statement(said: Said) -> str:
    """Return whom or what an English statement is about, as slots write it; "" where that is not sure."""
    owner = said.claim.owner if said.claim is not None else ""
    if not owner and (parts := subject_of(said.text[:MAX_STATEMENT_CHARS], USER_LABELS[0])):
        owner = slot_subject(parts[0])
    if owner == "user" and _THEIRS.match(said.text):
        return ""  # of somebody or something of the user's
    return re.sub(r" (?:has|have|is|no longer|finally|now|just)$", "", owner)


def gone(new: Said, old: Said) -> bool:
    """Return whether `new` says that a thing which `old` says is there, or is had, is gone."""
    if is_unreal(new.text) or is_denied(new.text) or is_denied(old.text):
        return False
    match = _GONE.search(new.text)
    b = old.claim
    there = bool(_THERE.match(old.text)) and not old.text.startswith("用户")
    had = b is not None and b.predicate in {"has", "has_pet", "uses"} and not b.ended
    if match is None or not (there or had):
        return False
    topic = key_words(new.text[: match.start()]) - frozenset("了的用户把被") - _MARKERS
    thing = topic if there else topic - key_words("user")
    head = _head(old)
    if re.search(r"\band\b|和|、", old.text):  # one of several is gone
        return False
    if had and b is not None and not _is_of(new.text, b):
        return False
    return bool(thing) and thing <= old.words and bool(key_words(head) & thing)


def _is_of(text: str, claim: Claim) -> bool:
    """Whether what a text says is gone may be what the subject of a claim has: theirs, or nobody's
    by name."""
    if is_chinese(text):
        return text.startswith(claim.subject)
    whose = re.match(r"(?P<owner>.+?)'s ", text)
    return whose is None or slot_subject(whose["owner"]) == claim.owner


def _head(old: Said) -> str:
    """What is there or had: the object of the claim, or what follows "there is" and 有."""
    if old.claim is not None and old.claim.predicate != "state":
        return old.claim.object + " " + old.claim.extra
    return _THERE.sub("", old.text)


def common(one: str, other: str) -> str:
    """Return the longest common beginning of two texts."""
    count = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        count += 1
    return one[:count]
