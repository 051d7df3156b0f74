"""What the language model host costs: processor time, memory, and the way to it and back.

    python benchmarks/model_host.py [--model smollm2|PATH] [--adapter NAME=PATH] [--as-is]

Processor seconds are the host's own, from /proc, so other load on the machine lengthens them only
as far as it slows the processor down. The bounds are those of the default model on one core.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from bench_support import report

from reverie.models.grammar_json import literal
from reverie.models.host import ProcessLanguageModel
from reverie.models.language import LanguageSettings

MAX_RESIDENT_MIB = 400
MAX_TURN_S = 0.7  # the whole of a turn; one extraction must stay below
PROMPT_TOKENS, ANSWER_TOKENS, PAIRS = 150, 30, 10
REPEATS = 5
CHOICES = (" same", " replaced", " ended", " unrelated")

_TALE = (
    "Ana told me that her brother Tom has moved to Oslo, where he works at a bakery near the "
    "harbour and plays the violin on Sundays; their mother wants to visit them in March with two "
    "friends. "
)


def turn_prompt(model: ProcessLanguageModel, number: int) -> str:
    """Return a prompt of about `PROMPT_TOKENS` that no earlier one begins like."""
    text = f"{number} times, {_TALE}" * 8
    while model.count_tokens(text) > PROMPT_TOKENS:
        text = text[:-4]
    return text


def span_grammar(text: str) -> str:
    """Return a grammar of lines out of words of the text, as the extraction of a small model."""
    words = " | ".join(literal(word) for word in dict.fromkeys(text.split()))
    return (
        'root ::= line line line line\nline ::= span " | " relation " | " span "\\n"\n'
        'relation ::= "lives_in" | "works_at" | "likes" | "brother" | "event"\n'
        f'span ::= word (" " word){{0,3}}\nword ::= {words}\n'
    )


def pairs(number: int, *, new_first: bool) -> list[str]:
    """Return the questions how a new statement stands to ten old ones."""
    new = f"New: Ana moved to Oslo last week with her brother Tom, on day {number}\n"
    olds = [
        f"Old: Ana has lived in the city of Bergen with her {i} cats for years\n"
        for i in range(PAIRS)
    ]
    return [(new + old if new_first else old + new) + "Relation:" for old in olds]


def processor_s(pid: int) -> float:
    """Return the processor seconds that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_mib(pid: int) -> float:
    """Return the highest resident memory of a process so far."""
    for line in Path(f"/proc/{pid}/status").read_text("ascii").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return 0.0


def cost(model: ProcessLanguageModel, call: Callable[[int], object]) -> float:
    """Return processor seconds of one call, on an average over some that share nothing."""
    assert model.pid is not None  # noqa: S101 (it was just opened)
    begin = processor_s(model.pid)
    for number in range(REPEATS):
        call(number)
    return (processor_s(model.pid) - begin) / REPEATS


def main() -> int:
    """Measure; return 1 if a bound is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--folder", help="where pulled models lie")
    parser.add_argument("--adapter", help="NAME=PATH of a LoRA adapter, used for every call")
    parser.add_argument("--as-is", action="store_true", help="without the quick copy")
    options = parser.parse_args()
    name, _, path = (options.adapter or "").partition("=")
    adapter = name or None
    settings = LanguageSettings(
        model=options.model,
        folder=options.folder,
        adapters={name: path} if adapter else {},
        quick=not options.as_is,
    )
    begin = time.perf_counter()
    with ProcessLanguageModel(settings) as model:
        start_s = time.perf_counter() - begin
        prompts = [turn_prompt(model, number) for number in range(REPEATS)]
        pid = model.pid or 0
        extraction_s = cost(
            model,
            lambda number: model.complete(
                prompts[number],
                max_tokens=ANSWER_TOKENS,
                grammar=span_grammar(prompts[number]),
                adapter=adapter,
            ),
        )
        again_s = cost(
            model,
            lambda number: model.complete(
                prompts[0] + str(number), max_tokens=ANSWER_TOKENS, adapter=adapter
            ),
        )
        old_s, new_s = (
            cost(
                model,
                lambda n, first=first: model.choose(  # type: ignore[misc]
                    pairs(n, new_first=first), CHOICES, adapter=adapter
                ),
            )
            for first in (False, True)
        )
        begin = time.perf_counter()
        for _ in range(1000):
            model.count_tokens("a b c")
        way_ms = time.perf_counter() - begin
        memory_mib = resident_mib(pid)
        model_id = model.info.id
    shape = f"{PROMPT_TOKENS} tokens, {ANSWER_TOKENS} written"
    rows: list[tuple[str, str, str, bool | None]] = [
        ("start of the host", f"{start_s:.2f} s", "", None),
        (f"extraction by the span grammar ({shape})", f"{extraction_s:.2f} cpu s",
         f"{MAX_TURN_S} cpu s", extraction_s <= MAX_TURN_S),
        ("the same prompt with another end, no grammar", f"{again_s:.2f} cpu s", "", None),
        (f"choose over {PAIRS} pairs, the old statement first", f"{old_s:.2f} cpu s", "", None),
        (f"choose over {PAIRS} pairs, the new statement first", f"{new_s:.2f} cpu s", "", None),
        ("a call that does nothing, there and back", f"{way_ms:.3f} ms", "", None),
        ("resident memory of the host, highest", f"{memory_mib:.0f} MiB",
         f"{MAX_RESIDENT_MIB} MiB", memory_mib <= MAX_RESIDENT_MIB),
    ]  # fmt: skip
    return 0 if report(f"model host: {model_id}", rows) else 1


if __name__ == "__main__":
    sys.exit(main())
