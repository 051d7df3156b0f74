"""A grammar for JSON of a given shape, with every part bounded.

llama.cpp's own conversion accepts schemas whose grammars crash its sampler (an array of 50 strings
of 2,000 characters), and drops bounds of integers in silence. This one knows fewer words of JSON
Schema, keeps all that it knows, refuses the rest, and gives what `check_grammar` accepts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from reverie.memory_graph.errors import InvalidValueError
from reverie.models.grammar import check_grammar

DEFAULT_LENGTH = 200  # of a string, in characters
MAX_LENGTH = 500
DEFAULT_ITEMS = 8  # of an array
MAX_ITEMS = 64
MAX_INTEGERS = 1000  # between minimum and maximum
MAX_LEVELS = 8
MAX_CHOICES = 500

_NOTES = {"title", "description", "default", "examples", "$schema", "$id", "$comment"}
_BASE = {
    "char": r'[^"\\\x01-\x1F\x7F] | "\\" ["\\/bfnrt]',
    "boolean": '"true" | "false"',
    "null": '"null"',
    "integer": '"-"? ("0" | [1-9] [0-9]{0,8})',
    "number": 'integer ("." [0-9]{1,6})?',
}


def json_grammar(schema: Mapping[str, Any]) -> str:
    """Return GBNF for exactly one JSON value of `schema`, for `LanguageModel.complete`.

    Known: `enum`, `const`, `anyOf`, and `type` (one or a list): "string" with minLength and
    maxLength, "integer" with minimum and maximum, "number", "boolean", "null", "array" with items,
    minItems and maxItems, "object" with properties (in this order) and required. Objects have no
    other properties, integers at most 9 digits. Notes such as `title` are passed over.

    Raises:
        InvalidValueError: anything else in the schema, or a bound over those of this module.
    """
    maker = _Maker()
    maker.rules["root"] = maker.value(schema, "root", 0)
    grammar = "\n".join(f"{name} ::= {body}" for name, body in maker.rules.items()) + "\n"
    check_grammar(grammar)
    return grammar


def _refuse(where: str, reason: str) -> NoReturn:
    msg = f"the schema cannot be used, at {where}: {reason}"
    raise InvalidValueError(msg, where=where)


def literal(text: str) -> str:
    """Return `text` as a literal of a grammar."""
    return '"' + "".join(map(_escaped, text)) + '"'


def _escaped(char: str) -> str:
    if char in '"\\':
        return "\\" + char
    return char if char.isprintable() else f"\\U{ord(char):08X}"


class _Maker:
    """Collects rules; `value` returns the body of one."""

    def __init__(self) -> None:
        self.rules: dict[str, str] = {}

    def base(self, name: str) -> str:
        """Return the name of a rule that is always the same, and keep it."""
        if name not in self.rules:
            self.rules[name] = _BASE[name]
            if name == "number":
                self.base("integer")
        return name

    def named(self, schema: object, name: str, level: int) -> str:
        """Make a rule for `schema`; return its name."""
        body = self.value(schema, name, level)
        self.rules[name] = body
        return name

    def value(self, schema: object, where: str, level: int) -> str:
        if not isinstance(schema, Mapping):
            _refuse(where, f"an object was expected, not {schema!r:.40}")
        if level > MAX_LEVELS:
            _refuse(where, f"more than {MAX_LEVELS} levels")
        if "const" in schema:
            _only(schema, where, {"const", "type"})
            return self._enum([schema["const"]], where)
        if "enum" in schema:
            _only(schema, where, {"enum", "type"})
            return self._enum(schema["enum"], where)
        if "anyOf" in schema:
            _only(schema, where, {"anyOf"})
            return self._any_of(schema["anyOf"], where, level)
        kind = schema.get("type")
        if isinstance(kind, list):
            rest = {key: value for key, value in schema.items() if key != "type"}
            return self._any_of([_of_type(one, rest) for one in kind], where, level)
        match kind:
            case "string":
                return self._string(schema, where)
            case "integer" if "minimum" in schema or "maximum" in schema:
                return self._integer(schema, where)
            case "integer" | "number" | "boolean" | "null":
                _only(schema, where, {"type"})
                return self.base(kind)
            case "array":
                return self._array(schema, where, level)
            case "object":
                return self._object(schema, where, level)
            case _:
                return _refuse(where, f"type {kind!r} is not known")

    def _enum(self, values: object, where: str) -> str:
        if not isinstance(values, Sequence) or isinstance(values, str):
            _refuse(where, "enum must be a list")
        if not 0 < len(values) <= MAX_CHOICES:
            _refuse(where, f"{len(values)} choices; 1 to {MAX_CHOICES} are allowed")
        return " | ".join(literal(json.dumps(value, ensure_ascii=False)) for value in values)

    def _any_of(self, schemas: object, where: str, level: int) -> str:
        if not isinstance(schemas, Sequence) or isinstance(schemas, str):
            _refuse(where, "anyOf must be a list")
        if not 0 < len(schemas) <= MAX_CHOICES:
            _refuse(where, f"{len(schemas)} choices; 1 to {MAX_CHOICES} are allowed")
        names = [
            self.named(schema, f"{where}-{number}", level + 1)
            for number, schema in enumerate(schemas)
        ]
        return " | ".join(names)

    def _string(self, schema: Mapping[str, Any], where: str) -> str:
        _only(schema, where, {"type", "minLength", "maxLength"})
        most = _bound(schema, "maxLength", DEFAULT_LENGTH, MAX_LENGTH, where)
        least = _bound(schema, "minLength", 0, most, where)
        if most == 0:
            return literal('""')
        return f'"\\"" {self.base("char")}{{{least},{most}}} "\\""'

    def _integer(self, schema: Mapping[str, Any], where: str) -> str:
        _only(schema, where, {"type", "minimum", "maximum"})
        low, high = schema.get("minimum"), schema.get("maximum")
        if type(low) is not int or type(high) is not int:
            _refuse(where, "minimum and maximum must both be there, as integers")
        if not 0 <= high - low < MAX_INTEGERS:
            _refuse(where, f"{low} to {high}: 1 to {MAX_INTEGERS} integers are allowed")
        return " | ".join(literal(str(number)) for number in range(low, high + 1))

    def _array(self, schema: Mapping[str, Any], where: str, level: int) -> str:
        _only(schema, where, {"type", "items", "minItems", "maxItems"})
        most = _bound(schema, "maxItems", DEFAULT_ITEMS, MAX_ITEMS, where)
        least = _bound(schema, "minItems", 0, most, where)
        if most == 0:
            return '"[]"'
        item = self.named(schema.get("items"), f"{where}-item", level + 1)
        rest = f' ("," " "? {item}){{{max(0, least - 1)},{most - 1}}}' if most > 1 else ""
        whole = f"{item}{rest}"
        return f'"[" {whole} "]"' if least else f'"[" ({whole})? "]"'

    def _object(self, schema: Mapping[str, Any], where: str, level: int) -> str:
        _only(schema, where, {"type", "properties", "required", "additionalProperties"})
        properties = schema.get("properties", {})
        if not isinstance(properties, Mapping) or schema.get("additionalProperties"):
            _refuse(where, "properties must all be named")
        required = set(schema.get("required", ()))
        if unknown := sorted(required - properties.keys()):
            _refuse(where, f"{unknown[0]!r} is required but no property")
        if not properties:
            return '"{}"'
        pairs = [
            (self._pair(name, sub, f"{where}-p{number}", level), name in required)
            for number, (name, sub) in enumerate(properties.items())
        ]
        # From the last property to the first: what may follow when something stands before it,
        # and when nothing does.
        after, alone = "", ""
        for number, (pair, is_required) in reversed(list(enumerate(pairs))):
            more = f'"," " "? {pair} {after}'.rstrip()
            begin = f"{pair} {after}".rstrip()
            if not is_required:
                more, begin = f"{more} | {after or EMPTY}", f"{begin} | {alone or EMPTY}"
            after, alone = f"{where}-a{number}", f"{where}-b{number}"
            self.rules[after], self.rules[alone] = more, begin
        del self.rules[after]  # nothing stands before the first
        return f'"{{" {alone} "}}"'

    def _pair(self, name: str, schema: object, where: str, level: int) -> str:
        key = literal(json.dumps(name, ensure_ascii=False) + ":")
        value = self.named(schema, f"{where}v", level + 1)
        self.rules[where] = f'{key} " "? {value}'
        return where


EMPTY = '""'


def _only(schema: Mapping[str, Any], where: str, known: set[str]) -> None:
    if unknown := sorted(set(schema) - known - _NOTES):
        _refuse(where, f"{unknown[0]!r} is not known here")


def _of_type(kind: object, rest: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a schema with several types that belongs to one of them."""
    own = {
        "string": ("minLength", "maxLength"),
        "integer": ("minimum", "maximum"),
        "array": ("items", "minItems", "maxItems"),
        "object": ("properties", "required", "additionalProperties"),
    }.get(str(kind), ())
    return {"type": kind} | {key: rest[key] for key in own if key in rest}


def _bound(schema: Mapping[str, Any], key: str, default: int, most: int, where: str) -> int:
    value = schema.get(key, min(default, most))
    if type(value) is not int or not 0 <= value <= most:
        _refuse(where, f"{key} must be 0 to {most}, not {value!r:.40}")
    return value
