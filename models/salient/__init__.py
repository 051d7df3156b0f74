"""The salient sentence: every sentence that says something, kept in the third person.

`SalientExtractor` implements `Extractor` of `models/protocol.py`. Read `extract.py` (a turn),
`english.py` and `chinese.py` (what is worth keeping), `voice.py` (the third person) and
`answers.py` (short answers).
"""

from reverie.models.salient.extract import TAG, SalientExtractor, clear_caches, speaker_label

__all__ = ["TAG", "SalientExtractor", "clear_caches", "speaker_label"]
