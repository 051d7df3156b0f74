"""The nearest by meaning alone, and statements that are kept again."""

from __future__ import annotations

import numpy as np
import pytest
from support import Home

from reverie.memory_graph.errors import FilterError, InvalidLimitError
from reverie.nearest import of_several

TEXTS = [
    "Ana likes tea.",
    "Tom was in Oslo.",
    "她喜欢喝龙井茶",
    "The gate is open.",
    "Ana likes tea!",
]


def test_nearest_are_the_cosines(home: Home) -> None:
    ana = home.user()
    ids = [ana.remember(text, tags=[f"t{i % 2}"]).memory_id for i, text in enumerate(TEXTS)]
    ana.add("A turn about tea is no memory.", infer=False)
    near = ana.nearest("Who likes tea?", limit=10)
    embedder = home.rt.mind.embedder(home.world)
    question = embedder.embed(["Who likes tea?"], "query")[0]
    cosines = embedder.embed(TEXTS, "passage") @ question
    wanted = dict(zip(ids, cosines.tolist(), strict=True))
    assert {n.item.id for n in near} == set(ids)
    assert [n.similarity for n in near] == sorted((n.similarity for n in near), reverse=True)
    for one in near:
        assert one.similarity == pytest.approx(wanted[one.item.id], abs=1e-5)
    pages = [ana.nearest("Who likes tea?", limit=2, offset=at) for at in (0, 2, 4, 6)]
    assert [n for page in pages for n in page] == near
    odd = ana.nearest("Who likes tea?", filters={"tags": "t1"})
    assert [n.item.id for n in odd] == [n.item.id for n in near if "t1" in n.item.tags]
    ana.delete(near[0].item.id)
    assert [n.item.id for n in ana.nearest("Who likes tea?")] == [n.item.id for n in near[1:]]


def test_of_several_and_of_nobody(home: Home) -> None:
    home.user("a").remember("Tea is hot.")
    users = [home.user("a"), home.user("nobody")]
    (of_a, of_nobody) = of_several(users, "tea", limit=3)
    assert [n.item.text for n in of_a] == ["Tea is hot."]
    assert of_nobody == []
    assert of_several([], "tea", limit=3) == []


def test_what_is_refused(home: Home) -> None:
    ana = home.user()
    with pytest.raises(InvalidLimitError):
        ana.nearest("x", limit=0)
    for offset in (-1, 1.0, True, "1"):
        with pytest.raises(InvalidLimitError):
            ana.nearest("x", offset=offset)  # type: ignore[arg-type]
    with pytest.raises(FilterError):
        ana.nearest("x", filters={"colour": "red"})


def test_kept_again(home: Home) -> None:
    ana = home.user()
    first = ana.remember("我住在杭州")
    assert ana.remember("我住在杭州").op == "NOOP"
    second = ana.remember("我住在杭州", again=True, metadata={"n": 2})
    assert (second.op, second.memory_id == first.memory_id) == ("ADD", False)
    assert ana.stats().active == 2
    ana.delete(first.memory_id)
    assert ana.remember("我住在杭州").memory_id == second.memory_id
    assert ana.check() == []
    assert np.allclose([n.similarity for n in ana.nearest("我住在杭州")], 1.0, atol=1e-4)
