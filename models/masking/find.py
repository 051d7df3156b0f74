"""What a text holds that tells who somebody is, and where.

A text is read through a view of plain characters: compatibility forms (full-width digits) made
plain, invisible ones left out, each with its place in the text. So a number is found however it
is disguised, and what is masked is the text's own characters, so that masking can be undone.
"""

# ruff: noqa: E501 - a pattern reads better whole than broken
from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from reverie.memory_graph.errors import ConfigError
from reverie.models.masking import numbers
from reverie.models.masking.names import Known, name_form, people
from reverie.models.masking.placeholders import PLACEHOLDER

REGIONS = ("CN", "US", "GB")  # in which a number without its country is looked for
MIN_PHONE_DIGITS = 7
WINDOW_CHARS = 4096  # a longer text is read in windows, so that none takes long
OVERLAP_CHARS = 1024  # of neighbouring windows; a value lies whole in one of them
MAX_LOCAL_CHARS = 128  # of an address before its "@": twice what RFC 5321 allows

_CJK = "\u3000-\u303f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_LABEL = rf"[^\W_{_CJK}](?:[^\W{_CJK}]|-){{0,62}}"
# An address is found at its "@", and read from there to both sides: what stands before it is at
# most `MAX_LOCAL_CHARS` long, so that no text takes long to read.
_AT = re.compile(
    r"@|\s?[(\[{]\s?at\s?[)\]}]\s?| at (?=[A-Za-z0-9-]{1,63}(?: dot [A-Za-z0-9-]{1,63}){1,4})",
    re.IGNORECASE,
)
_LOCAL = re.compile(
    rf"(?:[^\s@,;:()<>\[\]\"“”{_CJK}/\\]{{1,{MAX_LOCAL_CHARS}}}|[\u3400-\u9fff]{{1,10}})$"
)
_DOMAIN = re.compile(
    rf"{_LABEL}(?:\.{_LABEL}){{1,8}}|[\u3400-\u9fff]{{1,20}}\.[\u3400-\u9fffa-zA-Z]{{1,20}}"
)
_SPELT_LOCAL = re.compile(r"[A-Za-z0-9._+-]{1,64}$")
_SPELT_DOMAIN = re.compile(
    r"[A-Za-z0-9-]{1,63}(?:\s?(?:[(\[{]\s?dot\s?[)\]}]|\.)\s?[A-Za-z0-9-]{1,63}){1,8}",
    re.IGNORECASE,
)
_SPOKEN_DOMAIN = re.compile(
    r"[A-Za-z0-9-]{1,63}(?: dot [A-Za-z0-9-]{1,63}){0,3} dot (?:com|org|net|edu|io|cn|de|co|uk|gov)\b",
    re.IGNORECASE,
)
_PHONE_NAMED = re.compile(
    r"(?:\b(?:phone|mobile|cell|tel|telephone|call|text|fax|whatsapp|number is|reach me)\b|电话|手机|号码|座机|联系方式|微信|打给)[^\d\n+]{0,24}"
    r"(?P<n>\+?\(?\d(?:[ ().\-/]{0,2}\d){5,16})(?!\d)",
    re.IGNORECASE,
)
_DIGIT = re.compile(r"\d")
# Times and sums in the form of a number that somebody would call.
_NO_PHONE = re.compile(r"\d{4}[-./]\d{1,2}[-./]\d{1,2}|\d{1,2}[-./]\d{1,2}[-./]\d{4}|\d+\.\d{1,2}")


class Found(NamedTuple):
    """A value in a text: its place, its kind, and the form that its spellings have in common."""

    start: int
    end: int
    kind: str
    key: str


class _View:
    """A text as plain characters. `at[i]` is where the character `plain[i]` stands in it."""

    def __init__(self, text: str) -> None:
        if text.isascii():
            self.plain, self.at = text, list(range(len(text)))
            return
        plain: list[str] = []
        at: list[int] = []
        for i, char in enumerate(text):
            if unicodedata.category(char) == "Cf" or "\ufe00" <= char <= "\ufe0f":
                continue
            if char.isdecimal():
                folded = str(unicodedata.digit(char))
            elif char in "\u2010\u2011\u2012\u2013\u2014\u2212\uff0d":
                folded = "-"
            else:
                folded = unicodedata.normalize("NFKC", char)
                folded = folded if char not in "：；，！？（）" else char
            plain += folded
            at += [i] * len(folded)
        self.plain, self.at = "".join(plain), at

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return where a span of the view stands in the text, marks on its last letter included."""
        return self.at[start], self.at[end - 1] + 1


def find(
    text: str,
    kinds: Collection[str],
    known: Known,
    regions: Sequence[str] = REGIONS,
) -> list[Found]:
    """Return what a text holds of some kinds, in order, without overlaps.

    Placeholders in it are left alone. Where two kinds overlap the surer wins: addresses, ids,
    cards, telephone numbers, names.

    Args:
        text: any text.
        kinds: some of `KINDS`.
        known: names of people that are masked wherever they stand.
        regions: countries (ISO 3166) whose telephone numbers are found without their country code.

    Raises:
        ConfigError: "phone" is asked for, and the library for it is not here.
    """
    view = _View(text)
    taken = [False] * len(text)
    for match in PLACEHOLDER.finditer(text):
        taken[match.start() : match.end()] = [True] * len(match.group())
    found: list[Found] = []
    for kind in ("email", "id", "card", "phone", "person"):
        if kind not in kinds:
            continue
        for start, end, form in _in_windows(kind, view.plain, known, regions):
            (a, b), key = view.span(start, end), form
            if any(taken[a:b]):
                if kind != "person":
                    continue
                a, b = _free(taken, a, b)
                if b - a < 2 or not text[a:b].strip():  # noqa: PLR2004 (a name has two letters)
                    continue
                key = name_form(_View(text[a:b]).plain)
            taken[a:b] = [True] * (b - a)
            found.append(Found(a, b, kind, key))
    return sorted(found)


def _free(taken: list[bool], start: int, end: int) -> tuple[int, int]:
    """Return the part of a span before what is taken already."""
    stop = next((i for i in range(start, end) if taken[i]), end)
    return start, stop


def _in_windows(
    kind: str, text: str, known: Known, regions: Sequence[str]
) -> Iterator[tuple[int, int, str]]:
    """Read a text window by window; what begins in the middle half of an overlap belongs to the
    window in which there is more around it."""
    step, edge = WINDOW_CHARS - OVERLAP_CHARS, OVERLAP_CHARS // 2
    for at in range(0, max(1, len(text) - OVERLAP_CHARS), step):
        is_last = at + WINDOW_CHARS >= len(text)
        for start, end, key in _of_kind(kind, text[at : at + WINDOW_CHARS], known, regions):
            if (start >= edge or at == 0) and (start < step + edge or is_last):
                yield at + start, at + end, key


def _of_kind(
    kind: str, text: str, known: Known, regions: Sequence[str]
) -> Iterator[tuple[int, int, str]]:
    match kind:
        case "email":
            yield from _addresses(text)
        case "id":
            yield from numbers.ids(text)
        case "card":
            yield from numbers.cards(text)
        case "phone":
            if len(_DIGIT.findall(text)) >= MIN_PHONE_DIGITS - 1:
                yield from _phones(text, regions)
        case _:
            spans = [*known.find(text), *people(text)]
            for start, end in sorted(spans, key=lambda span: (span[0] - span[1], span[0])):
                if key := name_form(text[start:end]):
                    yield start, end, key


def _addresses(text: str) -> Iterator[tuple[int, int, str]]:
    for at in _AT.finditer(text):
        before = text[max(0, at.start() - MAX_LOCAL_CHARS) : at.start()]
        if at.group() == "@":
            local, domain = _LOCAL.search(before), _DOMAIN.match(text, at.end())
        else:
            spoken = at.group().strip().casefold() == "at"
            pattern = _SPOKEN_DOMAIN if spoken else _SPELT_DOMAIN
            local, domain = _SPELT_LOCAL.search(before), pattern.match(text, at.end())
        if local is None or domain is None:
            continue
        start = at.start() - len(local.group().lstrip(".'*_"))
        end = domain.start() + len(domain.group().rstrip(".,;:!?-_'"))
        if start < at.start():
            yield start, end, text[start:end].casefold()


def _phones(text: str, regions: Sequence[str]) -> Iterator[tuple[int, int, str]]:
    try:
        import phonenumbers
    except ImportError as exc:
        msg = "masking telephone numbers needs a library; pip install 'reverie[mask]'"
        raise ConfigError(msg, setting="mask").because(exc) from None
    for region in regions:
        for match in phonenumbers.PhoneNumberMatcher(text, region):
            if not _NO_PHONE.fullmatch(match.raw_string):
                key = phonenumbers.format_number(match.number, phonenumbers.PhoneNumberFormat.E164)
                yield match.start, match.end, key
    for named in _PHONE_NAMED.finditer(text):
        if not _NO_PHONE.fullmatch(named["n"]):
            yield *named.span("n"), "".join(_DIGIT.findall(named["n"]))
