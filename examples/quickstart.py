"""The shortest tour: say something, say that it changed, ask.

    python examples/quickstart.py [DATA_FOLDER]

Without a pulled model a stand-in is used, which knows words, not meaning.
"""

import sys

import reverie

with reverie.open(sys.argv[1] if len(sys.argv) > 1 else "quickstart-data") as rt:
    ana = rt.user("ana")
    ana.add(["I live in Berlin.", "I love coffee, but only before noon."], wait=True)
    ana.add("I live in Oslo now, I moved last week.", wait=True)
    hits = ana.search("Where does she live?", types="memory", limit=3)
    for hit in hits:
        print(f"{hit.score:.2f}  {hit.text}  ({'; '.join(hit.reasons)})")
    print("history:", [f"{item.text} [{item.status}]" for item in ana.history(hits[0].id)])
    print(ana.context("Where does she live?", budget_tokens=80).text)
