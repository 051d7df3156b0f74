"""Names in a text: capitalised runs, Chinese names by surname and context, known cities, titles."""

# ruff: noqa: E501 - a pattern reads better whole than broken
from __future__ import annotations

import re

from reverie.memory_graph.drafts import EntityDraft
from reverie.models.rules import chinese_rules as zh
from reverie.models.rules.dates import MONTHS, WEEKDAYS
from reverie.models.rules.phrases import UPPER
from reverie.models.rules.thing_words import NO_THINGS, TYPES
from reverie.models.rules.vocab import COMMON, DIETS, GERUNDS, JOB_WORDS, NATIONALITIES

MAX_ENTITIES = 40  # of one turn

_PLACE_TAIL = "ruins|forest|woods|castle|bridge|inn|tavern|valley|mountains|village|caves|cave|temple|tower|swamp|desert|mine|mines|island|harbor|harbour|gate|keep|crossing"
_RUN = re.compile(
    rf"(?<![\w@.'-])(?:(?:St|Dr|Mr|Mrs|Ms|Prof)\. )?[{UPPER}][\w]*(?:[-&][\w]+)*(?:'(?!s\b|m\b|ve\b|ll\b|d\b|re\b|t\b)\w+)?"
    rf"(?:(?:'s)? (?:(?:of the|of|de|van|von|del|da|la) )?(?:(?:St|Dr|Mr|Mrs|Ms|Prof|[A-Z])\. )?[{UPPER}\d][\w-]*(?:'(?!s\b|m\b|ve\b|ll\b|d\b|re\b|t\b)\w+)?){{0,4}}"
    rf"(?: (?:{_PLACE_TAIL})\b|(?<=[A-Z]\d) [a-z]+)?",
)
_CALENDAR = frozenset(MONTHS) | frozenset(WEEKDAYS) | {f"{d}s" for d in WEEKDAYS} | {
    "christmas", "easter", "am", "pm", "i", "ii", "ok", "tv", "lol", "omg", "dna", "mondays", "q", "faq",
    "pdf", "ai", "mon", "tue", "tues", "wed", "thu", "thur", "thurs", "fri", "sat", "hmm", "hmmm", "id", "diy", "asap", "eta", "fyi", "spring", "summer", "autumn", "winter",
}  # fmt: skip
_SEASONS = frozenset("spring summer autumn winter christmas easter".split())
# Words that begin names and sentences alike; before another capital they belong to the name.
_NAME_LEADS = frozenset(
    """little old big great new red black white green blue golden silver north south east west upper
    lower long young royal free first last""".split()
)
_NO_NAME = frozenset({"player", "npc"})
_CALLS = frozenset(
    "hi hey hello dear thanks thank sorry congrats bye welcome and but so oh".split()
)
_ADJECTIVE = re.compile(rf"(?:{NATIONALITIES}|{DIETS})s?", re.IGNORECASE)
_TITLE = re.compile(
    r"(?:Dr|Mr|Mrs|Ms|Prof|Sir|Lady|Lord|King|Queen|Captain|Prince|Princess|Elder|Father|Sister|Brother|Uncle|Aunt|Auntie|Grandma|Grandpa|Saint|Master|General|Professor|Doctor|Coach)\b"
)
_KINDS = (
    ("event", re.compile(r"(?:Marathon|Festival|Cup|Olympics|Conference|Fair|Championship|Tournament|Games|War|Summit)$")),
    ("organization", re.compile(r"(?:Inc|Corp|Ltd|LLC|GmbH|Bank|University|College|School|Institute|Hospital|Company|Guild|Labs?|Group|Studios?|Academy|Airlines|Foundation|Museum|Clinic|FC|Society|Agency)$|^(?:University|Bank|Ministry|Order|Guild) of ")),
    ("place", re.compile(rf"(?:Lake|River|Mountains?|Mount|Street|Avenue|Road|Park|Pass|Valley|Forest|Bay|Beach|Island|City|Town|Castle|Bridge|Square|Hill|Falls|Gate|Inn|Tavern|Woods|Harbou?r|Village|Canyon|Creek|Ruins|Keep|Desert|Airport|{_PLACE_TAIL})$|^(?:Mount|Lake|Cape|Fort|Port|San|Santa|New York|Los|St) ?")),
    ("person", _TITLE),
)  # fmt: skip
_VERB_AFTER = re.compile(
    r"(?:'s )?\s?(?:said|says|lives|works|loves|likes|hates|got|gets|wants|told|went|has|had|moved|is (?:my|our|a|an|the|getting|going|from|turning|coming|moving|\w+ing)|was|just|will|and (?:I|my)|thinks|asked|called|gave|took|came|plays|teaches|needs|owns|runs|made|met|bought|started|graduated|died)\b"
)
_JOB = re.compile(JOB_WORDS)
_IS_DOING = re.compile(r"'s (?:just |now |finally |also |still )*(\w+ing)\b")
_SAINTS = re.compile(
    r"'s(?=$|[,.!?;)]| (?:on|at|in|and|for|every|this|next|last|with|from|to|is|was|now)\b)"
)
_WORK = re.compile(r"《([^《》]{1,40})》|\"([A-Z][^\"]{1,40})\"")
_ZH_PERSON = re.compile(
    f"[和跟与同找给陪约问是叫友事识遇见到师学欢爱厌](?P<a>(?:{zh.SURNAMES})[\u4e00-\u9fff]{{1,2}}?)"
    "(?=一起|去|在|的|是|说|和|也|都|结|要|了|送|住|喜|爱|有|最|给|把|被|跟|吃|聊|见|打|来|看|玩|逛|学|做|上|拿|又|刚|今|昨|明|从|对|开|帮|让|[，。！？；、,\\s]|$)"
    f"|(?P<b>(?:{zh.SURNAMES})(?:伯|叔|婶|姨|哥|姐|爷爷|奶奶|总|老师|医生|先生|女士|小姐|师傅|大叔|大妈|队长|村长|教授|经理|阿姨|叔叔))"
    f"|(?:^|[，。！？；\\s])(?P<c>(?:{zh.SURNAMES})[\u4e00-\u9fff]{{1,2}}?)(?=说|住在|喜欢|讨厌|是我|在.{{2,8}}(?:工作|上班)|结婚|搬|养了|送)",
)
_ZH_PLACE = re.compile(zh.CITIES)
_ZH_PLACE_TAIL = re.compile(
    "(?:去了|去过|住在|搬到了?|来自|到了|在)([\u4e00-\u9fff]{1,5}(?:省|市|县|镇|村|山|湖|岛|城|寺|古镇|公园))"
)
_LATIN = re.compile(r"[A-Z][A-Za-z]+(?: [A-Z][A-Za-z]+){0,3}|[A-Z]{2,6}")


def english_names(sentence: str, *, first: bool = True) -> list[EntityDraft]:
    """Return the names of one sentence in order of appearance.

    Args:
        sentence: cleaned text.
        first: whether its first word is capitalised only for standing there.
    """
    found: list[EntityDraft] = []
    for match in _RUN.finditer(sentence):
        words = match.group().split(" ")
        at = match.start()
        lead = sentence[:at].rstrip()
        starts = first and (not lead or lead[-1] in ":\"'(-")
        while words and (
            words[-1].lower() in _CALENDAR or words[-1] in {"I", "of", "the"} or words[-1].isdigit()
        ):
            words.pop()
        while words and _unnamed(words, starts=starts, after=sentence[match.end() :]):
            at += len(words[0]) + 1
            words.pop(0)
            starts = False
        name = " ".join(words).removesuffix("'s")
        if (
            len(name) < 2  # noqa: PLR2004 - a letter is no name
            or _ADJECTIVE.fullmatch(name)
            or not name[0].isupper()
            or name.lower() in _NO_NAME
            or (_TITLE.fullmatch(name) and sentence[:at].rstrip().lower().endswith("the"))
        ):
            continue
        if name.startswith(("St ", "St. ")) and _SAINTS.match(sentence[at + len(name) :]):
            name += "'s"  # "St Mark's" is the church
        before = sentence[:at].rstrip()[-20:].lower()
        found.append(EntityDraft(name, _kind(name, before, sentence[at + len(name) :])))
    return found


def is_name(low: str) -> bool:
    """Return whether a lower-cased word is no common noun, job or title that may begin a sentence:
    "Engineer's coming", "the Queen"."""
    common = low in NO_THINGS or low in TYPES or low in COMMON
    return not (common or _JOB.fullmatch(low) or _TITLE.fullmatch(low.capitalize()))


def _unnamed(words: list[str], *, starts: bool, after: str) -> bool:
    """Whether the first word of a capitalised run is not part of a name."""
    word = words[0].removesuffix("'s")
    low = word.lower()
    follows = len(words) > 1 and words[1][:1].isupper() and words[1].lower() not in _CALENDAR
    if follows and not starts and low in _SEASONS:
        return False  # "the Winter Feast"
    if low in _CALENDAR or low.split("'")[0] == "i" or word == "I" or low in {"of", "the"}:
        return True
    if len(words) > 1 and _ADJECTIVE.fullmatch(word):
        return words[1][:1].islower()
    if follows and (low in _NAME_LEADS if starts else low not in _CALLS):
        return word.isupper()  # "at Little Acorns"; not "GOT Anna a gift"
    if not starts:
        return (
            low in COMMON
            and not (low == "who" and word.isupper())  # the health organization
            and low
            not in {
                "will",
                "mark",
                "may",
                "sue",
                "drew",
                "rob",
                "pat",
                "grace",
                "art",
                "hunt",
                "grant",
                "chase",
            }
        )
    if low in COMMON:
        return True
    if len(words) > 1 or (word.isupper() and len(word) > 1) or words[0].endswith("'s"):
        return False
    if (doing := _IS_DOING.match(after)) and is_name(low) and doing[1] in GERUNDS:
        return False  # "Ravi's starting school"
    return not (_VERB_AFTER.match(after) or after.startswith((", my ", ", our ")))


def _kind(name: str, before: str, after: str) -> str:
    for kind, pattern in _KINDS:
        if pattern.search(name):
            return kind
    if re.search(
        r"(?:\b(?:in|near|from|visit|visited|around|through|towards?)|(?:go|went|going|moved|moving|travel|trip|fly|flew|drive|drove|back|flight|flying|traveled|travelled|move|been|headed) to)$",
        before,
    ):
        return "place"
    if (name.isupper() and 1 < len(name) <= 5) or re.search(r"\b(?:at|for|join|joined)$", before):  # noqa: PLR2004 - a few words
        return "organization"
    if re.search(
        r"\b(?:with|named|called|met|meet|and|by|told|asked|dr\.?|mr\.?|mrs\.?|ms\.?|friend|brother|sister|wife|husband|son|daughter|boss|manager|,|hey|hi|thanks|dear|married|engaged to|married to|give|gave)$",
        before,
    ):
        return "person"
    if after.startswith("'s ") or _VERB_AFTER.match(after):
        return "person"
    return "thing"


def chinese_names(text: str) -> list[EntityDraft]:
    """Return people (surname and context), known places and Latin-script names of a Chinese text."""
    found: list[EntityDraft] = []
    for match in _ZH_PERSON.finditer(text):
        name = match["a"] or match["b"] or match["c"]
        if not re.search("[生师员人家者的]$", name):
            found.append(EntityDraft(name, "person"))
    found += [EntityDraft(m.group(), "place") for m in _ZH_PLACE.finditer(text)]
    found += [EntityDraft(m[1], "place") for m in _ZH_PLACE_TAIL.finditer(text)]
    for match in _LATIN.finditer(text):
        if match.group().lower() not in _CALENDAR | {"i"} and len(match.group()) > 1:
            found.append(EntityDraft(match.group(), "thing"))
    return found


def titles(text: str) -> list[EntityDraft]:
    """Return works named in quotes or in 《》."""
    return [
        EntityDraft(m[1] or m[2], "work")
        for m in _WORK.finditer(text)
        if m[1] or (m[2] and len(m[2].split()) <= 6 and m[2][-1] not in ".!?,")  # noqa: PLR2004 - a few words
    ]


def _as_written(name: str, source: str) -> str:
    """Return a name as `source` writes it, "" where it does not stand there."""
    for shown in (name, name.replace("'", "’"), name[:1].lower() + name[1:]):
        if shown in source:
            return shown
    return ""


def merged(drafts: list[EntityDraft], source: str) -> tuple[EntityDraft, ...]:
    """Return each name once, longest wins over its parts, and only names that stand in `source`.

    A type other than "thing" wins over "thing"; the first given type wins otherwise.
    """
    types: dict[str, EntityDraft] = {}
    for draft in drafts:
        name = _as_written(draft.name.strip(' ,.;:!?"'), source)
        if not any(c.isalnum() for c in name):
            continue
        key = name.casefold()
        if key not in types or types[key].type == "thing" != draft.type:
            types[key] = EntityDraft(name, draft.type)
    kept = []
    for key, draft in types.items():
        longer = (
            k
            for k in types
            if k != key and re.search(rf"(?<![^\W_]){re.escape(key)}(?:s)?(?![^\W_])", k)
        )
        if not any(True for _ in longer):
            kept.append(draft)
    return tuple(kept[:MAX_ENTITIES])
