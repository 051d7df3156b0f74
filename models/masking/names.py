"""People in a text: names that are known already, names that context gives away, given names.

What is missed: rare names without context ("Sanne agreed"), names in lower case that nobody has
introduced, Chinese names of rare surnames, and names in other scripts unless they are known as a
speaker's or were given as a person's. docs/privacy.md has the measured shares.
"""

# ruff: noqa: E501 - a pattern reads better whole than broken
from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from reverie.models.masking.given import FAMILIAR, GIVEN, ORDINARY, PARTICLES, PLAIN_HAN
from reverie.models.rules.chinese_rules import CITIES, SURNAMES
from reverie.models.rules.dates import MONTHS, WEEKDAYS
from reverie.models.rules.names import chinese_names, english_names
from reverie.models.rules.text import sentences
from reverie.models.rules.vocab import COMMON, NATIONALITIES, PASTS, THIRDS

MAX_NAME_WORDS = 4
MAX_NAME_CHARS = 8  # of a name in a script without spaces

_HAN = "\u3400-\u4dbf\u4e00-\u9fff"
_CJK = f"{_HAN}\u3040-\u30ff\uac00-\ud7af"  # scripts that put no space between words
_LETTER = f"[^\\W_{_CJK}]"
_WORD = re.compile(f"{_LETTER}+(?:['\\-]{_LETTER}+)*")
_UNSPACED = re.compile(f"[{_CJK}]+")
_UPPER = "A-ZÀ-ÖØ-Þ"
_TITLED = re.compile(
    rf"\b(?:Dr|Mr|Mrs|Ms|Miss|Prof|Professor|Doctor|Sir|Lady|Lord|Captain|Uncle|Aunt|Auntie|Father|Sister|Brother|Frau|Herr|Señora?|Madame|Monsieur)\.? "
    rf"(?P<n>[{_UPPER}][\w'\-]{{1,40}}(?: [{_UPPER}][\w'\-]{{1,40}})?)"
)
_INTRODUCED = re.compile(
    r"\b(?:(?:my|his|her|their) (?:full |first |last |real )?name(?:'s| is|:)|(?:name|signed|contact|patient|customer|attn)\s*[:：]|(?:he|she|they|who)(?:'s| is) (?:called|named)|named|called|call me|known as)\s+"
    r"(?P<n>[^\W\d_][\w'\-]{1,40}(?: [^\W\d_][\w'\-]{1,40}){0,2})",
    re.IGNORECASE,
)
# Who is named right after: "my sister Ines", 我妹妹赵敏.
_RELATED = re.compile(
    r"\b(?i:sister|brother|wife|husband|son|daughter|mother|father|mom|mum|dad|uncle|aunt|cousin|friend|buddy|pal|boss|manager|supervisor|colleague|co-?worker|neighbou?r|teacher|tutor|coach|roommate|flatmate|housemate|partner|girlfriend|boyfriend|fianc[eé]e?|grand(?:father|mother|pa|ma|son|daughter)|nephew|niece|landlord|landlady|therapist|doctor|dentist|married to|engaged to|dating|tell|told|ask|asked|invited|hugged|kissed|called|texted|emailed|phoned|thanks|thank you|dear|regards|cheers|sincerely|hi|hello|hey),? "
    rf"(?P<n>[{_UPPER}][\w'\-]{{1,40}}(?: (?:[{_UPPER}]\. )?[{_UPPER}][\w'\-]{{1,40}}){{0,2}})",
)
_KIN_WORDS = frozenset(
    "sister brother wife husband son daughter uncle aunt cousin friend boss manager colleague "
    "roommate girlfriend boyfriend partner nephew niece teacher neighbour neighbor named called".split()
)
_SURNAMED = re.compile(  # as many surnames are built, and surnames that come first
    rf"\b(?:[{_UPPER}][\w'\-]{{1,40}} )?(?:O'[A-Z]|Mc[A-Z]|Mac[A-Z])[a-z]+\b|\b(?:[{_UPPER}][\w'\-]{{1,40}} )?[{_UPPER}][a-z]+(?:ski|sky|ska|wicz|sson|enko|opoulos|escu|ovi[cć]|shvili)s?\b"
    rf"|\b(?:Zhang|Wang|Zhao|Chen|Yang|Huang|Zhou|Zhu|Guo|Zheng|Xie|Deng|Cao|Feng|Liu|Xu|Luo|Liang|Tang|Nguyen|Tran|Tanaka|Suzuki|Sato|Yamamoto|Watanabe) [{_UPPER}][a-z]+(?:-[a-z]+)?\b"
)
_PAIR = re.compile(
    rf"(?<![\w.'\-])(?P<a>[{_UPPER}][\w\-]{{1,40}})(?:,? and|,| &) (?=(?P<b>[{_UPPER}][\w\-]{{1,40}}))"
)
_HUMAN = (
    "(?:"
    + "|".join(sorted(set(PASTS) | set(THIRDS) - {"is", "has", "does"}, key=len, reverse=True))
    + ")"
)
_ACTS = re.compile(
    rf"(?<![\w.'\-])(?P<n>[{_UPPER}][a-zà-ÿ]+(?:-[{_UPPER}]?[a-zà-ÿ]+)?)(?: (?:just|also|never|always|finally|even|still|already|really|then))? (?={_HUMAN}\b|the \w+(?:er|smith|or|ist|man|woman|keeper|maid|ian|ard|ess)\b)"
)
_KIN_HAN = "妹妹|姐姐|哥哥|弟弟|儿子|女儿|爸爸|妈妈|父亲|母亲|爷爷|奶奶|外公|外婆|老公|老婆|丈夫|妻子|爱人|男友|女友|男朋友|女朋友|朋友|闺蜜|同事|同学|邻居|老师|医生|经理|老板|队长|村长|铁匠|商人|守卫|室友|舅舅|叔叔|阿姨|姑姑|表哥|表姐|表弟|表妹|堂哥|堂姐|堂弟|堂妹|教练|师傅|房东|客户|患者|病人|学生|徒弟|对象"
_GIVEN_HAN = "红明强芳丽华军伟杰敏静磊娟涛超勇艳娜秀霞燕玲刚凤洁梅琳莲荣兰莉晶倩婷颖露瑶怡蓉薇悦欣芸菲浩宇轩豪鹏飞斌波辉峰亮俊健鑫凯博雷龙虎彬成志远"
_ZH_PET_NAME = re.compile(
    f"(?P<n>[小阿][{_GIVEN_HAN}](?![{_HAN}]?[色瓦光白年的地])|(?P<r>[{_GIVEN_HAN}])(?P=r)(?<!明明)(?<!亮亮)(?<!飞飞))(?=[和跟说在是的也很去来喜爱最今昨明问有想不，。！？、,.!?\\s]|[辞搬住养送打教]|$)"
)
_BEFORE_HAN = "(?:^|(?<=[，。！？；：、,.!?;:\\s“”\"'（）()「」《》和跟与同找给陪约问是叫友事识遇见到师学欢爱厌请让被对把由替向谢谢了]))"
_AFTER_HAN = "(?=一起|一直|今天|昨天|明天|今年|去年|最近|刚|从|对|向|请|约|说|讲|告|问|答|喊|笑|哭|每|正|先|总|经常|已经|以前|以后|曾|守|等|提|带|接|陪|找|借|还|发|写|听|读|画|唱|跳|生|病|住|在|是|去|来|到|要|想|会|能|的|也|都|很|不|没|有|和|跟|与|给|把|被|让|帮|送|打|吃|喝|看|玩|逛|学|教|做|当|买|卖|开|上|下|拿|又|走|跑|爱|喜欢|讨厌|结婚|离婚|搬|养|工作|毕业|出生|生病|生日|去世|吧|吗|呢|啊|了|，|。|！|？|、|；|：|,|\\s|的|$)"
_ZH_PERSON = re.compile(
    f"(?:{_BEFORE_HAN}|{_KIN_HAN})(?P<n>(?:{SURNAMES})[{_HAN}]{{1,2}}?){_AFTER_HAN}"
)
_ZH_INTRODUCED = re.compile(
    f"(?:我叫|名叫|叫做|他叫|她叫|名字(?:是|叫)|姓名(?:是|[:：])?\\s?|本人|联系人[:：]?|收件人[:：]?|病人|患者)(?P<n>[{_HAN}]{{2,4}}?)(?=[，。！？；、,.!?;\\s]|今年|住|电话|手机|$)"
)
_ZH_CALLED = re.compile(
    f"(?P<n>(?:[小老阿](?:{SURNAMES})(?![{_HAN}]?[孩学年师板家人百时])|(?:{SURNAMES})(?:伯|叔|婶|姨|哥|姐|总|老师|医生|先生|女士|小姐|师傅|大叔|大妈|队长|教授|经理|阿姨|叔叔|主任|同学)))"
)
_ZH_NOT_A_GIVEN = "的了在是和也都很不没有去来到说要会想给把被让我你他她它们这那上下里中着过吗呢吧啊就才还又再从对向为与跟同个些"
_CALENDAR = frozenset(MONTHS) | frozenset(WEEKDAYS)
_NO_NAME = COMMON | _CALENDAR
_NOBODY = _NO_NAME | FAMILIAR
_PLACES = re.compile(CITIES)
_NATION = re.compile(NATIONALITIES)


class Known:
    """Names that are known as people's, to be found wherever they stand; and the parts of them."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._keys: set[str] = set()
        for name in names:
            self.add(name)

    def add(self, name: str) -> None:
        """Learn a name: "Ana Schmidt" teaches "Ana" and "Schmidt" too, 王小红 teaches 小红."""
        key = name_form(name)
        if not key:
            return
        self._keys.add(key)
        words = [m.group() for m in _WORD.finditer(key)]
        if len(words) > 1:
            self._keys.update(
                w for w in words if len(w) > 1 and w not in PARTICLES and w not in COMMON
            )
        surname = re.match(SURNAMES, key)
        if surname and re.fullmatch(f"[{_HAN}]{{3,4}}", key) and len(key) - surname.end() > 1:
            self._keys.add(key[surname.end() :])

    def find(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield (start, end) of names that are known, the longest at each place."""
        if not self._keys:
            return
        words = list(_WORD.finditer(text))
        i = 0
        while i < len(words):
            step = 1
            for size in range(min(MAX_NAME_WORDS, len(words) - i), 0, -1):
                start, end = words[i].start(), _bare_end(words[i + size - 1])
                if name_form(text[start:end]) in self._keys and not _ordinary(text[start:end]):
                    yield start, end
                    step = size
                    break
            i += step
        for run in _UNSPACED.finditer(text):
            yield from self._within(text, run.start(), run.end())

    def _within(self, text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
        while start < end:
            for size in range(min(MAX_NAME_CHARS, end - start), 1, -1):
                if name_form(text[start : start + size]) in self._keys:
                    yield start, start + size
                    start += size
                    break
            else:
                start += 1


def name_form(name: str) -> str:
    """Return the form under which spellings of a name are the same."""
    return " ".join(name.casefold().replace("’", "'").split()).strip(" .,;:!?\"'")


def _bare_end(word: re.Match[str]) -> int:
    """Return where a word ends without a possessive."""
    return word.end() - 2 if word.group().casefold().endswith("'s") else word.end()


def _ordinary(name: str) -> bool:
    return name[:1].islower() and (name in COMMON or name in ORDINARY)


def people(text: str) -> list[tuple[int, int]]:
    """Return (start, end) of what looks like somebody's name, in English and Chinese texts.

    Args:
        text: of plain characters (NFKC, without invisible ones).
    """
    found = list(_people(text))
    ends, starts = {end for _, end in found}, {start for start, _ in found}
    for pair in _PAIR.finditer(text):  # who is named in one breath with somebody is somebody
        (a, b), (c, d) = pair.span("a"), pair.span("b")
        if b in ends and _may_be_somebody(pair["b"]):
            found.append((c, d))
        if c in starts and _may_be_somebody(pair["a"]):
            found.append((a, b))
    return found


def _may_be_somebody(word: str) -> bool:
    low = word.casefold()
    return low not in _NOBODY


def _people(text: str) -> Iterator[tuple[int, int]]:
    for match in (
        *_TITLED.finditer(text),
        *_INTRODUCED.finditer(text),
        *_RELATED.finditer(text),
    ):
        if end := _named_until(match["n"]):
            yield match.start("n"), match.start("n") + end
    for match in _SURNAMED.finditer(text):
        yield match.span()
    for match in _ACTS.finditer(text):
        if _may_act(match["n"].casefold(), text[: match.start()]):
            yield match.span("n")
    yield from _given(text)
    if _UNSPACED.search(text):
        yield from _chinese(text)
    drafts = [d for s in sentences(text) for d in english_names(s.replace("’", "'"))]
    for name in dict.fromkeys(d.name for d in drafts if d.type == "person"):
        if _is_name(name):
            yield from _occurrences(name, text)


def _may_act(name: str, before: str) -> bool:
    """Whether a capitalised word before a verb is somebody: "Kwame fixed", not "Then came"."""
    starts = not before.rstrip() or before.rstrip()[-1] in ".!?:;\"'(\n"
    if name in _CALENDAR and name not in ORDINARY:
        return False
    if name in ORDINARY:
        return not re.search(r"\b(?:in|on|of|by|last|next|this|early|late|since|until) $", before)
    if name in COMMON or name in FAMILIAR or _NATION.fullmatch(name.capitalize()):
        return False
    return not starts or not name.endswith(("ing", "ly", "ed", "ness", "tion", "s"))


def _named_until(words: str) -> int:
    """Return how far the words after "my name is" are a name; 0 for none."""
    end = 0
    for word in _WORD.finditer(words):
        low = word.group().casefold()
        if end and low in PARTICLES:
            continue
        if low in _NO_NAME and not (word.group()[0].isupper() and end == 0):
            break
        if end and word.group()[0].isupper() != words[0].isupper():
            break
        end = _bare_end(word)
    return end


def _is_name(name: str) -> bool:
    words = name.split()
    if len(words) == 1 and _TITLED.match(f"{name} X"):  # a title alone
        return False
    return (
        len(words) <= MAX_NAME_WORDS
        and words[0].casefold() not in _CALENDAR
        and words[0].casefold() not in FAMILIAR
    )


def _given(text: str) -> Iterator[tuple[int, int]]:
    """Yield capitalised given names with the capitalised words that follow: a surname."""
    words = list(_WORD.finditer(text))
    if text.islower():  # typed without capitals: what is a name and no word
        for i, word in enumerate(words):
            bare = text[word.start() : _bare_end(word)]
            related = i > 0 and words[i - 1].group() in _KIN_WORDS
            if bare in GIVEN and (related or not (bare in ORDINARY or bare in COMMON)):
                yield word.start(), _bare_end(word)
        return
    for i, word in enumerate(words):
        bare = text[word.start() : _bare_end(word)]
        first, *_ = re.split("['-]", bare.casefold())
        if not bare[0].isupper() or (first not in GIVEN and bare.casefold() not in GIVEN):
            continue
        end = _bare_end(word)
        j = i + 1
        while j < len(words) and j - i < MAX_NAME_WORDS and end == words[j - 1].end():
            between, nxt = text[end : words[j].start()], words[j].group()
            if between not in {" ", ". "} or (between == ". " and len(words[j - 1].group()) > 1):
                break
            last = _bare_end(words[j])
            is_initial = len(nxt) == 1 and nxt.isupper() and nxt != "I"
            if is_initial or (nxt[0].isupper() and nxt.casefold() not in _NO_NAME):
                end = last
            elif nxt not in PARTICLES or j + 1 >= len(words) or words[j + 1].group()[0].islower():
                break
            else:
                end = words[j].end()
            j += 1
        if text[word.start() : end].rsplit(maxsplit=1)[-1] in PARTICLES:  # "Ana de todos"
            end = _bare_end(word)
        yield word.start(), end


def _chinese(text: str) -> Iterator[tuple[int, int]]:
    for match in (
        *_ZH_INTRODUCED.finditer(text),
        *_ZH_CALLED.finditer(text),
        *_ZH_PET_NAME.finditer(text),
    ):
        yield match.span("n")
    for match in _ZH_PERSON.finditer(text):
        name = match["n"]
        given = re.sub(f"^(?:{SURNAMES})", "", name)
        if (
            name[:2] in PLAIN_HAN
            or _PLACES.match(name)
            or any(char in _ZH_NOT_A_GIVEN for char in given)
            or name[-1] in "州市省县镇村"
        ):
            continue
        yield match.span("n")
    drafts = chinese_names(text)
    for name in dict.fromkeys(d.name for d in drafts if d.type == "person"):
        if name[:2] not in PLAIN_HAN:
            yield from _occurrences(name, text)


def _occurrences(name: str, text: str) -> Iterator[tuple[int, int]]:
    spaced = not _UNSPACED.search(name)
    pattern = rf"(?<!{_LETTER}){re.escape(name)}(?!{_LETTER})" if spaced else re.escape(name)
    for match in re.finditer(pattern, text):
        yield match.span()
