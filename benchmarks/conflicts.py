"""What a new statement does to the known ones: every method side by side, on files of cases.

A case is a line of JSON: `lang` ("en", "zh"), `memories` (`id`, `text`), `candidate`, the right
`op` (ADD, UPDATE, DELETE, NOOP) and `target` (an id, or null for ADD). Further fields are kept for
`--by`. Similarities come from MiniLM, for Chinese from the multilingual embedder.

- right: the operation. both: the operation and the memory that it names.
- harmful: an UPDATE or DELETE of a memory that should have stayed as it is: where ADD or NOOP was
  right, or of another memory than the right one.
- spare: an ADD where something else was right: it repeats, and hides nothing.

Each method sees one case at a time, as the ingestor does; CPU seconds are those of the decision
alone, without the embedding.

    python benchmarks/conflicts.py FILE... [--model smollm2|GGUF] [--adapters FOLDER]
        [--embedder standin] [--by kind] [--where split=look] [--faults rules]
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
from conflicts_methods import Cosine, Method, Scale, model_methods
from rich.console import Console
from rich.table import Table

from reverie.memory_graph.drafts import Decision, Known, MemoryDraft
from reverie.memory_graph.errors import ReverieError
from reverie.models.catalog import default_folder
from reverie.models.decide_model import FLOOR, MULTILINGUAL_FLOOR
from reverie.models.embedders import STANDIN, open_embedder
from reverie.models.language import HostedModel
from reverie.models.protocol import CrossEncoder, Embedder
from reverie.models.rules import RulesDecider

Id: TypeAlias = int | str
ALL = "all"
LANGUAGES = ("en", "zh")
# Per embedder: where unrelated texts end, where the same begins (see docs of the embedders).
SCALES = {
    "minilm": Scale(floor=FLOOR, changed=0.7, near=0.9),
    "multilingual": Scale(floor=MULTILINGUAL_FLOOR, changed=0.92, near=0.95),
    STANDIN: Scale(floor=0.2, changed=0.7, near=0.9),
}


class KnownMemory(msgspec.Struct, frozen=True):
    """A memory of a case."""

    id: Id
    text: str


class Case(msgspec.Struct, frozen=True):
    """One case; `fields` holds the whole line, for grouping and choosing."""

    id: str
    lang: str
    memories: tuple[KnownMemory, ...]
    candidate: str
    op: str
    target: Id | None
    fields: dict[str, Any] = {}


class Score(msgspec.Struct):
    """The sums of a method over cases."""

    cases: int = 0
    right: int = 0
    both: int = 0
    harmful: int = 0
    spare: int = 0
    calls: int = 0
    tokens: int = 0
    cpu_s: float = 0.0


def read_cases(path: Path) -> list[Case]:
    """Return the cases of a file.

    Raises:
        ValueError: a line is no case, or names a target that it does not hold.
    """
    cases = []
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        if not line.strip():
            continue
        try:
            case = msgspec.json.decode(line, type=Case)
            case = msgspec.structs.replace(case, fields=msgspec.json.decode(line))
        except msgspec.DecodeError as exc:
            msg = f"{path}, line {number}: {exc}"
            raise ValueError(msg) from exc
        offered = {memory.id for memory in case.memories}
        if (case.op == "ADD") != (case.target is None) or case.target not in {None, *offered}:
            msg = f"{path}, line {number}: {case.op} with target {case.target}"
            raise ValueError(msg)
        cases.append(case)
    return cases


def known_of(case: Case, embedder: Embedder) -> list[Known]:
    """Return the memories of a case, the nearest first, as the ingestor hands them over."""
    rows = embedder.embed([case.candidate, *(m.text for m in case.memories)], "passage")
    cosines = rows[1:] @ rows[0]
    known = [
        Known(str(memory.id), memory.text, similarity=float(cosine), recorded_at=float(at))
        for at, (memory, cosine) in enumerate(zip(case.memories, cosines, strict=True))
    ]
    return sorted(known, key=lambda item: -item.similarity)


def judge(case: Case, decision: Decision, score: Score) -> bool:
    """Add one decision to a score; return whether operation and target are right."""
    target = None if case.target is None else str(case.target)
    right = decision.op == case.op
    both = right and decision.target == target
    changes = decision.op in {"UPDATE", "DELETE"}
    wanted = case.op in {"UPDATE", "DELETE"}
    score.cases += 1
    score.right += right
    score.both += both
    score.harmful += changes and (not wanted or decision.target != target)
    score.spare += decision.op == "ADD" and case.op != "ADD"
    return both


def run(
    cases: Sequence[Case], methods: Sequence[Method], embedders: Callable[[str], Embedder]
) -> tuple[dict[tuple[str, str], Score], list[tuple[str, Case, Decision]]]:
    """Decide every case with every method.

    Returns:
        The score of each (method, group), where a group is "all", a language, or "field=value";
        and every wrong decision as (method, case, decision).
    """
    scores: defaultdict[tuple[str, str], Score] = defaultdict(Score)
    wrong = []
    for case in cases:
        known = known_of(case, embedders(case.lang))
        for method in methods:
            before = method.spent()
            began = time.process_time()
            decision = method.decide(case.lang, MemoryDraft(case.candidate), known)
            cpu_s = time.process_time() - began
            spent = method.spent()
            for group in (ALL, case.lang, *(f"{k}={v}" for k, v in case.fields.items())):
                score = scores[method.name, group]
                both = judge(case, decision, score)
                score.calls += spent.calls - before.calls
                score.tokens += spent.tokens - before.tokens
                score.cpu_s += cpu_s
                if group == ALL and not both:
                    wrong.append((method.name, case, decision))
    return scores, wrong


def table_of(
    title: str,
    names: Sequence[str],
    groups: Sequence[str],
    scores: Mapping[tuple[str, str], Score],
) -> Table:
    """Return the figures of all methods, a row per method and group."""
    columns = ("method", "cases", "n", "right", "both", "harmful", "spare")
    table = Table(*columns, "calls", "tokens", "CPU s/case", title=title)
    for name in names:
        for group in groups:
            score = scores.get((name, group))
            if score is None:
                continue
            n = score.cases
            table.add_row(
                name,
                group,
                str(n),
                f"{score.right / n:.3f}",
                f"{score.both / n:.3f}",
                str(score.harmful),
                str(score.spare),
                f"{score.calls / n:.1f}",
                f"{score.tokens / n:.0f}",
                f"{score.cpu_s / n:.4f}",
            )
        table.add_section()
    return table


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--model", help="smollm2, or a GGUF file; without it, no model")
    parser.add_argument("--adapters", type=Path, help="folder of adapters; the package's if absent")
    parser.add_argument("--models", type=Path, default=default_folder(), help="pulled models")
    parser.add_argument("--embedder", help="one for both languages instead of the two defaults")
    parser.add_argument("--by", help="a field of the cases to group by, such as kind")
    parser.add_argument("--where", default="", help="FIELD=VALUE: only these cases")
    parser.add_argument("--faults", default="", help="print the wrong decisions of this method")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    """Print a table per file; return 2 when a file or model cannot be read."""
    args = _arguments(argv)
    console = Console(width=110)
    opened: dict[str, Embedder] = {}
    opened_model: HostedModel | None = None

    def spec_of(lang: str) -> str:
        return args.embedder or ("multilingual" if lang == "zh" else "minilm")

    def embedder_of(lang: str) -> Embedder:
        spec = spec_of(lang)
        if spec not in opened:
            opened[spec] = open_embedder(spec, args.models)
        return opened[spec]

    try:
        files = [(path, read_cases(path)) for path in args.files]
        scales = {lang: SCALES[spec_of(lang)] for lang in LANGUAGES}
        rules = {lang: RulesDecider(near_duplicate=scales[lang].near) for lang in LANGUAGES}
        methods = [
            Method("cosine", {lang: Cosine(scales[lang]) for lang in LANGUAGES}),
            Method("rules", rules),
        ]
        if args.model:
            found = {lang: embedder_of(lang) for lang in LANGUAGES}
            crosses = {
                lang: embedder
                for lang, embedder in found.items()
                if isinstance(embedder, CrossEncoder) and embedder.pair_share()
            }
            more, opened_model = model_methods(
                args.model, args.models, args.adapters, rules, scales, crosses
            )
            methods += more
        for path, cases in files:
            _show(console, path, cases, methods, embedder_of, args)
    except (ReverieError, ValueError, OSError) as exc:
        console.print(f"error: {exc}", style="red")
        return 2
    finally:
        for embedder in opened.values():
            embedder.close()
        if opened_model is not None:
            opened_model.close()
    return 0


def _show(
    console: Console,
    path: Path,
    cases: Sequence[Case],
    methods: Sequence[Method],
    embedder_of: Callable[[str], Embedder],
    args: argparse.Namespace,
) -> None:
    """Print the tables of one file, and the faults that were asked for."""
    field, _, value = args.where.partition("=")
    chosen = [c for c in cases if not field or str(c.fields.get(field)) == value]
    if not chosen:
        console.print(f"{path.name}: no cases")
        return
    scores, wrong = run(chosen, methods, embedder_of)
    names = [method.name for method in methods]
    console.print(table_of(f"{path.name} {args.where}", names, (ALL, *LANGUAGES), scores))
    if args.by:
        groups = sorted({g for _, g in scores if g.startswith(f"{args.by}=")})
        console.print(table_of(f"{path.name} by {args.by}", names, groups, scores))
    for name, case, decision in wrong:
        if name == args.faults:
            _print_fault(console, case, decision)


def _print_fault(console: Console, case: Case, decision: Decision) -> None:
    console.print(
        f"{case.id}: {case.candidate}\n    right: {case.op} {case.target}, said: {decision.op} "
        f"{decision.target} ({decision.reason})",
        highlight=False,
    )
    for memory in case.memories:
        console.print(f"      {memory.id} {memory.text}", highlight=False)


if __name__ == "__main__":
    sys.exit(main())
