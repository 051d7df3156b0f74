"""Whether the words that a model found for a deed may stand for it in people's memories.

Who was there will remember these words, and nothing else of the deed. So they must say the deed
that was chosen, of those who did it, and nothing that a witness could not have seen: no name of
somebody who is not there, and nothing of what the one who acts happens to know.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from reverie.models.rules.text import is_chinese, key_words
from reverie.models.summarise import grounded
from reverie.town.ledger import Ledger
from reverie.town.scene import Option, Scene
from reverie.town.setting import PLAYER, Language, Setting, said

MIN_CHARS = {"en": 12, "zh": 6}
MAX_CHARS = 160
MAX_SENTENCES = 2
SHOWN = 8  # of those who are there, whom a model is told of and may name
_LANGUAGES: tuple[Language, ...] = ("en", "zh")
_WORD = re.compile(r"[^\W\d_]+")


def worded(setting: Setting, scene: Scene, option: Option, words: str) -> str:
    """Return words of a model as a sentence that may stand for a deed, or "" where they may not."""
    claim = option.claim
    if claim is None or option.is_told:  # what is told must be told on, in any language
        return ""
    text = " ".join(words.split())
    is_zh = scene.language == "zh"
    if not MIN_CHARS[scene.language] <= len(text) <= MAX_CHARS or is_chinese(text) != is_zh:
        return ""
    if text[-1].isalnum():
        text += "。" if is_zh else "."
    actors = [setting.called(name, scene.language) for name in (scene.who, scene.other)]
    plain = said(setting, claim, scene.language)
    if not all(name in text for name in actors) or _names_others(setting, scene, text):
        return ""
    company = [setting.called(name, scene.language) for name in scene.there[:SHOWN]]
    kept, dropped = grounded(text, [plain, *company])
    if dropped or not 0 < len(kept) <= MAX_SENTENCES:
        return ""
    deed = key_words(plain) - frozenset[str]().union(*map(key_words, company + actors))
    known = "" if scene.memory is None else said(setting, scene.memory, scene.language)
    found = key_words(text)
    return text if found & deed and not found & (key_words(known) - key_words(plain)) else ""


def is_new(ledger: Ledger, text: str) -> bool:
    """Say whether a text is no part of another that somebody may remember, nor holds one: what one
    knows is told from what one does not by its words."""
    others = [happening.text for happening in ledger.happenings.values()]
    others += [telling.text for telling in ledger.tellings]
    bare = text.rstrip(".。")
    return not any(bare in other or other.rstrip(".。") in bare for other in others)


def _names_others(setting: Setting, scene: Scene, text: str) -> bool:
    """Say whether a text names somebody who is not there, in full or in part; or the player, who is
    in no scene."""
    there = set(scene.there)
    allowed = _parts([setting.called(n, lang) for n in there for lang in _LANGUAGES])
    absent = [name for name in setting.people if name not in there]
    strange = _parts([called for name in absent for called in (name, setting.people[name].zh)])
    strange |= _parts([setting.called(PLAYER, "en").rpartition(" ")[2]])
    found = set(_WORD.findall(text))
    chinese = [setting.people[name].zh for name in absent if setting.people[name].zh]
    return bool(found & (strange - allowed)) or any(
        name in text for name in [*chinese, setting.called(PLAYER, "zh")]
    )


def _parts(names: Iterable[str]) -> set[str]:
    """Return the words of names."""
    return {word for name in names for word in _WORD.findall(name)}
