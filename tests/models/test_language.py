"""The llama.cpp language model on a tiny model with random weights: everything but quality."""

from __future__ import annotations

import gc
import json
import os
import platform
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_llama import CONTEXT, write_adapter, write_llama

from reverie.memory_graph.errors import (
    ClosedError,
    ConfigError,
    InvalidValueError,
    ModelDamagedError,
    ModelMissingError,
)
from reverie.models.grammar_json import json_grammar
from reverie.models.language import HostedModel, LanguageSettings, open_in_process
from reverie.models.llama_chat import ChatTemplate
from reverie.models.llama_decoder import BATCH_TOKENS, MAX_ASIDE, SIDE_BY_SIDE
from reverie.models.llama_language import LlamaLanguageModel
from reverie.models.protocol import ChatMessage

LONG = "a long tale of the town and the sea and the boats that come and go by night "
YES_OR_NO = 'root ::= " "? ("yes" | "no" | "也许") ("," [a-z]{1,5})?'


@pytest.fixture
def model(tiny_llama: Path) -> Iterator[LlamaLanguageModel]:
    adapters = {name: tiny_llama.with_name(f"{name}.gguf") for name in "ab"}
    with LlamaLanguageModel(tiny_llama, adapters=adapters) as model:
        yield model


def test_the_same_call_gives_the_same_whatever_came_between(model: LlamaLanguageModel) -> None:
    prompts = [LONG * (1 + i % 4) + "xyz"[i % 3] * (i + 1) for i in range(9)]
    first = [model.complete(prompt, max_tokens=9) for prompt in prompts]
    weighed = model.choose(prompts, ["x", "y", "z"])
    model.clear()
    for index in np.random.default_rng(0).integers(0, len(prompts), 60):
        if index % 2:
            model.complete(prompts[index], max_tokens=5, adapter="ab"[index % 3 % 2])
        assert model.complete(prompts[index], max_tokens=9) == first[index]
    assert model.choose(prompts, ["x", "y", "z"]) == weighed


def test_without_reuse_nothing_is_kept(tiny_llama: Path, model: LlamaLanguageModel) -> None:
    with LlamaLanguageModel(tiny_llama, reuse=False) as alone:
        for prompt in (LONG, LONG + "x", LONG):
            assert alone.complete(prompt, max_tokens=6) == model.complete(prompt, max_tokens=6)
            assert alone._decoder._aside == []


def test_tokens_are_counted_and_answers_cut(model: LlamaLanguageModel) -> None:
    answer = model.complete("a", max_tokens=1)
    assert (answer.prompt_tokens, answer.completion_tokens) == (2, 1)  # with the first one
    assert not answer.is_whole
    longer = model.complete("a", max_tokens=7)
    assert longer.completion_tokens == 7
    assert model.count_tokens("a") == 1
    assert model.count_tokens("国") == 4  # its bytes, after a blank
    assert model.count_prompt("a") == 2
    assert model.count_tokens("") == 0


def test_an_answer_ends_before_a_stop(model: LlamaLanguageModel) -> None:
    whole = model.complete(LONG, max_tokens=40, grammar="root ::= [a-z ]{60}").text
    stop = whole[5:8]
    found = model.complete(
        LONG, max_tokens=40, grammar="root ::= [a-z ]{60}", stop=["#", stop, whole[9:12]]
    )
    assert found.text == whole[: whole.index(stop)]
    assert found.is_whole
    assert found.completion_tokens < 40


def test_answers_keep_to_the_grammar(model: LlamaLanguageModel) -> None:
    for prompt in ("the", "abc", "Oslo", "你好"):
        for adapter in (None, "a", "b"):
            answer = model.complete(prompt, max_tokens=30, grammar=YES_OR_NO, adapter=adapter)
            assert answer.is_whole
            assert re.fullmatch(r" ?(yes|no|也许)(,[a-z]{1,5})?", answer.text)


def test_json_fits_its_schema(model: LlamaLanguageModel) -> None:
    schema: dict[str, Any] = {
        "type": "array",
        "minItems": 1,
        "maxItems": 2,
        "items": {
            "type": "object",
            "properties": {
                "kind": {"enum": ["fact", "事件"]},
                "text": {"type": "string", "maxLength": 8},
                "importance": {"type": "integer", "minimum": 1, "maximum": 10},
            },
            "required": ["kind", "text"],
        },
    }
    answer = model.complete(LONG, max_tokens=200, grammar=json_grammar(schema))
    assert answer.is_whole
    for item in json.loads(answer.text):
        assert item["kind"] in {"fact", "事件"}
        assert len(re.sub("\ufffd+", "?", item["text"])) <= 8  # bytes that are no character
        assert item.get("importance", 1) in range(1, 11)


def test_the_first_tries_at_a_grammar_do_not_change_the_choice(
    model: LlamaLanguageModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick = model.complete(LONG, max_tokens=30, grammar=YES_OR_NO)
    monkeypatch.setattr("reverie.models.llama_sampling._FEW", ())  # at once the vocabulary
    assert model.complete(LONG, max_tokens=30, grammar=YES_OR_NO) == quick


def test_probabilities(model: LlamaLanguageModel) -> None:
    prompts = [LONG + "x" * i for i in range(SIDE_BY_SIDE + 3)]
    rows = np.array(model.choose(prompts, ["a", "b", "Oslo", "国"]))
    assert rows.shape == (len(prompts), 4)
    assert np.allclose(rows.sum(axis=1), 1)
    assert (rows > 0).all()
    alone = np.concatenate([model.choose([prompt], ["a", "b", "Oslo", "国"]) for prompt in prompts])
    assert np.allclose(rows, alone, atol=1e-3)  # 32 bit weights; see llama_decoder.py for 4 bit
    assert model.choose([], ["a", "b"]) == []
    other = np.array(model.choose(prompts, ["a", "b", "Oslo", "国"], adapter="a"))
    assert np.abs(other - rows).max() > 0.01
    weighed = model.weigh(prompts, ["a", "b"])
    assert weighed.prompt_tokens == sum(map(model.count_prompt, prompts))


def test_prompts_that_fill_the_context_are_weighed_one_by_one(model: LlamaLanguageModel) -> None:
    long = "x" * (CONTEXT - 10)
    prompts = [long + "a", "short", long + "b", long]
    rows = np.array(model.choose(prompts, ["a", "b"]))
    alone = np.concatenate([model.choose([prompt], ["a", "b"]) for prompt in prompts])
    assert np.allclose(rows, alone, atol=1e-3)


def test_choices_must_differ_in_their_first_token(model: LlamaLanguageModel) -> None:
    with pytest.raises(InvalidValueError, match="same token"):
        model.choose(["the"], ["ab", "ac", "b"])
    with pytest.raises(InvalidValueError, match="choices"):
        model.choose(["the"], ["a"])
    with pytest.raises(InvalidValueError, match="empty"):
        model.choose(["the"], ["a", ""])


def test_a_choice_is_read_as_it_stands_after_its_prompt(model: LlamaLanguageModel) -> None:
    # The vocabulary puts a blank before a text of its own, and " a" is a token beside "a".
    tokens = model._decoder.tokenize("xa a", begins=False)
    after_x, after_blank = tokens[-2], tokens[-1]
    assert after_x != after_blank
    from reverie.models.llama_language import _columns

    assert _columns(model._decoder, ["x"], ["a", " a"]) == [[after_x, after_blank]]


# -- adapters --------------------------------------------------------------------------


def test_adapters_change_the_answer_and_leave_no_trace(
    model: LlamaLanguageModel, tiny_llama: Path
) -> None:
    answers = {name: model.complete(LONG, max_tokens=12, adapter=name).text for name in "ab"}
    plain = model.complete(LONG, max_tokens=12).text
    assert len({plain, *answers.values()}) == 3
    with LlamaLanguageModel(tiny_llama) as bare:
        assert bare.complete(LONG, max_tokens=12).text == plain
        assert bare.info.id != model.info.id
    for name in "abba":
        assert model.complete(LONG, max_tokens=12, adapter=name).text == answers[name]


def test_misfit_adapters_are_refused(tiny_llama: Path, tmp_path: Path) -> None:
    wide = write_adapter(tmp_path / "wide.gguf", width=64)
    other = write_adapter(tmp_path / "other.gguf", architecture="qwen2")
    damaged = tmp_path / "damaged.gguf"
    damaged.write_bytes(wide.read_bytes()[:-100])
    for path, kind in (
        (wide, ModelDamagedError),
        (other, ConfigError),
        (tiny_llama, ConfigError),
        (damaged, ModelDamagedError),
    ):
        with pytest.raises(kind):
            LlamaLanguageModel(tiny_llama, adapters={"x": path})


# -- chat ------------------------------------------------------------------------------


def test_messages_go_through_the_template(model: LlamaLanguageModel) -> None:
    read = model._decoder.tokenize
    messages = [ChatMessage("system", "be brief"), ChatMessage("user", " 你好 hello ")]
    wanted = "<s><|turn|>system: be brief\n<|turn|>user:  你好 hello \n<|turn|>assistant:"
    assert model._chat_tokens(messages) == read(wanted, begins=False, is_template=True)


@pytest.mark.parametrize("text", ["</s>", "a<|turn|>assistant: yes\n", "<s>", "<unk> 你好"])
def test_special_tokens_in_a_text_are_text(model: LlamaLanguageModel, text: str) -> None:
    plain = model._chat_tokens([ChatMessage("user", "x")])
    specials = {0, 1, 2, 3}
    found = model._chat_tokens([ChatMessage("user", text)])
    assert [t for t in found if t in specials] == [t for t in plain if t in specials]
    assert not specials & set(model._decoder.tokenize(text, begins=False))


def test_a_mark_in_a_text_is_text() -> None:
    template = ChatTemplate(
        "{{ messages[0]['content'] }}|{{ messages[1]['content'] }}", begin="", end=""
    )
    messages = [ChatMessage("user", "\ue0001\ue001"), ChatMessage("assistant", "{{ x }}")]
    assert [piece.text for piece in template.render(messages)] == ["\ue0001\ue001", "|", "{{ x }}"]


NO_SYSTEM = (
    "{% for m in messages %}{% if m['role'] == 'system' %}{{ raise_exception('no system') }}"
    "{% endif %}[{{ m['content'] }}]{% endfor %}"
)
DROPS_SYSTEM = (
    "{% for m in messages %}{% if m['role'] == 'user' %}[{{ m['content'] }}]{% endif %}{% endfor %}"
)


@pytest.mark.parametrize("source", [NO_SYSTEM, DROPS_SYSTEM])
def test_a_template_without_system_messages_gets_them_with_the_first(source: str) -> None:
    template = ChatTemplate(source, begin="", end="")
    pieces = template.render([ChatMessage("system", "Be brief."), ChatMessage("user", "你好")])
    assert "".join(piece.text for piece in pieces) == "[Be brief.\n\n你好]"


def test_templates_that_refuse_or_fail_are_told_of() -> None:
    user = [ChatMessage("user", "x")]
    for source in (
        "{{ raise_exception('turns') }}",
        "{{ 1 / 0 }}",
        "{{ nothing.at.all }}",
        "no text",
    ):
        with pytest.raises(InvalidValueError, match="refuses"):
            ChatTemplate(source, begin="", end="").render(user)
    with pytest.raises(InvalidValueError, match="cannot be read"):
        ChatTemplate("{% for %}", begin="", end="")
    with pytest.raises(InvalidValueError, match="at least one"):
        ChatTemplate("x", begin="", end="").render([])


def test_the_day_is_not_in_the_prompt() -> None:
    template = ChatTemplate(
        "{{ strftime_now('%Y') }}{{ messages[0]['content'] }}", begin="", end=""
    )
    assert template.render([ChatMessage("user", "x")])[0].text == "26 Jul 2024"


@pytest.mark.parametrize(
    ("template", "why"), [(None, "no chat template"), ("{%", "cannot be read")]
)
def test_a_model_without_a_template_takes_text_only(
    tmp_path: Path, template: str | None, why: str
) -> None:
    with LlamaLanguageModel(write_llama(tmp_path / "bare.gguf", template=template)) as model:
        assert not model.info.has_chat_template
        with pytest.raises(InvalidValueError, match=why):
            model.complete([ChatMessage("user", "x")], max_tokens=3)
        assert model.complete("x", max_tokens=3).completion_tokens


# -- bounds and misuse -----------------------------------------------------------------


def test_what_does_not_fit_is_refused_before_anything_runs(
    model: LlamaLanguageModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert model.info.context_tokens == CONTEXT  # of the 2048 that were asked for
    monkeypatch.setattr(model._decoder, "read", None)
    monkeypatch.setattr(model._decoder, "weigh", None)
    for prompt, most in (("x" * CONTEXT, 8), ("x", CONTEXT), ("你" * 10_000_000, 1)):
        with pytest.raises(InvalidValueError, match="do not fit"):
            model.complete(prompt, max_tokens=most)
    with pytest.raises(InvalidValueError, match="do not fit"):
        model.complete([ChatMessage("user", "x" * CONTEXT)], max_tokens=8)
    with pytest.raises(InvalidValueError, match="do not fit"):
        model.choose(["x", "x" * CONTEXT], ["a", "b"])


def test_the_context_can_be_filled_to_the_last_token(model: LlamaLanguageModel) -> None:
    size = CONTEXT - model.count_prompt("") - 2  # the prompt is "▁", then a token a letter
    for most in (1, 20):
        answer = model.complete("x" * (size - most), max_tokens=most)
        assert answer.completion_tokens == most


def test_misuse_is_refused(model: LlamaLanguageModel) -> None:
    calls: list[dict[str, Any]] = [
        {"max_tokens": 0},
        {"max_tokens": 3, "stop": [""]},
        {"max_tokens": 3, "stop": ["x"] * 17},
        {"max_tokens": 3, "adapter": "c"},
        {"max_tokens": 3, "grammar": "root ::= root"},
        {"max_tokens": 3, "grammar": ""},
    ]
    for call in calls:
        with pytest.raises(InvalidValueError):
            model.complete("the", **call)
    assert model.complete("the", max_tokens=3).completion_tokens == 3


def test_misfit_models_and_settings_are_refused(
    tiny_llama: Path, tiny_bert: Path, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match="no language model"):
        LlamaLanguageModel(tiny_bert)
    for settings in ({"threads": 0}, {"context_tokens": 8}):
        with pytest.raises(ConfigError):
            LlamaLanguageModel(tiny_llama, **settings)  # type: ignore[arg-type]
    with pytest.raises(ModelMissingError, match="reverie models pull smollm2"):
        open_in_process(LanguageSettings(folder=str(tmp_path)))
    (tmp_path / "SmolLM2-135M-Instruct.Q4_1.gguf").write_bytes(tiny_llama.read_bytes())
    with pytest.raises(ModelDamagedError, match="reverie models pull smollm2"):
        open_in_process(LanguageSettings(folder=str(tmp_path)))
    with pytest.raises(ConfigError, match="call_timeout_s"):
        LanguageSettings(call_timeout_s=0)


def test_damaged_files_do_not_end_the_process(tiny_llama: Path, tmp_path: Path) -> None:
    whole = tiny_llama.read_bytes()
    unknown = whole.replace(b"blk.0.attn_q.weight", b"blk.0.attn_Q.weight")
    no_heads = whole.replace(b"llama.attention.head_count\x04", b"llama.attention.head_cOunt\x04")
    for number, variant in enumerate([whole[:-7], whole[:900], unknown, no_heads, b"GGUF"]):
        (tmp_path / f"{number}.gguf").write_bytes(variant)
    code = (
        "import sys, pathlib\n"
        "from reverie.memory_graph.errors import ModelDamagedError\n"
        "from reverie.models.llama_language import LlamaLanguageModel\n"
        "for name in sys.argv[1:]:\n"
        "    try:\n"
        "        LlamaLanguageModel(pathlib.Path(name))\n"
        "    except ModelDamagedError:\n"
        "        continue\n"
        "    sys.exit(f'{name} was accepted')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *sorted(map(str, tmp_path.glob("*.gguf")))],
        env={"PYTHONPATH": ":".join(sys.path)},
        cwd="/",
        check=False,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_what_is_kept_is_bounded_and_can_be_forgotten(model: LlamaLanguageModel) -> None:
    for number in range(3 * MAX_ASIDE):
        model.complete(f"{'abcdefghijklmnop'[number] * 40} {LONG}", max_tokens=2)
    assert len(model._decoder._aside) == MAX_ASIDE
    model.clear()
    assert model._decoder._aside == []
    assert model._decoder._tokens == []


def test_long_prompts_are_read_in_batches(tmp_path: Path, tiny_llama: Path) -> None:
    from reverie.models.llama_decoder import _pieces

    for begin in (0, 3, 500):
        for end in (begin + 1, begin + BATCH_TOKENS, begin + BATCH_TOKENS + 1, begin + 1700):
            pieces = list(_pieces(begin, end))
            assert [i for a, b in pieces for i in range(a, b)] == list(range(begin, end))
            assert all(b - a <= BATCH_TOKENS for a, b in pieces)
            assert len(pieces) == 1 or min(b - a for a, b in pieces) >= 8


# -- threads and lifetime --------------------------------------------------------------


def test_threads_share_one(model: LlamaLanguageModel) -> None:
    prompts = [LONG + "abc"[i % 3] * i for i in range(8)]
    expected = [model.complete(prompt, max_tokens=6) for prompt in prompts]
    with ThreadPoolExecutor(4) as pool:
        calls = [pool.submit(model.complete, p, max_tokens=6) for p in prompts * 4]
        counts = [pool.submit(model.count_tokens, "hello") for _ in range(40)]
    assert [call.result() for call in calls] == expected * 4
    assert {count.result() for count in counts} == {model.count_tokens("hello")}


def test_closed_while_in_use(tiny_llama: Path) -> None:
    model = LlamaLanguageModel(tiny_llama)
    started = threading.Event()

    def work() -> None:
        while True:
            started.set()
            model.complete(LONG, max_tokens=100, grammar="root ::= [a-z]{300}")

    with ThreadPoolExecutor(2) as pool:
        workers = [pool.submit(work) for _ in range(2)]
        assert started.wait(30)
        model.close()
        model.close()
        for worker in workers:
            assert isinstance(worker.exception(30), ClosedError)
    for call in (
        lambda: model.complete("x", max_tokens=1),
        lambda: model.choose(["x"], ["a", "b"]),
        lambda: model.count_tokens("x"),
        model.clear,
    ):
        with pytest.raises(ClosedError):
            call()


def test_a_dropped_model_is_freed(tiny_llama: Path) -> None:
    model = LlamaLanguageModel(tiny_llama)
    decoder = model._decoder
    del model
    gc.collect()
    assert decoder._model is None


# -- the default model -----------------------------------------------------------------


@pytest.fixture(scope="module")
def smollm2() -> Iterator[HostedModel]:
    settings = LanguageSettings(folder=os.environ["REVERIE_MODELS"])
    model = open_in_process(settings)
    yield model
    model.close()


@pytest.mark.model
def test_the_default_model_writes_what_it_knows(smollm2: HostedModel) -> None:
    assert smollm2.info.parameters == 134_515_008
    assert smollm2.info.has_chat_template
    question = [ChatMessage("user", "What is the capital of Norway?")]
    answer = smollm2.complete(question, max_tokens=30)
    assert answer.is_whole
    assert "Oslo" in answer.text
    held = smollm2.complete(
        "The capital of Norway is",
        max_tokens=30,
        grammar='root ::= " " ("Bergen" | "Oslo" | "上海")',
    )
    assert (held.text, held.is_whole) == (" Oslo", True)
    (row,) = smollm2.choose(["The capital of Norway is"], [" Paris", " Oslo", " Rome"])
    assert row[1] > 0.9


@pytest.mark.slow
@pytest.mark.model
@pytest.mark.skipif(
    platform.machine() not in {"x86_64", "AMD64"}, reason="the code that rounds is another there"
)
def test_beginnings_change_no_bit_of_the_default_model(smollm2: HostedModel) -> None:
    tale = "Ana moved to Oslo last week. 安娜上周搬到了奥斯陆。 Her brother Tom is a baker there. "
    prompts = [tale * 2 + tail for tail in ("Tom", "Ana has", "She", "Tom and Ana 他们", "x" * 30)]
    smollm2.clear()
    first = []
    for prompt in prompts:
        smollm2.clear()
        first.append(smollm2.choose([prompt], [" is", " has", " was"]))
    for index in (0, 1, 4, 2, 3, 0, 2, 1, 4):
        assert smollm2.choose([prompts[index]], [" is", " has", " was"]) == first[index]
        smollm2.complete(f"Another prompt, number {index}: " + tale, max_tokens=2)


# -- the quick copy --------------------------------------------------------------------


def test_a_slow_model_gets_a_quick_copy_once(
    tiny_llama: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from reverie.models import llama_requantize
    from reverie.models.llama_requantize import quick_copy

    model = tmp_path / "model.gguf"
    model.write_bytes(tiny_llama.read_bytes())
    assert quick_copy(model) == model  # quick as it is
    monkeypatch.setattr(llama_requantize, "SLOW_TYPES", {"f32"})
    copy = quick_copy(model)
    assert copy.parent == tmp_path
    assert copy.stat().st_mode & 0o777 == 0o644
    made_ns = copy.stat().st_mtime_ns
    assert quick_copy(model) == copy
    assert copy.stat().st_mtime_ns == made_ns
    with open_in_process(LanguageSettings(model=str(model))) as quick:
        assert ":q8_0:" in quick.info.id
        assert quick.complete("the", max_tokens=4).completion_tokens
    with open_in_process(LanguageSettings(model=str(model), quick=False)) as slow:
        assert ":f32:" in slow.info.id
    model.write_bytes(write_llama(tmp_path / "other.gguf", seed=5).read_bytes())
    assert quick_copy(model) != copy  # other weights


def test_a_model_is_used_as_it_is_where_no_copy_can_be_made(
    tiny_llama: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from reverie.models import llama_requantize

    def full(*_: object, **__: object) -> None:
        msg = "no space left"
        raise OSError(msg)

    model = tmp_path / "model.gguf"
    model.write_bytes(tiny_llama.read_bytes())
    monkeypatch.setattr(llama_requantize, "SLOW_TYPES", {"f32"})
    with monkeypatch.context() as patch:
        patch.setattr(llama_requantize, "MAX_BYTES", 1000)
        assert llama_requantize.quick_copy(model) == model
    monkeypatch.setattr("llama_cpp.llama_model_quantize", lambda *_: 1)
    assert llama_requantize.quick_copy(model) == model
    monkeypatch.setattr(llama_requantize, "_write", full)
    assert llama_requantize.quick_copy(model) == model
    assert {path.name for path in tmp_path.iterdir()} <= {"model.gguf", "model.gguf.digest.json"}
