"""Payment cards and national ids, by the checksums that they carry."""

# ruff: noqa: E501 - a pattern reads better whole than broken
from __future__ import annotations

import re
from collections.abc import Iterator

CARD_DIGITS = range(13, 20)
_GROUPS = re.compile(r"\d+(?:[ .\-]{1,2}\d+)*")
_DIGITS = re.compile(r"\d+")
_CHINESE_ID = re.compile(
    r"(?<!\d)[1-9]\d{5}[ \-]?(?:18|19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])[ \-]?\d{3}[\dXx]"
    r"(?![\dA-Za-z])"
)
_SSN = re.compile(
    r"(?<![\d\-])(?!000|666|9)\d{3}(?P<s>[ \-.])(?!00)\d\d(?P=s)(?!0000)\d{4}(?![\d\-])"
)
_SSN_NAMED = re.compile(
    r"(?:\bSSN|social security(?: number| no\.?)?)\D{0,12}(?P<n>(?!000|666|9)\d{3}(?!00)\d\d(?!0000)\d{4})(?!\d)",
    re.IGNORECASE,
)
_IBAN = re.compile(
    r"(?<![A-Za-z0-9])[A-Z]{2}\d\d(?:[ \-]?[A-Z0-9]{4}){2,7}(?:[ \-]?[A-Z0-9]{1,3})?(?![A-Za-z0-9])",
    re.IGNORECASE,
)
_WEIGHTS = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)  # 2 ** (17 - i) mod 11
_CHECKS = "10X98765432"


def is_luhn(digits: str) -> bool:
    """Return whether digits end with their check digit by Luhn (ISO/IEC 7812-1, annex B)."""
    total = 0
    for i, char in enumerate(reversed(digits)):
        value = int(char) * (1 + i % 2)
        total += value - 9 if value > 9 else value  # noqa: PLR2004 (the sum of two digits)
    return total % 10 == 0


def is_chinese_id(text: str) -> bool:
    """Return whether 18 characters end with their check character (GB 11643-1999)."""
    total = sum(int(char) * weight for char, weight in zip(text, _WEIGHTS, strict=False))
    return _CHECKS[total % 11] == text[17].upper()


def is_iban(text: str) -> bool:
    """Return whether an IBAN without spaces has the remainder 1 modulo 97 (ISO 13616)."""
    if not 15 <= len(text) <= 34:  # noqa: PLR2004 (the shortest and the longest there may be)
        return False
    turned = text[4:] + text[:4]
    return int("".join(str(int(char, 36)) for char in turned)) % 97 == 1


def cards(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield (start, end, digits) of payment cards in a text of plain digits.

    13 to 19 digits in groups, which begin as cards do (2 to 6) and end with their check digit; of
    several ways to read a run of groups, the longest and leftmost.
    """
    for run in _GROUPS.finditer(text):
        parts = [m.span() for m in _DIGITS.finditer(text, *run.span())]
        first = 0
        while first < len(parts):
            end = _card_end(text, parts, first)
            if end == first:
                first += 1
                continue
            yield parts[first][0], parts[end - 1][1], _joined(text, parts[first:end])
            first = end


def _card_end(text: str, parts: list[tuple[int, int]], first: int) -> int:
    """Return after which part the longest card ends that begins with `first`; `first` for none."""
    end, digits = first, 0
    for i in range(first, len(parts)):
        digits += parts[i][1] - parts[i][0]
        if digits >= CARD_DIGITS.stop:
            break
        if digits >= CARD_DIGITS.start and _is_card(text, parts[first : i + 1]):
            end = i + 1
    return end


def _joined(text: str, parts: list[tuple[int, int]]) -> str:
    return "".join(text[a:b] for a, b in parts)


def _is_card(text: str, parts: list[tuple[int, int]]) -> bool:
    digits = _joined(text, parts)
    return len(digits) in CARD_DIGITS and digits[0] in "23456" and is_luhn(digits)


def ids(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield (start, end, key) of national ids and IBANs in a text of plain digits."""
    for match in _CHINESE_ID.finditer(text):
        plain = re.sub(r"[ \-]", "", match.group())
        if is_chinese_id(plain):
            yield *match.span(), plain.upper()
    for match in _IBAN.finditer(text):
        plain = re.sub(r"[ \-]", "", match.group())
        if is_iban(plain):
            yield *match.span(), plain.upper()
    for match in _SSN.finditer(text):
        yield *match.span(), re.sub(r"\D", "", match.group())
    for match in _SSN_NAMED.finditer(text):
        yield *match.span("n"), match["n"]
