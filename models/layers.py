"""Extractors in layers: rules, the salient sentence, and a language model where there is one.

Each layer is an `Extractor` of its own. Together they keep each statement once: atomic facts with a
slot from the rules, typed facts of the model, and every sentence that those do not keep in full.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from reverie.memory_graph.drafts import EntityDraft, MemoryDraft, RelationDraft
from reverie.memory_graph.text import terms
from reverie.models.protocol import Extraction, Extractor, Turn
from reverie.models.recalled import split_summary
from reverie.models.rules import RulesExtractor
from reverie.models.rules.claims import USER_LABELS
from reverie.models.rules.names import merged
from reverie.models.rules.text import fold, is_chinese, key_words
from reverie.models.salient import SalientExtractor, speaker_label
from reverie.models.salient.answers import answer_of, completed
from reverie.models.salient.english import is_weighty

RULES_TAG, MODEL_TAG = "rules", "model"
# Predicates that take any number of objects beside each other.
_OPEN = frozenset("state does has needs wants learning uses gave found met visited plays".split())
_CONNECTIVES = key_words(
    "but so because since then while although though please and yet "
    "really super totally definitely truly absolutely literally actually basically honestly"
) | frozenset("但是而且所以因为然后做了")
_VAGUE = frozenset({"has"})  # a triple that "sold" and "adopted" say more than
FIRM = 0.8  # confidence from which a draft of the rules rests on a pattern that knows its predicate
MAX_BEFORE = 3  # turns back that a sentence may take its "it" from
MAX_MEMORIES = 40  # of one turn, all layers together


class LayeredExtractor:
    """Runs the layers and merges what they keep; each draft says by a tag which layer made it.

    - A sentence that the rules or the model keep in full, word for word, is not kept again.
    - What the rules only guess (no known predicate) is left to the sentence that holds it.
    - A draft of the model that says what another layer's draft says is left out.
    - A short answer ("Lisbon.") is read with its question by the rules and the salient sentence
      alike; the model sees the turns as they are.

    Args:
        model: a further `Extractor`, asked for all turns in one call; None for none. Errors that
            it raises are raised here: the caller decides whether the turns are tried again.
        rules: whether to run the rules.
        salient: whether to keep salient sentences.
    """

    def __init__(
        self, model: Extractor | None = None, *, rules: bool = True, salient: bool = True
    ) -> None:
        self._model = model
        self._rules = RulesExtractor() if rules else None
        self._salient = SalientExtractor() if salient else None

    def extract(self, turns: Sequence[Turn], history: Sequence[Turn]) -> list[Extraction]:
        """Return one `Extraction` per turn, in order.

        Args:
            turns: the new turns, oldest first.
            history: the turns before them, oldest first; the running summary, if it is the first,
                is for the model alone.
        """
        modelled: list[Extraction] | list[None] = [None] * len(turns)
        if self._model is not None and turns:
            modelled = self._model.extract(turns, history)
        _, before = split_summary(history)
        found = []
        for turn, more in zip(turns, modelled, strict=True):
            found.append(self._one(turn, before, more))
            before.append(turn)
        return found

    def _one(self, turn: Turn, before: Sequence[Turn], more: Extraction | None) -> Extraction:
        answer = answer_of(turn, before)
        entities: list[EntityDraft] = []
        ruled: list[MemoryDraft] = []
        sentences: list[MemoryDraft] = []
        if self._rules is not None:
            (found,) = self._rules.extract([turn], before)
            ruled, entities = list(found.memories), list(found.entities)
            if answer is not None and answer.statement:
                known = {draft.text for draft in ruled}
                (found,) = self._rules.extract([completed(turn, answer)], before)
                ruled = [
                    draft if draft.text in known else _also_from(draft, answer.question_id)
                    for draft in found.memories
                ]
                entities += found.entities
        if self._salient is not None:
            kept = self._salient.extract_one(turn, before, answer)
            sentences = list(kept.memories)
            entities += kept.entities
        modelled: list[MemoryDraft] = []
        if more is not None:
            modelled = list(more.memories)
            entities += more.entities
        merger = _Merger(speaker_label(turn) or USER_LABELS[0], weighs=self._salient is not None)
        memories = merger.merged(ruled, modelled, sentences)
        used = {name for draft in memories for name in draft.sources}
        leant_on = [t.text for t in before[-MAX_BEFORE:] if t.id in used]
        source = "\n".join([turn.text, turn.speaker, *leant_on, answer.question if answer else ""])
        return Extraction(turn.id, tuple(memories[:MAX_MEMORIES]), merged(entities, source))


class _Merger:
    """Merges the drafts of one turn, whose speaker is called `label` in them.

    With `weighs`, guesses of the rules need as much content as sentences that are kept.
    """

    def __init__(self, label: str, *, weighs: bool) -> None:
        self._label = re.compile(rf"(?:{re.escape(label)}|{'|'.join(USER_LABELS)})(?:'s)?")
        self._name = label
        self._weighs = weighs

    def merged(
        self, ruled: list[MemoryDraft], modelled: list[MemoryDraft], sentences: list[MemoryDraft]
    ) -> list[MemoryDraft]:
        """Return each statement once: firm ones first, so that they decide about old memories."""
        firm = [d for d in ruled if d.confidence >= FIRM or d.pinned]
        loose = [d for d in ruled if not (d.confidence >= FIRM or d.pinned)]
        fresh = [d for d in modelled if not self._said(d, firm)]
        pinned = {fold(d.text) for d in firm if d.pinned}
        sentences = [d for d in sentences if not (d.pinned and fold(d.text) in pinned)]
        # For what happened, is planned, or has any number of objects, the whole sentence stands.
        atomic: list[MemoryDraft] = []
        for draft in firm:
            place = self._place(draft, sentences) if _replaces_nothing(draft) else None
            if place is None:
                atomic.append(draft)
            else:
                sentences[place] = _with(sentences[place], draft)
        covered = self._all_words([*atomic, *fresh])
        left_over = []
        for sentence in sentences:
            rest = self._rest(sentence, covered)
            if rest is not None:
                left_over.append(rest)
            elif sentence.relations and atomic:
                self._hand_over(sentence, atomic)
        sentences = left_over
        said = self._all_words(sentences)
        left = [d for d in loose if not self._words(d.text) <= said and self._weighty(d)]
        return [
            *(_tagged(d, RULES_TAG) for d in atomic),
            *(_tagged(d, MODEL_TAG) for d in fresh),
            *(_tagged(d, RULES_TAG) for d in left),
            *sentences,
        ]

    def _words(self, text: str) -> frozenset[str]:
        """Return what a text says as words to compare: no speaker, no connectives."""
        return key_words(self._label.sub(" ", text)) - _CONNECTIVES

    def _rest(self, sentence: MemoryDraft, covered: frozenset[str]) -> MemoryDraft | None:
        """Return a sentence without the clauses about the speaker that others keep in full."""
        clauses = re.split(rf"[,;，；]\s*(?={re.escape(self._name)}\b)", sentence.text)
        kept = [clause for clause in clauses if not self._words(clause) <= covered]
        if len(kept) == len(clauses):
            return sentence
        return msgspec.structs.replace(sentence, text=", ".join(kept)) if kept else None

    def _hand_over(self, sentence: MemoryDraft, atomic: list[MemoryDraft]) -> None:
        """Give the triples of a sentence that is not kept to the draft that says most of it."""
        words = self._words(sentence.text)
        place = max(range(len(atomic)), key=lambda i: len(words & self._words(atomic[i].text)))
        heir = atomic[place]
        if heir.polarity > 0:
            relations = _both(sentence.relations, heir.relations)
            atomic[place] = msgspec.structs.replace(heir, relations=relations)

    def _all_words(self, drafts: list[MemoryDraft]) -> frozenset[str]:
        return frozenset[str]().union(*(self._words(d.text) for d in drafts))

    def _said(self, draft: MemoryDraft, firm: list[MemoryDraft]) -> bool:
        """Whether one firm draft says what a draft of the model says."""
        words = self._words(draft.text)
        return any(words <= self._words(d.text) and _stands_alike(draft, d) for d in firm)

    def _place(self, draft: MemoryDraft, sentences: list[MemoryDraft]) -> int | None:
        """Return which sentence holds a draft word for word; None where the rules rewrote it."""
        bare = fold(self._label.sub(" ", draft.text))
        for place, sentence in enumerate(sentences):
            if bare in fold(self._label.sub(" ", sentence.text)) and not sentence.pinned:
                return place
        return None

    def _weighty(self, draft: MemoryDraft) -> bool:
        """Whether a guess of the rules has the content of a sentence that is kept."""
        if not self._weighs or is_chinese(draft.text):
            return True
        return is_weighty(draft.text, frozenset(terms(self._name)))


def _with(sentence: MemoryDraft, claim: MemoryDraft) -> MemoryDraft:
    """Return a sentence that carries what a claim in it knows: slot, time, entities, triples."""
    names = {entity.name for entity in sentence.entities}
    return msgspec.structs.replace(
        sentence,
        kind=claim.kind,
        slot=sentence.slot or claim.slot,
        importance=max(sentence.importance, claim.importance),
        valid_from=sentence.valid_from if claim.valid_from is None else claim.valid_from,
        valid_to=sentence.valid_to if claim.valid_to is None else claim.valid_to,
        entities=(*sentence.entities, *(e for e in claim.entities if e.name not in names)),
        relations=_both(sentence.relations, claim.relations),
    )


def _both(
    loose: tuple[RelationDraft, ...], firm: tuple[RelationDraft, ...]
) -> tuple[RelationDraft, ...]:
    """Return the triples of a sentence and of a claim in it; of one pair what the claim says."""
    pairs = {(r.head, r.tail) for r in firm if r.predicate not in _VAGUE}
    return (*(r for r in loose if (r.head, r.tail) not in pairs), *firm)


def _replaces_nothing(draft: MemoryDraft) -> bool:
    """Whether no later statement takes the place of a draft as it does of a home or a taste."""
    predicate = (draft.slot or "").rpartition("|")[2]
    loose = draft.kind == "event" or predicate in _OPEN
    return loose and not draft.pinned and draft.polarity > 0


def _also_from(draft: MemoryDraft, turn_id: str) -> MemoryDraft:
    return msgspec.structs.replace(draft, sources=(*draft.sources, turn_id))


def _tagged(draft: MemoryDraft, tag: str) -> MemoryDraft:
    if tag in draft.tags:
        return draft
    return msgspec.structs.replace(draft, tags=(*draft.tags, tag))


def _stands_alike(a: MemoryDraft, b: MemoryDraft) -> bool:
    """Whether neither denies what the other says."""
    return a.polarity == b.polarity and (a.slot is None or b.slot is None or a.slot == b.slot)
