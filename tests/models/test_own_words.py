"""What is the speaker's own: not text to work on, quoted riddles or lines of a story."""

from __future__ import annotations

import pytest

from reverie.models.layers import LayeredExtractor
from reverie.models.protocol import Turn
from reverie.models.rules.own_words import own_words

SAID_AT = 1_718_100_000.0

HANDED_OVER = [
    'Which film is this from? "I am Vigdis and I have guarded this gate for forty years."',
    'who said "I think, therefore I am"?',
    'Can you proofread this? "Dear Ms Hollis, I have lived in Truro for ten years and own a kiln."',
    'Translate this into German please: "My name is Petra and I have two sons in Lille."',
    "Paraphrase this: I was born in Cork and raised by my aunt.",
    "Make this sound more polite: hey Sam, I can't come to Leeds on Friday",
    "Write me a story where the narrator says: I grew up in Salem. My mother was a witch.",
    'Is "whom" right in "My sister, whom I adore, lives in Genoa"?',
]
OWN = [
    "I live in Hove. Can you rewrite my letter?",
    'My favourite line is "I am vast, I contain multitudes".',
    'I read "The Catcher in the Rye" in Porto, have you?',
    "Make a note: I moved to Hove.",
    "Write an email to Tom. I was ill on Monday.",
    'I told her "I quit" and left Acme.',
]  # fmt: skip


@pytest.mark.parametrize("text", HANDED_OVER)
def test_what_is_handed_over_makes_no_memory_and_names_nobody(text: str) -> None:
    (found,) = LayeredExtractor().extract([Turn("t", "user", "user", text, SAID_AT)], [])
    assert found.memories == ()
    assert found.entities == ()


@pytest.mark.parametrize("text", OWN)
def test_what_is_said_beside_it_stays(text: str) -> None:
    kept = own_words(text)
    assert any(word in kept for word in ("Hove", "multitudes", "Catcher", "ill on Monday", "Acme"))
    (found,) = LayeredExtractor().extract([Turn("t", "user", "user", text, SAID_AT)], [])
    assert found.memories


def test_a_riddle_about_oneself_is_a_statement() -> None:
    assert (
        own_words("Guess who adopted two ferrets? Me! They bite.")
        == "I adopted two ferrets. They bite."
    )
    assert own_words("Guess who's moving to Kyoto! Us!") == "I'm moving to Kyoto. "
