"""The messages of `add`, in all the forms that mem0 takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import structlog

from reverie.mem0.exceptions import ValidationError

log = structlog.get_logger(__name__)


class Said(NamedTuple):
    """One message."""

    role: str
    text: str
    name: str | None


def read_messages(given: Any) -> list[Said]:
    """Return what was said. System messages, and messages without a role or a text, are left out.

    Args:
        given: a text (of the user), a mapping with role, content and perhaps name, or a list of
            such mappings. Of a content in several parts, the texts are read.

    Raises:
        ValidationError: something else.
    """
    if isinstance(given, str):
        given = [{"role": "user", "content": given}]
    elif isinstance(given, Mapping):
        given = [given]
    if not isinstance(given, list) or not all(isinstance(m, Mapping) for m in given):
        msg = "messages must be str, dict, or list[dict]"
        raise ValidationError(
            msg,
            "VALIDATION_003",
            {"provided_type": type(given).__name__, "valid_types": ["str", "dict", "list[dict]"]},
            "Pass a text, a message, or a list of messages.",
        )
    found: list[Said] = []
    for message in given:
        role, text = message.get("role"), _text(message.get("content"))
        if role == "system":
            continue
        if not isinstance(role, str) or not role or text is None or not text.strip():
            log.warning("mem0_message_left_out", has_role=bool(role), has_text=text is not None)
            continue
        name = message.get("name")
        found.append(Said(role, text, str(name) if name else None))
    return found


def _text(content: Any) -> str | None:
    if isinstance(content, list):
        parts = [
            part["text"]
            for part in content
            if isinstance(part, Mapping)
            and part.get("type") == "text"
            and isinstance(part.get("text"), str)
        ]
        return " ".join(parts) if parts else None
    return content if isinstance(content, str) else None
