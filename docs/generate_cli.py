"""Write docs/cli.md from what the commands say of themselves in `--help`.

python docs/generate_cli.py
"""  # noqa: INP001 (a script)

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import typer

from reverie.cli.app import app

PAGE = Path(__file__).with_name("cli.md")

_HEAD = """# Command line

<!-- Made by `python docs/generate_cli.py`; a test fails when it is stale. -->
"""
_SHARED = "Common options"
_NOT_OURS = {"help", "install_completion", "show_completion"}


def page() -> str:
    """Return the whole page as Markdown."""
    program = _program()
    lines = [_HEAD, *_paragraphs(program.help), *_paragraphs(program.epilog)]
    commands = list(_commands(program, "reverie"))
    lines += [f"- [`{name}`](#{name.replace(' ', '-')}): {_first(c.help)}" for name, c in commands]
    shared: dict[str, Any] = {}
    for name, command in commands:
        lines += _section(name, command)
        shared |= {p.name: p for p in command.params if _is_shared(p)}
    lines += ["", f"## {_SHARED}", "", "Each command above names those that it takes.", ""]
    lines += _table(shared.values())
    return "\n".join(lines).rstrip() + "\n"


def _commands(group: Any, name: str) -> Iterator[tuple[str, Any]]:
    for part, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, f"{name} {part}")
        else:
            yield f"{name} {part}", command


def _section(name: str, command: Any) -> list[str]:
    own = [p for p in command.params if not _is_shared(p) and p.name not in _NOT_OURS]
    arguments = [p for p in own if p.param_type_name == "argument"]
    options = [p for p in own if p.param_type_name == "option"]
    shared = ", ".join(f"`{p.opts[0]}`" for p in command.params if _is_shared(p))
    usage = " ".join(
        [name, *(_argument(p) for p in arguments), *(["[options]"] if options else [])]
    )
    lines = ["", f"## {name}", "", f"    {usage}", "", *_paragraphs(command.help)]
    if own:
        lines += [*_table([*arguments, *options]), ""]
    return [*lines, f"Common options: {shared}."]


def _table(params: Iterable[Any]) -> list[str]:
    rows = ["| option | meaning | default |", "|-|-|-|"]
    for p in params:
        is_argument = p.param_type_name == "argument"
        shown = _argument(p) if is_argument else _option(p)
        says = " ".join((p.help or "").split()).replace("|", "\\|")
        if p.envvar:
            says += f" Environment: `{p.envvar}`."
        rows.append(f"| `{shown}` | {says} | {_default(p)} |")
    return rows


def _argument(param: Any) -> str:
    name = param.metavar or param.name.upper()
    name += "..." if param.nargs == -1 else ""
    return name if param.required else f"[{name}]"


def _option(param: Any) -> str:
    names = sorted(param.opts, key=len, reverse=True)
    shown = ", ".join(names)
    if param.secondary_opts:
        return f"{shown} / {', '.join(param.secondary_opts)}"
    if param.is_flag:
        return shown
    choices = re.search(r"[\w-]+(\|[\w-]+)+", _record(param)[0])
    value = choices[0].replace("|", "\\|") if choices else (param.metavar or param.name).upper()
    return f"{shown} {value}"


def _record(param: Any) -> tuple[str, str]:
    """Return what `--help` prints of a parameter. Used for choices alone: how it names types
    depends on the version of typer."""
    record: tuple[str, str] = param.get_help_record(typer.Context(_program()))
    return record


def _program() -> Any:
    return typer.main.get_command(app)


def _default(param: Any) -> str:
    if param.required:
        return "required"
    if param.param_type_name == "option" and param.is_flag and not param.secondary_opts:
        return ""
    value = param.default
    if value is None or param.show_default is False:
        return ""
    if param.param_type_name == "option" and param.secondary_opts:
        return f"`{(param.opts if value else param.secondary_opts)[0]}`"
    return f"`{value}`"


def _is_shared(param: Any) -> bool:
    return getattr(param, "rich_help_panel", None) == _SHARED


def _paragraphs(text: str | None) -> list[str]:
    """Return a docstring as lines with an empty one at the end."""
    return [inspect.cleandoc(text or ""), ""]


def _first(text: str | None) -> str:
    return " ".join((text or "").split("\n\n")[0].split())


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
