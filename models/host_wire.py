"""What a program and its model host say to each other: one socket, frames of msgpack.

A frame is four bytes of length, little endian, and that many bytes. The host says first that it is
ready, or why not; then each request has one reply, in order.
"""

from __future__ import annotations

import socket
import struct
from typing import TypeAlias

import msgspec

from reverie.memory_graph.errors import InvalidValueError, WireError
from reverie.models.language import LanguageSettings, Weighed
from reverie.models.protocol import ChatMessage, Completion, LanguageModelInfo

MAX_FRAME_BYTES = 64 << 20

_LENGTH = struct.Struct("<I")


class Open(msgspec.Struct, frozen=True, tag=True):
    """The first frame to a host: load this. Answered with LanguageModelInfo."""

    settings: LanguageSettings


class Complete(msgspec.Struct, frozen=True, tag=True, omit_defaults=True):
    """`LanguageModel.complete`; either `text` or `messages` is the prompt."""

    max_tokens: int
    text: str | None = None
    messages: tuple[ChatMessage, ...] = ()
    grammar: str | None = None
    stop: tuple[str, ...] = ()
    adapter: str | None = None


class Weigh(msgspec.Struct, frozen=True, tag=True, omit_defaults=True):
    """`HostedModel.weigh`."""

    prompts: tuple[str, ...]
    choices: tuple[str, ...]
    adapter: str | None = None


class Count(msgspec.Struct, frozen=True, tag=True, omit_defaults=True):
    """`count_tokens` of `text`, or `count_prompt` of `messages`, or of `text` as a prompt."""

    text: str | None = None
    messages: tuple[ChatMessage, ...] = ()
    is_prompt: bool = False


class Clear(msgspec.Struct, frozen=True, tag=True):
    """`HostedModel.clear`."""


Request: TypeAlias = Open | Complete | Weigh | Count | Clear
Answer: TypeAlias = LanguageModelInfo | Completion | Weighed | int | None


class Reply(msgspec.Struct, frozen=True, omit_defaults=True):
    """The answer to a request, or the error that it raised."""

    value: msgspec.Raw = msgspec.Raw(b"\xc0")  # nil
    error: WireError | None = None


def encoded(message: Request | Reply) -> bytes:
    """Return the content of a frame.

    Raises:
        InvalidValueError: it is over MAX_FRAME_BYTES, or a text is no Unicode.
    """
    try:
        data = msgspec.msgpack.encode(message)
    except UnicodeEncodeError as exc:
        msg = "a text holds half a character (a lone surrogate)"
        raise InvalidValueError(msg) from exc
    if len(data) > MAX_FRAME_BYTES:
        msg = f"a model call of {len(data):,} bytes; {MAX_FRAME_BYTES:,} are allowed"
        raise InvalidValueError(msg)
    return data


def send(sock: socket.socket, message: Request | Reply) -> None:
    """Send a frame.

    Raises:
        InvalidValueError: as `encoded`; nothing was sent.
        OSError: the other side is gone, or the time of the socket is over.
    """
    data = encoded(message)
    sock.sendall(_LENGTH.pack(len(data)) + data)


def receive(sock: socket.socket) -> bytes:
    """Return the content of the next frame.

    Raises:
        EOFError: the other side has closed.
        OSError: it is gone, or the time of the socket is over (TimeoutError).
    """
    (size,) = _LENGTH.unpack(_exactly(sock, _LENGTH.size))
    if size > MAX_FRAME_BYTES:
        msg = f"a frame of {size:,} bytes"
        raise EOFError(msg)
    return _exactly(sock, size)


def _exactly(sock: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        part = sock.recv(min(size - len(data), 1 << 16))
        if not part:
            raise EOFError
        data += part
    return bytes(data)
