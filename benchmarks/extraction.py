"""What the extractors find in dialogues: every method side by side, on files of gold cases.

A case is a line of JSON: `lang` ("en", "zh"), `dialogue` (`speaker`, `text`), `facts` (`text`,
`keys`: groups of which a memory must hold one word each), `entities` (`name`, `alt`) and `triples`
(`h`, `r`, `t`: what head, relation and tail may be). A case without facts must give no memory.

- fact recall: the share of facts of which one memory holds every key.
- entity F1: names of a dialogue, compared without case, articles and types.
- triple F1: head, tail and a predicate that contains one of the gold relation's stems; in brackets
  without the predicate.
- fires: cases with nothing to keep of which something is kept.
- ungrounded: memories with a name or a number that stands nowhere in the dialogue.
- CPU ms, calls and tokens are per turn.

    python benchmarks/extraction.py FILE... [--model smollm2|GGUF] [--adapter FILE]
                                            [--faults METHOD]
    python benchmarks/extraction.py --locomo FILE [--looked conv-26,...] [--vectors FOLDER]

`--locomo` prints what real chats keep of their answers; see extraction_locomo.py.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
from extraction_locomo import add_locomo_arguments, run_locomo
from extraction_methods import Method, methods_of
from extraction_score import Case, Score, judge
from rich.console import Console
from rich.table import Table

from reverie.memory_graph.errors import ReverieError
from reverie.models.protocol import Extraction, Turn

SAID_AT = 1_718_100_000.0  # of every case: 11 June 2024, 10:00 UTC
ALL, LANGUAGES = "all", ("en", "zh")


def read_cases(path: Path) -> list[Case]:
    """Return the cases of a file.

    Raises:
        ValueError: a line is no case.
    """
    cases = []
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        if line.strip():
            try:
                cases.append(msgspec.json.decode(line, type=Case))
            except msgspec.DecodeError as exc:
                msg = f"{path}, line {number}: {exc}"
                raise ValueError(msg) from exc
    return cases


def turns_of(case: Case) -> list[Turn]:
    """Return the turns of a case as an extractor gets them."""
    turns = []
    for place, line in enumerate(case.dialogue):
        machine = line.speaker.casefold() in {"assistant", "system", "tool", "助手"}
        owner = line.speaker in {"user", "用户"}
        turns.append(
            Turn(
                f"{case.id}-{place}",
                "user" if owner else line.speaker,
                line.speaker if machine else "user",
                line.text,
                SAID_AT + 60 * place,
            )
        )
    return turns


def run(
    cases: Sequence[Case], methods: Sequence[Method]
) -> tuple[dict[tuple[str, str], Score], list[tuple[str, Case, list[Extraction], list[str]]]]:
    """Read every case with every method.

    Returns:
        The score of each (method, group), a group being "all" or a language; and each case that
        is not all right as (method, case, what was found, what is wrong).
    """
    scores: defaultdict[tuple[str, str], Score] = defaultdict(Score)
    faults = []
    for case in cases:
        turns = turns_of(case)
        for method in methods:
            before = method.spent()
            began = time.process_time()
            found = method.extractor.extract(turns, [])
            cpu_s = time.process_time() - began
            spent = method.spent()
            for group in (ALL, case.lang):
                score = scores[method.name, group]
                wrong = judge(case, found, score)
                score.turns += len(turns)
                score.cpu_s += cpu_s
                score.calls += spent.calls - before.calls
                score.tokens += spent.tokens - before.tokens
                if wrong and group == ALL:
                    faults.append((method.name, case, found, wrong))
    return dict(scores), faults


def table_of(title: str, names: Sequence[str], scores: Mapping[tuple[str, str], Score]) -> Table:
    """Return the figures of all methods, a row per method and language."""
    columns = ("method", "cases", "n", "fact recall", "entity F1", "triple F1", "fires")
    table = Table(*columns, "ungrounded", "memories", "CPU ms", "calls", "tokens", title=title)
    for name in names:
        for group in (ALL, *LANGUAGES):
            score = scores.get((name, group))
            if score is None:
                continue
            table.add_row(
                name,
                group,
                str(score.cases),
                f"{score.fact_recall:.3f}",
                f"{score.entities.f1:.3f}",
                f"{score.triples.f1:.3f} ({score.pairs.f1:.3f})",
                f"{score.fires}/{score.empty}",
                str(score.ungrounded),
                str(score.memories),
                f"{1000 * score.cpu_s / score.turns:.2f}",
                f"{score.calls / score.turns:.2f}",
                f"{score.tokens / score.turns:.0f}",
            )
        table.add_section()
    return table


def main(argv: Sequence[str] | None = None) -> int:
    """Print a table per file; return 2 when a file or model cannot be used."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--model", help="smollm2, or a GGUF file; without it, no language model")
    parser.add_argument("--adapter", type=Path, help="LoRA file of the span reader")
    parser.add_argument("--faults", default="", help="print what this method gets wrong")
    add_locomo_arguments(parser)
    args = parser.parse_args(argv)
    console = Console(width=132, highlight=False)
    if not args.files and args.locomo is None:
        parser.error("name a file of cases, or --locomo FILE")
    try:
        with methods_of(args.model, args.models, args.adapter) as methods:
            names = [method.name for method in methods]
            for path in args.files:
                scores, faults = run(read_cases(path), methods)
                console.print(table_of(path.name, names, scores))
                for name, case, found, wrong in faults:
                    if name == args.faults:
                        _print_fault(console, case, found, wrong)
            if args.locomo is not None:
                run_locomo(args, methods, console)
    except (ReverieError, ValueError, OSError) as exc:
        console.print(f"error: {exc}", style="red")
        return 2
    return 0


def _print_fault(
    console: Console, case: Case, found: Sequence[Extraction], wrong: Sequence[str]
) -> None:
    said = " / ".join(line.text for line in case.dialogue)
    console.print(f"{case.id}: {said}\n    {'; '.join(wrong)}", markup=False)
    for draft in (draft for one in found for draft in one.memories):
        console.print(f"      {draft.slot} | {draft.text}", markup=False)


if __name__ == "__main__":
    sys.exit(main())
