"""benchmarks/extraction.py: what it reads, how it counts, and that its tables say so."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import extraction
from extraction_methods import Method
from extraction_score import Case, Score, judge, ungrounded

from reverie.memory_graph.drafts import OWNER, EntityDraft, MemoryDraft, RelationDraft
from reverie.models.protocol import Extraction
from reverie.models.rules import RulesExtractor

GHENT = {
    "id": "a1",
    "lang": "en",
    "dialogue": [
        {"speaker": "assistant", "text": "Where do you live?"},
        {"speaker": "user", "text": "I live in Ghent."},
    ],
    "facts": [
        {"type": "fact", "text": "User lives in Ghent", "keys": [["ghent"], ["live", "home"]]}
    ],
    "entities": [{"name": "Ghent", "alt": ["Gent"], "type": "place"}],
    "triples": [{"h": ["user"], "r": ["live"], "t": ["Ghent"]}],
}
EMPTY = {
    "id": "a2",
    "lang": "zh",
    "dialogue": [{"speaker": "用户", "text": "嗯嗯，好的。"}],
    "facts": [],
    "entities": [],
    "triples": [],
}


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    path = tmp_path / "cases.jsonl"
    path.write_text("\n".join(json.dumps(c, ensure_ascii=False) for c in (GHENT, EMPTY)), "utf-8")
    return path


def test_what_is_right_counts(cases: Path) -> None:
    read = extraction.read_cases(cases)
    scores, faults = extraction.run(read, [Method("rules", RulesExtractor())])
    score = scores["rules", "all"]
    assert (score.cases, score.facts, score.facts_found) == (2, 1, 1)
    assert (score.entities.f1, score.triples.f1, score.pairs.f1) == (1.0, 1.0, 1.0)
    assert (score.empty, score.fires, score.ungrounded) == (1, 0, 0)
    assert scores["rules", "zh"].cases == 1
    assert faults == []


def test_what_is_wrong_counts(cases: Path) -> None:
    ghent, empty = extraction.read_cases(cases)
    score = Score()
    draft = MemoryDraft(
        "User lives in Paris since 1999",
        entities=(EntityDraft("Paris"),),
        relations=(RelationDraft(OWNER, "likes", "Ghent"),),
    )
    wrong = judge(ghent, [Extraction("t", (draft,), draft.entities)], score)
    assert score.facts_found == 0
    assert score.ungrounded == 1
    assert (score.triples.f1, score.pairs.f1) == (0.0, 1.0)
    assert {"no fact: User lives in Ghent", "no entity: Ghent", "spare entity: Paris"} <= set(wrong)
    assert judge(empty, [Extraction("t", (draft,))], score)
    assert (score.empty, score.fires) == (1, 1)


def test_names_and_numbers_need_a_source() -> None:
    assert ungrounded("User's cat is Miso", "user My cat is Miso") == set()
    assert ungrounded("User has 3 cats in Rome", "user I have cats") == {"3", "rome"}
    assert ungrounded("用户28岁", "用户 我29岁") == {"28"}


def test_a_line_that_is_no_case_is_named(tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text('{"id": 1}\n', "utf-8")
    with pytest.raises(ValueError, match="line 1"):
        extraction.read_cases(path)
    assert extraction.main([str(path)]) == 2


def test_tables_name_methods_and_languages(cases: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert extraction.main([str(cases), "--faults", "salient"]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in ("rules", "salient", "rules + salient", "en", "zh"))
    with pytest.raises(SystemExit):
        extraction.main([])


def test_a_case_may_leave_out_what_it_does_not_have() -> None:
    assert Case("x", "en", ()).facts == ()
    assert Score().fact_recall == 1.0
