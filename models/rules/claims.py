"""What a statement claims: a subject, a predicate from a closed list, and an object.

Extraction writes claims into memories; decisions read them back out of plain texts with the same
parser, so that a memory from any source can be compared.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

import msgspec

from reverie.memory_graph.nodes import MemoryKind
from reverie.models.rules.chinese_rules import KIN as CHINESE_KIN
from reverie.models.rules.text import fold, key_words, remembered
from reverie.models.rules.vocab import KIN

Status: TypeAlias = Literal["holds", "ended"]
USER_LABELS = ("User", "用户")


class Predicate(NamedTuple):
    """How a predicate behaves.

    `functional`: a subject has one object at a time. `group`: predicates that compare with each
    other (eats, drinks and likes are all about consuming). `tail_type`: one of `ENTITY_TYPES` for
    the object's head words, or None where the object is no entity.
    """

    functional: bool = False
    kind: MemoryKind = "fact"
    tail_type: str | None = "thing"
    group: str | None = None


_FACT = Predicate()
_ATTRIBUTE = Predicate(functional=True, tail_type=None)
PREDICATES: dict[str, Predicate] = {
    "name": Predicate(functional=True, tail_type="person"),
    "age": _ATTRIBUTE,
    "birthday": _ATTRIBUTE,
    "email": _ATTRIBUTE,
    "phone": _ATTRIBUTE,
    "address": _ATTRIBUTE,
    "attribute": _ATTRIBUTE,  # any other "X's Y is Z"; the slot names Y
    "lives_in": Predicate(functional=True, tail_type="place"),
    "born_in": Predicate(tail_type="place"),
    "works_at": Predicate(functional=True, tail_type="organization"),
    "works_as": Predicate(functional=True, tail_type="concept"),
    "works_in": Predicate(tail_type="place"),
    "teaches": Predicate(tail_type="concept"),
    "studies_at": Predicate(functional=True, tail_type="organization"),
    "studied_at": Predicate(tail_type="organization"),
    "studies": Predicate(tail_type="concept"),
    "studied": Predicate(tail_type="concept"),
    "likes": Predicate(kind="preference", tail_type="concept", group="taste"),
    "eats": Predicate(kind="preference", tail_type="food", group="taste"),
    "drinks": Predicate(kind="preference", tail_type="food", group="taste"),
    "smokes": Predicate(tail_type=None, group="taste"),
    "prefers": Predicate(kind="preference", tail_type="concept", group="taste"),
    "favourite": Predicate(functional=True, kind="preference", tail_type="concept"),
    "wants": Predicate(kind="preference", tail_type=None),
    "diet": Predicate(functional=True, kind="preference", tail_type="concept"),
    "allergic_to": Predicate(tail_type="food"),
    "has_condition": Predicate(tail_type="concept"),
    "partner": Predicate(functional=True, tail_type="person"),
    "manager": Predicate(functional=True, tail_type="person"),
    "kin": Predicate(tail_type="person"),  # the slot names which: "user|sister"
    "has_pet": Predicate(tail_type="animal", group="having"),
    "has": Predicate(group="having"),
    "speaks": Predicate(tail_type="concept"),
    "plays": Predicate(tail_type="thing", group="doing"),
    "learning": Predicate(tail_type="concept"),
    "skilled_in": Predicate(tail_type="concept"),
    "does": Predicate(kind="preference", tail_type=None, group="doing"),  # a habit
    "training_for": Predicate(kind="event", tail_type="event", group="plan"),
    "plans": Predicate(kind="event", tail_type=None, group="plan"),
    "event": Predicate(kind="event", tail_type=None, group="plan"),
    "goal": Predicate(functional=True, tail_type=None),
    "needs": _FACT,
    "gave": Predicate(kind="event"),
    "found": Predicate(kind="event"),
    "met": Predicate(kind="event", tail_type="person"),
    "visited": Predicate(kind="event", tail_type="place"),
    "took_part": Predicate(kind="event", tail_type="event"),
    "stole": Predicate(kind="event"),
    "killed": Predicate(kind="event", tail_type="person"),
    "saved": Predicate(kind="event", tail_type="person"),
    "betrayed": Predicate(kind="event", tail_type="person"),
    "state": Predicate(tail_type=None),
    "uses": Predicate(group="having"),
    "retracted": Predicate(tail_type=None),
}
KIN_PREDICATES = (
    "mother", "father", "sister", "brother", "sibling", "daughter", "son", "child", "parent",
    "grandparent", "grandchild", "aunt", "uncle", "cousin", "niece", "nephew", "friend",
    "roommate", "classmate", "colleague", "neighbour", "teacher", "doctor", "relative",
)  # fmt: skip
# What somebody does, as `deeds.py` writes it: beside the others, and never one at a time.
DEEDS = frozenset(
    """accept adopt attack attend avoid bake betray book borrow break bring build burn buy call
    carry catch celebrate choose collect cook craft create cure defeat defend deliver
    destroy discover distrust donate drink drive eat escape explore fear feed fight find fix
    fly follow forge free get give go grow guard hand harvest hate have heal help hide hire
    hunt inherit join keep kill knit know launch lead learn leave lend like lose love make
    marry meet miss move name need open order owe own paint plant play prefer promise
    propose protect pull quit raise read repair replace rescue return ride rule run save see
    seek sell send serve sign start steal stop study support swap swear switch take teach
    trade train trust turn upgrade use visit volunteer warn watch wear win work worship
    write""".split(),
)
RELATION_PREDICATES = (
    DEEDS | frozenset(PREDICATES) | frozenset(KIN_PREDICATES) | {"dislikes", "avoids", "relative"}
)


class Claim(msgspec.Struct, frozen=True):
    """One statement, parsed. `text` is what to keep; `detail` refines the predicate in the slot
    (which favourite, which relative); `extra` is a name that the object has (a pet's)."""

    subject: str
    predicate: str
    object: str
    text: str
    polarity: int = 1
    ended: bool = False
    detail: str = ""
    extra: str = ""
    former: str = ""  # the value that the statement itself says is over: "from Rome", "from tea"
    past: bool = False
    future: bool = False
    changed: bool = False  # begins with the statement: "moved to", "adopted", "started"
    explicit: bool = True  # False where only a loose pattern matched
    tail_type: str | None = None  # overrides the predicate's

    @property
    def about(self) -> Predicate:
        """The predicate's behaviour; the detail of kin decides for itself."""
        return PREDICATES[self.predicate]

    @property
    def functional(self) -> bool:
        """Whether another object of the same slot replaces this one."""
        if self.predicate == "kin":
            return self.detail in {"mother", "father"}
        return self.about.functional

    @property
    def owner(self) -> str:
        """The subject as it stands in a slot."""
        return slot_subject(self.subject)

    @property
    def slot(self) -> str:
        """`"<subject>|<predicate>"`, casefolded; texts of both languages give the same slot."""
        name = self.detail if self.predicate in {"kin", "attribute"} and self.detail else ""
        if self.predicate == "favourite":
            name = f"favourite_{self.detail}" if self.detail else "favourite"
        return f"{self.owner}|{(name or self.predicate).replace(' ', '_')}"

    @property
    def relation(self) -> str:
        """The predicate of the triple, one of `RELATION_PREDICATES`."""
        if self.predicate == "kin":
            return self.detail if self.detail in KIN_PREDICATES else "relative"
        return self.predicate

    @property
    def key(self) -> frozenset[str]:
        """What the object is about, for comparing with another claim's."""
        return key_words(self.object)


@remembered
def slot_subject(subject: str) -> str:
    """Return a subject as slots write it; the owner of the graph is "user" in every language."""
    folded = fold(subject)
    if folded.startswith(USER_LABELS[1]):
        rest = folded[2:].lstrip("的")
        folded = f"user's {rest}" if rest else "user"
    owner, apostrophe, noun = folded.rpartition("'s ")
    predicate, detail = KIN.get(noun) or CHINESE_KIN.get(noun) or ("", noun)
    return f"{owner}{apostrophe}{detail or predicate}".removeprefix("the ")
