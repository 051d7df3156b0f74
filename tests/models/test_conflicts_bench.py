"""benchmarks/conflicts.py: what it reads, how it counts, and that its tables say so."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import pytest
from scripted_model import ScriptedModel

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import conflicts
from conflicts_methods import Alone, Cosine, Method, Scale, adapters_in

from reverie.memory_graph.drafts import Decision, Known, MemoryDraft
from reverie.memory_graph.errors import ConfigError, ModelFailedError
from reverie.models.decide_model import ChatDecider
from reverie.models.language import Weighed
from reverie.models.rules import RulesDecider
from reverie.models.standin import HashEmbedder
from reverie.models.usage import Meter, MeteredLanguageModel

CASES: list[dict[str, Any]] = [
    {"id": "a", "lang": "en", "memories": [{"id": 1, "text": "User lives in Ghent"}],
     "candidate": "User moved to Porto", "op": "UPDATE", "target": 1, "kind": "home"},
    {"id": "b", "lang": "zh", "memories": [{"id": 1, "text": "用户喜欢喝茶"}],
     "candidate": "用户喜欢喝豆浆", "op": "ADD", "target": None, "kind": "taste"},
]  # fmt: skip


def write(folder: Path, *lines: Any) -> Path:
    path = folder / "cases.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def test_cases_keep_their_further_fields(tmp_path: Path) -> None:
    first, second = conflicts.read_cases(write(tmp_path, *CASES))
    assert first.fields["kind"] == "home"
    assert second.target is None


@pytest.mark.parametrize(
    "broken",
    [
        {**CASES[0], "target": 2},
        {**CASES[0], "target": None},
        {**CASES[1], "target": 1},
        {"id": "c"},
        [],
    ],
)
def test_a_line_that_is_no_case_is_named(tmp_path: Path, broken: Any) -> None:
    with pytest.raises(ValueError, match="line 2"):
        conflicts.read_cases(write(tmp_path, CASES[0], broken))


@pytest.mark.parametrize(
    ("op", "target", "right", "both", "harmful", "spare"),
    [
        ("UPDATE", "1", 1, 1, 0, 0),
        ("UPDATE", "2", 1, 0, 1, 0),
        ("DELETE", "1", 0, 0, 0, 0),
        ("DELETE", "2", 0, 0, 1, 0),
        ("ADD", None, 0, 0, 0, 1),
        ("NOOP", "1", 0, 0, 0, 0),
    ],
)
def test_a_change_of_the_wrong_memory_is_harmful(
    tmp_path: Path, op: Any, target: str | None, right: int, both: int, harmful: int, spare: int
) -> None:
    (case, _) = conflicts.read_cases(write(tmp_path, *CASES))
    score = conflicts.Score()
    conflicts.judge(case, Decision(op, target), score)
    assert (score.right, score.both, score.harmful, score.spare) == (right, both, harmful, spare)


def test_a_change_where_nothing_changes_is_harmful(tmp_path: Path) -> None:
    (_, case) = conflicts.read_cases(write(tmp_path, *CASES))
    score = conflicts.Score()
    for decision in (Decision("UPDATE", "1"), Decision("DELETE", "1"), Decision("NOOP", "1")):
        conflicts.judge(case, decision, score)
    assert score.harmful == 2


def test_memories_come_nearest_first(tmp_path: Path) -> None:
    memories = [{"id": 1, "text": "The mill burned"}, {"id": 2, "text": "User moved to Porto"}]
    case = {**CASES[0], "memories": memories}
    (read,) = conflicts.read_cases(write(tmp_path, case))
    known = conflicts.known_of(read, HashEmbedder())
    assert [item.id for item in known] == ["2", "1"]
    assert known[0].similarity == pytest.approx(1.0, abs=1e-5)


def test_the_table_says_what_each_method_did(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path, *CASES)
    arguments = [str(path), "--embedder", "standin", "--by", "kind", "--faults", "cosine"]
    assert conflicts.main(arguments) == 0
    shown = capsys.readouterr().out
    rows = [
        [cell.strip() for cell in line.split("│")] for line in shown.splitlines() if "│" in line
    ]
    rules = [row for row in rows if len(row) > 4 and row[1] == "rules"]
    assert [row[2] for row in rules] == ["all", "en", "zh", "kind=home", "kind=taste"]
    assert all(row[5] == "1.000" and row[6] == "0" for row in rules)
    assert "right: UPDATE 1, said: ADD" in shown


def test_a_file_or_model_that_is_not_there_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert conflicts.main([str(tmp_path / "none.jsonl"), "--embedder", "standin"]) == 2
    path = str(write(tmp_path, *CASES))
    missing = str(tmp_path / "none.gguf")
    assert conflicts.main([path, "--embedder", "standin", "--model", missing]) == 2
    assert capsys.readouterr().out.count("error") == 2


def test_only_the_cases_that_were_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(write(tmp_path, *CASES))
    assert conflicts.main([path, "--embedder", "standin", "--where", "kind=none"]) == 0
    assert "no cases" in capsys.readouterr().out


class Hosted(ScriptedModel):
    """A scripted model that also tells what a call costs."""

    def weigh(
        self, prompts: Sequence[str], choices: Sequence[str], *, adapter: str | None = None
    ) -> Weighed:
        """Weigh, at ten tokens a prompt."""
        return Weighed(self.choose(prompts, choices, adapter=adapter), 10 * len(prompts))

    def count_prompt(self, prompt: Any) -> int:
        """Return the tokens of a prompt."""
        return self.count_tokens(str(prompt))

    def clear(self) -> None:
        """Do nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def test_calls_and_tokens_are_counted(tmp_path: Path) -> None:
    model = MeteredLanguageModel(
        Hosted('{"op":"ADD"}', rows=lambda _: (0.0, 0.0, 0.0, 1.0)), Meter()
    )
    method = Method("model", dict.fromkeys(("en", "zh"), Alone(ChatDecider(model))), model)
    rules = Method("rules", dict.fromkeys(("en", "zh"), RulesDecider()))
    cases = conflicts.read_cases(write(tmp_path, *CASES))
    embedder = HashEmbedder()
    scores, wrong = conflicts.run(cases, [rules, method], lambda _: embedder)
    assert scores["model", "all"].calls == 1  # the Chinese case is known to leave all alone
    assert scores["model", "en"].tokens == model.meter.total().tokens > 0
    assert scores["rules", "all"].calls == 0
    assert [(name, case.id) for name, case, _ in wrong] == [("model", "a")]
    model.choose(["a", "b"], ["x", "y"], adapter="pair")
    assert model.meter.total().calls == 2


def test_a_model_that_fails_alone_is_an_add() -> None:
    failing = Alone(ChatDecider(ScriptedModel(ModelFailedError("x"))))
    known = [Known("1", "User walks to work", similarity=0.9)]
    assert failing.decide(MemoryDraft("User cycles to work"), known).op == "ADD"


def test_cosine_is_by_the_nearest_alone() -> None:
    cosine = Cosine(Scale(floor=0.3, changed=0.7, near=0.9))
    for similarity, op in ((0.95, "NOOP"), (0.8, "UPDATE"), (0.5, "ADD")):
        known = [Known("1", "x", similarity=similarity), Known("2", "y", similarity=0.1)]
        decision = cosine.decide(MemoryDraft("z"), known)
        assert (decision.op, decision.target) == (op, None if op == "ADD" else "1")
    assert cosine.decide(MemoryDraft("z"), []).op == "ADD"


def test_adapters_are_named_by_their_files(tmp_path: Path) -> None:
    (tmp_path / "pair.gguf").touch()
    (tmp_path / "pair.json").touch()
    assert list(adapters_in(tmp_path)) == ["pair"]
    with pytest.raises(ConfigError):
        adapters_in(tmp_path / "none")
