"""Pairs of statements and how the second stands to the first, made from the templates of kinds.

Each pair has a shape, which says why its label holds: "paraphrase", "another" (value of a subject
that may have many), "end_other" (something else of the kind is over), and so on.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple, TypeAlias

from reverie.models.training.lexicon import (
    TRAINED,
    Kind,
    Language,
    Split,
    Value,
    fillers,
    kinds_of,
    values,
)

Label: TypeAlias = Literal["same", "replaced", "ended", "unrelated"]
LABELS: tuple[Label, ...] = ("same", "replaced", "ended", "unrelated")

# How often each label is made; what is unrelated comes in the most ways.
_LABEL_WEIGHTS: dict[Label, float] = {
    "same": 0.22,
    "replaced": 0.22,
    "ended": 0.18,
    "unrelated": 0.38,
}
_TRIES = 200


class Pair(NamedTuple):
    """Two statements. `shape` says why `label` holds."""

    old: str
    new: str
    label: Label
    kind: str
    shape: str
    language: Language


class Scene:
    """One draw of subject, key and values for a kind: what its templates are filled with."""

    def __init__(self, kind: Kind, language: Language, split: Split, rng: random.Random) -> None:
        self.kind, self.language, self.split, self.rng = kind, language, split, rng
        self.subject = subject(kind, language, split, rng)
        names = [self.subject]
        key, listed = rng.choice(kind.keyed) if kind.keyed else ("", kind.values)
        self.key: Value = tuple(key.split("|"))
        found = values(language, listed, split)
        self.values = rng.sample(found, min(3, len(found)))
        while len(self.values) < 3:  # noqa: PLR2004 - this value, another, a third
            self.values.append(self.values[-1])
        other = [entry for entry in kind.keyed if entry[0] != key]
        self.other_key: Value = tuple(rng.choice(other)[0].split("|")) if other else ()
        for _ in range(_TRIES):
            self.other_subject = subject(kind, language, split, rng)
            if self.other_subject not in names:
                break

    def say(
        self,
        part: str,
        value: int = 0,
        other: int = 1,
        *,
        other_key: bool = False,
        other_subject: bool = False,
        needs: str = "",
        not_template: str = "",
    ) -> tuple[str, str]:
        """Return a statement and its template.

        Args:
            part: "state", "change", "end", "against", "swap" or "near".
            value: index of the value for {v}.
            other: index of the value for {o}.
            other_key: take another key.
            other_subject: take another subject.
            needs: a field that the template must have, where one does.
            not_template: a template to avoid, where there are others.
        """
        templates = [t for t in getattr(self.kind, part) if t != not_template]
        templates = (
            [t for t in templates if needs in t] or templates or list(getattr(self.kind, part))
        )
        template = self.rng.choice(templates)
        text = template
        if "{s}" in text:
            text = text.replace("{s}", self.other_subject if other_subject else self.subject)
        key = self.other_key if other_key else self.key
        text = text.replace("{k}", self._way(key)) if "{k}" in text else text
        text = text.replace("{v}", self._way(self.values[value])).replace(
            "{o}", self._way(self.values[other])
        )
        return _finish(text, part, self.language, self.rng, self.split), template

    def _way(self, value: Value) -> str:
        usual = self.rng.random() < 0.6  # noqa: PLR2004 - the usual way more often
        return value[0] if usual or not value else self.rng.choice(value)


def subject(kind: Kind, language: Language, split: Split, rng: random.Random) -> str:
    """Draw whom a statement of `kind` is about, as memories name them."""
    zh = language == "zh"
    roll = rng.random()
    if kind.who == "person":
        if roll < 0.62:  # noqa: PLR2004 - most memories are about the user
            return "用户" if zh else "User"
        if roll < 0.8:  # noqa: PLR2004
            return rng.choice(values(language, "first", split))[0]
        if roll < 0.9:  # noqa: PLR2004
            return rng.choice(values(language, "game", split))[0]
        if zh:
            return "用户的" + rng.choice("姐姐 弟弟 同事 朋友 室友 表哥 邻居".split())
        return "User's " + rng.choice("sister brother colleague friend roommate cousin".split())
    if kind.who == "game":
        if roll < 0.15:  # noqa: PLR2004
            return "用户" if zh else "User"
        if roll < 0.3:  # noqa: PLR2004
            return "玩家" if zh else rng.choice(("Player", "The player"))
        return rng.choice(values(language, "game", split))[0]
    return rng.choice(values(language, kind.who, split))[0]


_AFTER_EN: dict[str, tuple[str, ...]] = {
    "state": ("these days", "at the moment", "as far as anyone knows", "and is proud of it"),
    "change": ("last week", "recently", "this year", "a few days ago", "after a long wait"),
    "end": ("last month", "for good", "after an argument", "because of the cost", "this spring"),
    "near": ("last summer", "years ago", "it seems"),
}
_BEFORE_ZH: dict[str, tuple[str, ...]] = {
    "state": ("据说", "目前"),
    "change": ("上个月", "最近", "今年", "前几天"),
    "end": ("最近", "上周", "今年春天"),
    "near": ("听说", "去年"),
}
# More of them, for training alone: other splits stay as they are.
_MORE_AFTER_EN: dict[str, tuple[str, ...]] = {
    "state": ("by all accounts", "and has for years", "in fact", "as it happens", "as before"),
    "change": ("in the end", "on Monday", "after some thought", "last night", "two weeks ago"),
    "end": ("yesterday", "in the end", "to everyone's relief", "without a word", "as of May"),
    "near": ("once", "the other day", "on a rainy day", "as people say"),
}
_MORE_BEFORE_ZH: dict[str, tuple[str, ...]] = {
    "state": ("其实", "大家都知道", "这几年", "一直以来"),
    "change": ("上周", "后来", "昨天", "想了很久，"),
    "end": ("昨天", "后来", "从这个月起", "终于"),
    "near": ("有一次", "前几天", "据说"),
}
# What goes before or after a statement and bears on nothing: why, when, and who says so.
_ASIDES_EN: dict[str, tuple[str, ...]] = {
    "state": (
        "according to the register", "judging by the notes", "to this day", "since the flood",
        "since the last visit", "as the neighbours say", "because of the location",
        "for all one can see", "ever since the festival", "as everyone in town knows",
    ),
    "change": (
        "after the rescue at the mill", "on the advice of a friend", "following the meeting",
        "because of the noise", "at the family's request", "just before the storm",
        "without telling anybody", "after the accident", "when the season began",
        "out of necessity", "as the letter says", "once the money had arrived",
    ),
    "end": (
        "after the fire", "on short notice", "before the holidays", "as the letter says",
        "when the season closed", "following the meeting", "for lack of time", "after the accident",
        "out of necessity", "on the doctor's advice",
    ),
    "near": (
        "according to the register", "after the accident", "before the storm", "as the letter says",
        "during the festival", "because of the noise",
    ),
}  # fmt: skip
_ASIDES_ZH: dict[str, tuple[str, ...]] = {
    "state": (
        "登记簿上写着，", "听邻居说，", "自从发大水以后，", "看样子", "说起来，", "镇上的人都说，",
    ),
    "change": (
        "经朋友推荐，", "那次事故以后，", "开完会，", "因为太吵，", "应家里人的要求，", "过完年，",
        "信上说，", "磨坊那件事之后，", "没跟任何人说，", "前阵子",
    ),
    "end": (
        "那场大火之后，", "信上说，", "因为没时间，", "开完会，", "过节前，", "听了医生的话，",
        "前阵子",
    ),
    "near": ("登记簿上写着，", "信上说，", "庙会的时候，", "那次事故以后，", "说起来，"),
}  # fmt: skip
_ADDED = 0.16  # share of statements with a few words more
_ASIDE = 0.08  # in training, share of the others that get an aside
_STOPPED = 0.12  # share of statements that end in a full stop


def _finish(text: str, part: str, language: Language, rng: random.Random, split: Split) -> str:
    """Add what does not matter: a few words, a full stop."""
    added = rng.random() < _ADDED
    stopped = rng.random() < _STOPPED
    more = split in TRAINED
    aside = more and not added and part in _ASIDES_EN and rng.random() < _ASIDE
    if language == "zh":
        if aside:
            text = rng.choice(_ASIDES_ZH[part]) + text
        if added and part in _BEFORE_ZH:
            words = _BEFORE_ZH[part] + (_MORE_BEFORE_ZH[part] if more else ())
            text = rng.choice(words) + text
        return text + "。" if stopped else text
    if added and part in _AFTER_EN and not text.endswith((" now", " any more", "instead")):
        words = _AFTER_EN[part] + (_MORE_AFTER_EN[part] if more else ())
        text = f"{text} {rng.choice(words)}"
    if aside:
        text = _with_aside(text, rng.choice(_ASIDES_EN[part]), rng)
    text = text[0].upper() + text[1:]
    return text + "." if stopped else text


def _with_aside(text: str, aside: str, rng: random.Random) -> str:
    """Put an English aside before or after a statement."""
    if text.startswith(("User", "The ")) and rng.random() < 0.4:  # noqa: PLR2004 - else after it
        return f"{aside}, {'the ' + text[4:] if text.startswith('The ') else text}"
    return (
        f"{text}, {aside}" if aside.startswith(("as ", "judging", "for all")) else f"{text} {aside}"
    )


Made: TypeAlias = tuple[str, str] | None
Shape: TypeAlias = Callable[[Scene], Made]


def _paraphrase(s: Scene) -> Made:
    old, template = s.say("state")
    return old, s.say("state", not_template=template)[0]


def _begun(s: Scene) -> Made:
    if not s.kind.change or not s.kind.state:
        return None
    old, new = s.say("change")[0], s.say("state")[0]
    return (old, new) if s.rng.random() < 0.6 else (new, old)  # noqa: PLR2004


def _end_again(s: Scene) -> Made:
    if len(s.kind.end) < 2:  # noqa: PLR2004 - two ways to say it
        return None
    old, template = s.say("end", needs="{v}")
    return old, s.say("end", needs="{v}", not_template=template)[0]


def _against_again(s: Scene) -> Made:
    if len(s.kind.against) < 2:  # noqa: PLR2004 - two ways to say it
        return None
    old, template = s.say("against")
    return old, s.say("against", not_template=template)[0]


def _other_value(s: Scene) -> Made:
    if not s.kind.one or s.values[0] == s.values[1]:
        return None
    return s.say("state")[0], s.say("state", 1, 2)[0]


def _changed(s: Scene) -> Made:
    if not s.kind.one or not s.kind.change or s.values[0] == s.values[1]:
        return None
    return s.say(_known(s))[0], s.say("change", 1, 0)[0]


def _swapped(s: Scene) -> Made:
    if not s.kind.swap:
        return None
    return s.say(_known(s))[0], s.say("swap", 1, 0)[0]


def _reversed(s: Scene) -> Made:
    if not s.kind.against:
        return None
    old, new = s.say("state")[0], s.say("against")[0]
    return (old, new) if s.rng.random() < 0.75 else (new, old)  # noqa: PLR2004


def _back(s: Scene) -> Made:
    if not s.kind.end:
        return None
    return s.say("end", needs="{v}")[0], s.say(_known(s))[0]


def _ended(s: Scene) -> Made:
    return (s.say(_known(s))[0], s.say("end")[0]) if s.kind.end else None


def _another(s: Scene) -> Made:
    if s.kind.one or s.values[0] == s.values[1]:
        return None
    return s.say(_known(s))[0], s.say(_known(s), 1, 2)[0]


def _of_other_subject(s: Scene) -> Made:
    same_value = s.rng.random() < 0.5  # noqa: PLR2004
    parts = [p for p in ("state", "change", "end", "against", "swap") if getattr(s.kind, p)]
    new = s.say(s.rng.choice(parts), 0 if same_value else 1, 2, other_subject=True, needs="{s}")[0]
    return s.say(_known(s), needs="{s}")[0], new


def _of_other_key(s: Scene) -> Made:
    if not s.other_key:
        return None
    listed = {k.split("|")[0]: v for k, v in s.kind.keyed}
    same_list = listed[s.key[0]] == listed[s.other_key[0]]
    if not same_list:
        pool = values(s.language, listed[s.other_key[0]], s.split)
        s.values[1], s.values[2] = s.rng.sample(pool, 2)
    value = 0 if same_list and s.rng.random() < 0.4 else 1  # noqa: PLR2004
    parts = [p for p in ("state", "change", "end") if getattr(s.kind, p)]
    return s.say("state")[0], s.say(s.rng.choice(parts), value, 2, other_key=True, needs="{k}")[0]


def _end_other(s: Scene) -> Made:
    if not any("{v}" in t for t in s.kind.end) or s.values[0] == s.values[1]:
        return None
    old, new = s.say(_known(s))[0], s.say("end", 1, 2, needs="{v}")[0]
    return (old, new) if s.rng.random() < 0.7 else (new, old)  # noqa: PLR2004


def _near(s: Scene) -> Made:
    if not s.kind.near:
        return None
    value = s.rng.choice((0, 0, 1))
    old, new = s.say(_known(s))[0], s.say("near", value)[0]
    return (old, new) if s.rng.random() < 0.7 else (new, old)  # noqa: PLR2004


def _swap_other(s: Scene) -> Made:
    if not s.kind.swap or len(set(s.values)) < 3:  # noqa: PLR2004 - three values
        return None
    return s.say("state", 2)[0], s.say("swap", 1, 0)[0]


def _against_other(s: Scene) -> Made:
    if not s.kind.against or s.values[0] == s.values[1]:
        return None
    old, new = s.say("state")[0], s.say("against", 1)[0]
    return (old, new) if s.rng.random() < 0.6 else (new, old)  # noqa: PLR2004


_DENIED: dict[Language, tuple[str, ...]] = {
    "en": ("It is no longer true that {}", "It used to be so, but not any more, that {}"),
    "zh": ("{}，但现在不是这样了", "以前{}，现在不了"),
}


def _deny(s: Scene, value: int) -> str:
    """A statement about one of the values, and that it holds no more."""
    said = s.say("state", value, needs="{v}")[0].rstrip(".。")
    return s.rng.choice(_DENIED[s.language]).format(said)


def _denied(s: Scene) -> Made:
    return (s.say(_known(s))[0], _deny(s, 0)) if s.kind.end else None


def _denied_other(s: Scene) -> Made:
    if not s.kind.end or s.values[0] == s.values[1]:
        return None
    return s.say(_known(s))[0], _deny(s, 1)


def _filler(s: Scene) -> Made:
    text = s.rng.choice(fillers(s.language)).replace("{s}", s.subject)
    old, new = s.say(_known(s))[0], _finish(text, "", s.language, s.rng, s.split)
    return (old, new) if s.rng.random() < 0.5 else (new, old)  # noqa: PLR2004


def _of_other_kind(s: Scene) -> Made:
    for _ in range(_TRIES):
        kind = s.rng.choice(kinds_of(s.language, s.split))
        if kind.state and kind.who == s.kind.who and not related(kind, s.kind):
            break
    else:
        return None
    other = Scene(kind, s.language, s.split, s.rng)
    other.subject = s.subject
    parts = [p for p in ("state", "state", "change", "end") if getattr(kind, p)]
    return s.say(_known(s))[0], other.say(s.rng.choice(parts))[0]


def related(one: Kind, two: Kind) -> bool:
    """Return whether statements of two kinds may bear on each other."""
    return one.name == two.name or (bool(one.group) and one.group == two.group)


def _known(s: Scene) -> str:
    """How a known statement is said: mostly as a state, at times as the change that began it."""
    changed = s.kind.change and s.rng.random() < 0.2  # noqa: PLR2004
    return "change" if changed else "state"


_SHAPES: dict[Label, dict[str, tuple[float, Shape]]] = {
    "same": {
        "paraphrase": (1.3, _paraphrase),
        "begun": (0.5, _begun),
        "end_again": (0.3, _end_again),
        "against_again": (0.3, _against_again),
    },
    "replaced": {
        "other_value": (1.2, _other_value),
        "changed": (1.3, _changed),
        "swapped": (1.0, _swapped),
        "reversed": (1.2, _reversed),
        "back": (0.12, _back),
    },
    "ended": {"ended": (1.0, _ended), "denied": (0.0, _denied)},
    "unrelated": {
        "another": (1.2, _another),
        "other_subject": (1.0, _of_other_subject),
        "other_key": (2.5, _of_other_key),
        "end_other": (1.0, _end_other),
        "near": (1.6, _near),
        "swap_other": (0.3, _swap_other),
        "against_other": (0.5, _against_other),
        "other_kind": (1.2, _of_other_kind),
        "filler": (0.4, _filler),
        "denied_other": (0.0, _denied_other),
    },
}
# In training other weights: more of what is hard, whatever it is about. The other splits keep
# theirs, so that figures can be compared with earlier ones.
_OFTENER = {
    "begun": 0.6,
    "end_again": 0.45,
    "other_value": 1.6,
    "reversed": 0.9,
    "back": 0.3,
    "denied": 0.15,
    "another": 1.7,
    "denied_other": 0.15,
}


def make_pair(
    kind: Kind, label: Label, language: Language, split: Split, rng: random.Random
) -> Pair | None:
    """Return a pair of a kind with a label, or None where the kind has none."""
    if kind.pairs:
        return _step(kind, label, language, split, rng)
    shapes = _SHAPES[label]
    oftener = _OFTENER if split in TRAINED else {}
    names = list(shapes)
    weights = [oftener.get(name, weight) for name, (weight, _) in shapes.items()]
    for _ in range(_TRIES):
        name = rng.choices(names, weights)[0]
        made = shapes[name][1](Scene(kind, language, split, rng))
        if made and _bare(made[0]) != _bare(made[1]):
            return Pair(*made, label, kind.name, name, language)
    return None


def _step(
    kind: Kind, label: Label, language: Language, split: Split, rng: random.Random
) -> Pair | None:
    """A pair of a kind that has whole pairs of templates; only "replaced" and "unrelated"."""
    scene = Scene(kind, language, split, rng)
    first, second = rng.choice(kind.pairs)
    name = rng.choice(scene.values)[0]
    who = scene.subject
    if label == "unrelated":
        who = scene.other_subject
    elif label != "replaced":
        return None
    old = first.replace("{s}", scene.subject).replace("{v}", name)
    new = second.replace("{s}", who).replace("{v}", name)
    shape = "step" if label == "replaced" else "other_subject"
    return Pair(
        _finish(old, "", language, rng, split),
        _finish(new, "", language, rng, split),
        label,
        kind.name,
        shape,
        language,
    )


def _drawn(found: tuple[Kind, ...], rng: random.Random) -> Kind:
    """Draw a kind; those with opposites or steps of their own are few, and come up oftener."""
    return rng.choices(found, [2.5 if kind.against or kind.pairs else 1.0 for kind in found])[0]


def _bare(text: str) -> str:
    return text.rstrip(".。").casefold()


def pairs(split: Split, count: int, *, seed: int, chinese_share: float = 0.33) -> Iterator[Pair]:
    """Yield `count` different pairs of a split; the same arguments give the same pairs."""
    rng = random.Random(f"pairs {split} {seed}")  # noqa: S311 - seeded on purpose
    seen: set[tuple[str, str]] = set()
    labels, weights = list(_LABEL_WEIGHTS), list(_LABEL_WEIGHTS.values())
    while len(seen) < count:
        language: Language = "zh" if rng.random() < chinese_share else "en"
        label = rng.choices(labels, weights)[0]
        kind = _drawn(kinds_of(language, split), rng)
        made = make_pair(kind, label, language, split, rng)
        if made and (made.old, made.new) not in seen:
            seen.add((made.old, made.new))
            yield made
