"""Finding what tells who somebody is: pure functions, no file and no key.

Read `find.py` (what a text holds), `numbers.py` (cards and ids by their checksums), `names.py`
(people), `placeholders.py` (how what was found is written), and `extractor.py` (models that work
on masked text). The mapping back and its key: `runtime/masking.py`.
"""

from reverie.models.masking.extractor import MaskedDecider, MaskedExtractor
from reverie.models.masking.find import Found, find
from reverie.models.masking.names import Known
from reverie.models.masking.placeholders import KINDS, PLACEHOLDER

__all__ = ["KINDS", "PLACEHOLDER", "Found", "Known", "MaskedDecider", "MaskedExtractor", "find"]
