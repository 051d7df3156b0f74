"""The path of a request, segment by segment.

Ids are any text, so they stand percent-encoded in the path, a slash as %2F. Servers decode the
whole path before they route, which makes a slash of an id look like a border of two segments. Here
the raw path is divided first and decoded then; for the router, each segment is put together again
with only "/" and "%" encoded, which cannot be mistaken.
"""

from __future__ import annotations

import re
from urllib.parse import quote

from reverie.http.faults import Refusal

MAX_PATH_BYTES = 16 * 1024
_ESCAPE = re.compile(rb"%([0-9A-Fa-f]{2})?")


def _decoded(segment: bytes) -> str:
    def byte(match: re.Match[bytes]) -> bytes:
        if match[1] is None:
            msg = "a % in the path is not followed by two hexadecimal digits; encode it as %25"
            raise Refusal("MalformedRequest", msg)
        return bytes([int(match[1], 16)])

    try:
        text = _ESCAPE.sub(byte, segment).decode()
    except UnicodeDecodeError:
        msg = "the path is no UTF-8 once its percent-encoding is undone"
        raise Refusal("MalformedRequest", msg) from None
    if text in {".", ".."}:  # proxies and clients take them out, also when they are encoded
        msg = f"an id {text!r} cannot stand in a path"
        raise Refusal("MalformedRequest", msg)
    return text


def routable(raw_path: bytes) -> str:
    """Return the path that is routed, of the path as it came (without the query).

    Raises:
        Refusal: it is over 16 KiB, no UTF-8, badly encoded, or has a segment "." or "..".
    """
    if len(raw_path) > MAX_PATH_BYTES:
        msg = f"a path has at most {MAX_PATH_BYTES:,} bytes"
        raise Refusal("MalformedRequest", msg)
    if b"%" not in raw_path and b"/." not in raw_path and raw_path.isascii():
        return raw_path.decode()
    segments = map(_decoded, raw_path.split(b"/"))
    return "/".join(s.replace("%", "%25").replace("/", "%2F") for s in segments)


def segment(routed: str) -> str:
    """Return an id of a segment that was routed."""
    return routed.replace("%2F", "/").replace("%25", "%")


def filled(template: str, values: dict[str, str]) -> str:
    """Return a path with its `{names}` filled in, encoded for a request."""
    for name, value in values.items():
        template = template.replace(f"{{{name}}}", quote(value, safe=""))
    return template
