"""What stands in each file of an export, and what each field means; README.txt is made of it.

A row has exactly the fields that are named here, in this order; a test compares them with what
nodes, relations and relationships hold, so nothing of a user can be left out by oversight.
"""

from __future__ import annotations

_TIME = "seconds since 1970 UTC (or on the clock of a simulated world)"

FIELDS: dict[str, dict[str, str]] = {
    "user.json": {
        "world": "the world (tenant, save game) that the user belongs to",
        "user_id": "the id of the user",
        "exported_at": "when this was written, " + _TIME,
        "created_at": "when the user was first written to",
        "embedder": "the model that made the vectors; null without any",
        "model_spent_at": "when the budget of model calls was first found spent; null if never",
        "reflected": "number of the newest memory that the last reflection has read",
        "foci": "ids of entities about which an insight is still to be made",
        "group": "the name of the group, when this is the memory of a group; else null",
        "members": "of a group: user id -> its stays [since, after, until, upto, history]",
    },
    "profile.json": {"profile": "the limits of what may be kept and cost; null without any"},
    "groups.jsonl": {
        "group": "the name of a group that the user is or was a member of",
        "is_member": "whether it is one now",
    },
    "sessions.jsonl": {
        "id": "id of the session in this export",
        "name": "its name, as the program called it",
        "started_at": "time of its first message, " + _TIME,
        "last_at": "time of its last message",
        "messages": "how many messages it has",
        "last_message": "id of its last message",
    },
    "messages.jsonl": {
        "id": "id of the message in this export",
        "session": "id of its session",
        "session_name": "name of its session",
        "speaker": 'who said it; "user" is the owner of the memory',
        "role": "user, assistant, or another role of a chat",
        "text": "what was said, verbatim",
        "said_at": "when it was said, " + _TIME,
        "recorded_at": "when it was stored",
        "external_id": "the id that the program gave it",
        "metadata": "what the program stored with it",
        "status": "pending, extracted, skipped (nothing was to be extracted) or quarantined",
        "error": "why extraction failed, of a quarantined one; else null",
        "entities": "names of the people, places and things that it mentions",
    },
    "memories.jsonl": {
        "id": "id of the memory in this export",
        "text": "the statement",
        "kind": "fact, preference or event",
        "recorded_at": "when it was learned, " + _TIME,
        "valid_from": "from when on it holds; null is open",
        "valid_to": "until when it holds; null is open",
        "retired_at": "when it stopped being believed",
        "end_learned": "whether valid_to became known only when it was retired",
        "status": "active, superseded, expired, archived or quarantined",
        "retired_why": "why it is not active any more",
        "confidence": "0 to 1",
        "importance": "0 to 1",
        "slot": "what it is about, for finding contradictions",
        "provenance": "witnessed, told (by somebody) or inferred",
        "told_by": "who told it",
        "event": "id of what happened in the world, the same for all who know of it",
        "heard": "who told it on, from the first witness to who told the user",
        "backed": "who else told the same",
        "sentiment": "-1 to 1",
        "ttl_s": "how long it lives, in seconds; null is for ever",
        "pinned": "whether it is kept whatever the limits are",
        "tags": "tags",
        "metadata": "what the program stored with it",
        "last_access": "when it was last recalled",
        "hits": "how often it was recalled",
        "away_at": "when it was put away",
        "faded": "whether it was put away for its weight or a limit",
        "gist": "id of the summary that took it in then",
        "sources": "ids of the messages (or memories) that it derives from",
        "supersedes": "ids of the memories that it replaced: its history",
        "superseded_by": "ids of the memories that replaced it",
        "entities": "names of the people, places and things that it mentions",
        "topics": "names of its topics",
    },
    "summaries.jsonl": {
        "id": "id of the summary in this export",
        "text": "the summary",
        "of": "id of the session, topic, entity or user that it is of",
        "of_name": "its name",
        "recorded_at": "when it was made, " + _TIME,
        "from_at": "begin of what it tells",
        "to_at": "end of what it tells",
        "retired_at": "when a newer one replaced it",
        "covers": "how far it had read",
        "stale": "whether it is to be made anew",
        "gist": "whether it is of memories that have faded",
        "order": "1: a summary; 2 and more: an insight",
        "focus": "of an insight: id of the entity that it is about",
        "sources": "ids of the messages and memories that it derives from",
    },
    "topics.jsonl": {
        "id": "id of the topic in this export",
        "name": "its name",
        "created_at": "when it was made, " + _TIME,
    },
    "entities.jsonl": {
        "id": "id of the entity in this export",
        "name": "name of a person, place or thing",
        "type": "its kind",
        "first_seen": "when it was first mentioned, " + _TIME,
        "last_seen": "when it was last mentioned",
        "aliases": "other names of it",
        "mentions": "how many texts mention it",
    },
    "relations.jsonl": {
        "id": "id of the relation in this export",
        "head": "id of who or what it is said of; u is the user",
        "head_name": "its name",
        "predicate": "what holds between them",
        "tail": "id of the other end",
        "tail_name": "its name",
        "weight": "strength as of `at`; it decays from then on",
        "at": "when it was last confirmed, " + _TIME,
        "recorded_at": "when it was learned",
        "valid_from": "from when on it holds; null is open",
        "valid_to": "until when it holds; null is open",
        "retired_at": "when it stopped being believed",
        "confidence": "0 to 1",
        "source": "id of the memory or message that it came from",
        "end_learned": "whether valid_to became known only when it was retired",
    },
    "relationships.jsonl": {
        "other": "id of the entity that the user stands in a relationship to",
        "other_name": "its name",
        "dimension": "trust, fear, debt or the like",
        "value": "how the user stands to it, as of `at`; it returns to `rest` from then on",
        "at": "when it last moved, " + _TIME,
        "low": "least value; null is unbounded",
        "high": "greatest value; null is unbounded",
        "rest": "the value that it returns to",
        "half_life_s": "seconds in which the distance to `rest` halves; null is never",
        "moves_dropped": "how many older moves are not kept, of all its dimensions",
    },
    "relationship_moves.jsonl": {
        "other": "id of the entity that the user stands in a relationship to",
        "other_name": "its name",
        "at": "when it moved, " + _TIME,
        "dimension": "what moved",
        "by": "by how much",
        "was": "the value before",
        "value": "the value after",
        "rest": "the value that it returns to",
        "half_life_s": "seconds in which the distance to `rest` halves; null is never",
        "reason": "why",
        "source": "id of the memory or message that caused it",
    },
    "links.jsonl": {
        "tail": "id of the node that the link leaves",
        "kind": "as SENT_BY, IN_SESSION, PREVIOUS, CONTAINS_ENTITY, RELATED_TO, DERIVED_FROM",
        "head": "id of the node that it leads to",
        "weight": "strength as of `at`; it decays from then on",
        "at": "when it was last strengthened, " + _TIME,
        "role": "of who takes part in a session",
    },
    "audit.jsonl": {
        "id": "id of a memory that no longer answers; u for a spent budget of model calls",
        "text": "its text",
        "at": "when that happened, " + _TIME,
        "became": "archived, consolidated, expired, quarantined or spent",
        "why": "why",
        "summary": "id of the summary that tells it now",
    },
    "usage.jsonl": {
        "purpose": "what a language model was called for",
        "calls": "how often",
        "failed": "how many of these failed",
        "refused": "how many were not made, for want of budget",
        "prompt_tokens": "tokens that it read",
        "completion_tokens": "tokens that it wrote",
        "seconds": "how long it took",
    },
    "traces.jsonl": {"trace": "a raw part of a search or an extraction, kept for finding faults"},
    "vectors.jsonl": {
        "row": "row of vectors.npy (float32, one row a text)",
        "id": "id of the message, memory or summary that it is of",
    },
}

OPTIONAL = frozenset({"vectors.jsonl"})

ABOUT = """This is everything that reverie keeps of one user, in open formats.

Files that end in .jsonl hold one JSON object a line; those that end in .json hold one. All are
UTF-8. Times are seconds since 1970-01-01 00:00 UTC, unless the world lives by a simulated clock.
Ids (t1, m1, e1 ...) are those of this export; files name each other by them, and "u" is the user.
manifest.json says how many rows each file has, its size, and its SHA-256.

All versions are in it: memories that were replaced, ended or put away have another status than
"active", and name what they replaced. Everything is of one moment, but for usage.jsonl and
traces.jsonl. Vectors (numbers that a model computes of the texts) are only in it when they were
asked for.

Not in it, as it is not this user's: what others remember of the user, and what groups know (each
group has a memory of its own). Save games keep older states of the same data.
"""

MASKS = {
    "no": "Nothing is masked.",
    "masked": (
        "Names, addresses and numbers of people are masked, as they are stored: [PERSON_1] stands "
        "for a name. With the key, an export can show them."
    ),
    "unmasked": (
        "Names, addresses and numbers of people are stored masked, and are shown here as they were "
        "said by this user."
    ),
}


def readme(names: list[str], head: str, mask: str) -> str:
    """Return the text of README.txt for an export with these files."""
    lines = [head, "", ABOUT, MASKS[mask], ""]
    for name in names:
        if name not in FIELDS:
            continue
        lines += [name, *(f"    {field}: {what}" for field, what in FIELDS[name].items()), ""]
    return "\n".join(lines)
