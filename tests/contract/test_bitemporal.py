"""What was believed, and what held: the two times together, and what a deletion undoes."""

from __future__ import annotations

from support import DAY, START, Home


def _texts(home: Home, **moment: float) -> set[str]:
    hits = home.user().search("Where does Ana live?", types="memory", **moment)  # type: ignore[arg-type]
    return {hit.text for hit in hits}


def _moved(home: Home) -> None:
    """Ana lives in Berlin from day 0; on day 10 it is learned that she moved on day 5."""
    ana = home.user()
    berlin = ana.remember("Ana lives in Berlin.", valid_from=START)
    home.clock.set(START + 10 * DAY)
    ana.remember("Ana lives in Oslo.", valid_from=START + 5 * DAY, replaces=berlin.memory_id)


def test_both_times_together(home: Home) -> None:
    _moved(home)
    day = {n: START + n * DAY for n in range(12)}
    assert _texts(home) == {"Ana lives in Oslo."}
    assert _texts(home, valid_at=day[2]) == {"Ana lives in Berlin."}
    assert _texts(home, valid_at=day[9]) == {"Ana lives in Oslo."}
    assert _texts(home, as_of=day[9]) == {"Ana lives in Berlin."}
    assert _texts(home, as_of=day[9], valid_at=day[9]) == {"Ana lives in Berlin."}
    assert _texts(home, as_of=day[11], valid_at=day[9]) == {"Ana lives in Oslo."}


def test_an_item_shows_what_was_known_then(home: Home) -> None:
    _moved(home)
    (hit,) = home.user().search("Berlin", types="memory", as_of=START + DAY)
    assert (hit.status, hit.valid_to, hit.retired_at) == ("active", None, None)
    (item,) = home.user().list(as_of=START + DAY).items
    assert (item.status, item.valid_to) == ("active", None)


def test_a_deleted_memory_never_held(home: Home) -> None:
    ana = home.user()
    kept = ana.remember("安娜住在柏林。", valid_from=START)
    home.clock.advance(DAY)
    ana.delete(kept.memory_id)
    home.clock.advance(DAY)
    assert _texts(home, valid_at=START + 1) == set()
    assert _texts(home, as_of=START + 1) == {"安娜住在柏林。"}
    assert _texts(home, as_of=START + 1, valid_at=START + 1) == {"安娜住在柏林。"}
    assert _texts(home, include_retired=True) == {"安娜住在柏林。"}
    ana.restore(kept.memory_id)
    assert _texts(home, valid_at=START + 1) == {"安娜住在柏林。"}


def test_relations_follow_the_same_two_times(home: Home) -> None:
    ana = home.user()
    ana.relate("Ana", "lives_in", "Berlin", valid_from=START, functional=True)
    home.clock.set(START + 10 * DAY)
    ana.relate("Ana", "lives_in", "Oslo", valid_from=START + 5 * DAY, functional=True)

    def towns(**moment: float) -> set[str]:
        found = ana.neighbors("Ana", **moment)  # type: ignore[arg-type]
        return {relation.tail for relation in found.relations}

    assert towns() == {"Oslo"}
    assert towns(valid_at=START + DAY) == {"Berlin"}
    assert towns(as_of=START + 9 * DAY) == {"Berlin"}
    assert towns(as_of=START + 9 * DAY, valid_at=START + 9 * DAY) == {"Berlin"}
    assert towns(valid_at=START + 9 * DAY) == {"Oslo"}
