"""Cases for decisions, made from pairs: some known statements, a new one, and what it should do.
`write_cases.py` writes them as a file that `benchmarks/conflicts.py` reads.
"""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from reverie.models.training.lexicon import Kind, Language, Split, kinds_of
from reverie.models.training.pairs import Label, Pair, Scene, make_pair, related

Operation: TypeAlias = Literal["ADD", "UPDATE", "DELETE", "NOOP"]
OPERATIONS: dict[Label, Operation] = {
    "same": "NOOP",
    "replaced": "UPDATE",
    "ended": "DELETE",
    "unrelated": "ADD",
}
# As they come in the gold cases: most statements are new, and there are more changes than ends.
_SHARES: dict[Label, float] = {"same": 0.24, "replaced": 0.3, "ended": 0.16, "unrelated": 0.3}
_CHINESE = 0.35
_MOST_OTHERS = 5  # memories beside the one that the case is about
_TRIES = 200
CASES = {
    "train": 400,
    "wide": 400,
    "validation": 400,
    "test": 400,
    "heldout": 240,
    "unseen": 240,
    "late": 240,
}
USUAL_SEED = 11


class KnownMemory(msgspec.Struct, frozen=True):
    """A memory of a case."""

    id: int
    text: str


class Case(msgspec.Struct, frozen=True):
    """A case, with the kind and the shape of the pair that it was made from."""

    id: str
    lang: Language
    kind: str
    shape: str
    split: Split
    memories: tuple[KnownMemory, ...]
    candidate: str
    op: Operation
    target: int | None


def cases(split: Split, count: int | None = None, *, seed: int = USUAL_SEED) -> list[Case]:
    """Return the cases of a split; the same arguments give the same cases.

    Args:
        split: "heldout", "unseen" and "late" have only kinds that are left out of training and of
            the choice of the thresholds; see `lexicon.kinds_of`.
        count: how many; None for the usual number (240 of these, 400 of the others).
        seed: of the draw.
    """
    rng = random.Random(f"cases {split} {seed}")  # noqa: S311 - seeded on purpose
    labels, weights = list(_SHARES), list(_SHARES.values())
    found: list[Case] = []
    wanted = CASES[split] if count is None else count
    seen: set[tuple[str, str]] = set()
    while len(found) < wanted:
        language: Language = "zh" if rng.random() < _CHINESE else "en"
        kind = rng.choice(kinds_of(language, split))
        label = rng.choices(labels, weights)[0]
        pair = make_pair(kind, label, language, split, rng)
        if pair is None or (pair.old, pair.new) in seen or _same_person(pair):
            continue
        seen.add((pair.old, pair.new))
        owned = pair.old.startswith(("User ", "User's ", "用户"))
        others = _others(kind, language, split, owned=owned, rng=rng)
        texts = [text for text in others if text not in {pair.old, pair.new}]
        texts.insert(rng.randint(0, len(texts)), pair.old)
        memories = tuple(KnownMemory(i, text) for i, text in enumerate(texts, 1))
        op = OPERATIONS[label]
        found.append(
            Case(
                id=f"{split[0]}{len(found) + 1:03d}",
                lang=language,
                kind=kind.name,
                shape=pair.shape,
                split=split,
                memories=memories,
                candidate=pair.new,
                op=op,
                target=None if op == "ADD" else texts.index(pair.old) + 1,
            )
        )
    return found


def _same_person(pair: Pair) -> bool:
    """Whether two subjects that were drawn as different are two names of the player."""
    named = re.compile(r"\bplayer\b", re.IGNORECASE)
    return pair.shape == "other_subject" and all(named.search(text) for text in pair[:2])


def _others(
    kind: Kind, language: Language, split: Split, *, owned: bool, rng: random.Random
) -> list[str]:
    """Statements of kinds that share neither subject matter nor words with `kind`."""
    listed = {kind.values, *(name for _, name in kind.keyed)} - {""}
    texts: list[str] = []
    pool = [
        other
        for other in kinds_of(language, split)
        if other.state
        and other.who in {"person", "game"}
        and not related(other, kind)
        and not listed & {other.values, *(name for _, name in other.keyed)}
        and not any(name in kind.name for name in ("marital", "engaged", "steps"))
    ]
    rng.shuffle(pool)
    for other in pool[: rng.randint(0, _MOST_OTHERS)]:
        scene = Scene(other, language, split, rng)
        if owned and rng.random() < 0.8:  # noqa: PLR2004 - mostly of the same person
            scene.subject = "用户" if language == "zh" else "User"
        texts.append(scene.say("state")[0])
    return list(dict.fromkeys(texts))


def write_cases(path: Path, split: Split, count: int | None = None) -> int:
    """Write the cases of a split as lines of JSON; return how many."""
    found = cases(split, count)
    path.write_bytes(b"".join(msgspec.json.encode(case) + b"\n" for case in found))
    return len(found)
