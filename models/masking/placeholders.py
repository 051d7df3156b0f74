"""What stands for a masked value: `[PERSON_1]`, `[EMAIL_2]`; `[PHONE_1.2]` is another spelling of
what `[PHONE_1]` stands for, `[PERSON]` somebody without a number."""

from __future__ import annotations

import re

KINDS = ("email", "phone", "card", "id", "person")

# (kind, number, spelling); number and spelling count from 1, the first spelling is not written.
PLACEHOLDER = re.compile(
    rf"\[(?P<kind>{'|'.join(kind.upper() for kind in KINDS)})"
    r"(?:_(?P<number>[1-9]\d{0,8})(?:\.(?P<spelling>[1-9]\d{0,8}))?)?\]"
)


def placeholder(kind: str, number: int | None = None, spelling: int = 1) -> str:
    """Return the placeholder of a value; without a number, of one that nothing is known of."""
    if number is None:
        return f"[{kind.upper()}]"
    return (
        f"[{kind.upper()}_{number}]" if spelling == 1 else f"[{kind.upper()}_{number}.{spelling}]"
    )


def base_of(text: str) -> str:
    """Return `text` with every placeholder written as that of its first spelling, for names."""

    def first(match: re.Match[str]) -> str:
        if match["number"] is None:
            return match.group()
        return placeholder(match["kind"], int(match["number"]))

    return PLACEHOLDER.sub(first, text)
