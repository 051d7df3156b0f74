"""Chat templates: from messages to a prompt as the model was trained to read it.

The template comes from the model's file and is run by llama-cpp-python, in Jinja's sandbox. What
people wrote never goes through it: marks stand in for the texts, so that neither a template can
misread them nor a text pass for a part of the template.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import jinja2
from llama_cpp.llama_chat_format import Jinja2ChatFormatter

from reverie.memory_graph.errors import InvalidValueError
from reverie.models.protocol import ChatMessage

_MARK = re.compile("\ue000([0-9]+)\ue001")  # private use: no template holds these
_DAY = "26 Jul 2024"  # what templates ask of the clock; an answer must not depend on the day


class Piece(NamedTuple):
    """A part of a rendered prompt: the template's own words, or somebody's text."""

    text: str
    is_template: bool


class _Formatter(Jinja2ChatFormatter):
    """llama-cpp-python's formatter without its clock."""

    @staticmethod
    def strftime_now(f: str) -> str:  # noqa: ARG004 (what templates pass)
        return _DAY


class ChatTemplate:
    """The template of one model."""

    def __init__(self, source: str, *, begin: str, end: str) -> None:
        """Compile a template; `begin` and `end` are the model's special tokens, as text.

        Raises:
            InvalidValueError: it is no Jinja template.
        """
        try:
            self._formatter = _Formatter(source, eos_token=end, bos_token=begin)
        except jinja2.TemplateError as exc:
            msg = f"the chat template of the model cannot be read: {exc}"
            raise InvalidValueError(msg) from exc

    def render(self, messages: Sequence[ChatMessage]) -> list[Piece]:
        """Return the prompt that asks for the assistant's next message, in pieces.

        A model whose template knows no system message gets it before the first user message.

        Raises:
            InvalidValueError: no messages, or the template refuses them (some want user and
                assistant in turns).
        """
        if not messages:
            msg = "a prompt needs at least one message"
            raise InvalidValueError(msg)
        pieces, reason = self._try(messages)
        if pieces is None and messages[0].role == "system" and len(messages) > 1:
            system, first, *rest = messages
            joined = ChatMessage(first.role, f"{system.content}\n\n{first.content}")
            pieces, reason = self._try([joined, *rest])
        if pieces is None:
            msg = f"the chat template of the model refuses these messages: {reason}"
            raise InvalidValueError(msg)
        return pieces

    def _try(self, messages: Sequence[ChatMessage]) -> tuple[list[Piece] | None, str]:
        """Return the pieces, or None and why there are none."""
        marked: list[Any] = [
            {"role": message.role, "content": f"\ue000{number}\ue001"}
            for number, message in enumerate(messages)
        ]
        try:
            rendered = self._formatter(messages=marked).prompt
        except (jinja2.TemplateError, ValueError, TypeError, ArithmeticError) as exc:
            return None, str(exc)
        parts = _MARK.split(rendered)  # template, number, template, number, ..., template
        numbers = [int(number) for number in parts[1::2]]
        if set(numbers) != set(range(len(messages))):
            return None, "it leaves a message out"
        pieces = [Piece(parts[0], is_template=True)]
        for number, between in zip(numbers, parts[2::2], strict=True):
            pieces += [
                Piece(messages[number].content, is_template=False),
                Piece(between, is_template=True),
            ]
        return [piece for piece in pieces if piece.text], ""
