"""Two characters of a game: one saw it, one was told; then the player loads a save.

    python examples/npc_observe.py [DATA_FOLDER]

Time is the game's own: seconds since its first day, moved by the game. No model is needed.
"""

import sys

import reverie

DAY = 86_400.0

clock = reverie.SimulatedClock(start=0.0)
folder = sys.argv[1] if len(sys.argv) > 1 else "npc-data"
with reverie.open(folder, clock=clock, embedder="standin", background=False) as rt:
    mira, tom = rt.user("mira", world="save-1"), rt.user("tom", world="save-1")

    theft = "Tom stole a loaf of bread from the market stall."
    mira.observe(theft, participants=["Tom"], place="market", importance=0.8, sentiment=-0.5)
    mira.relate("Tom", "owes", "Mira", head_type="person", tail_type="person")
    tom.observe("Mira saw me at the stall.", participants=["Mira"], told_by="the baker")
    rt.checkpoint("before the quarrel", world="save-1")

    clock.advance(3 * DAY)
    mira.observe("Tom paid for the bread and apologised.", participants=["Tom"], sentiment=0.6)
    mira.relate("Tom", "owes", "Mira", ended=True)
    for hit in mira.search("What about Tom and the bread?"):
        print(f"day {hit.at / DAY:.0f}: {hit.text} [{hit.provenance}]")
    print("Tom owes:", [r.tail for r in mira.neighbors("Tom").relations])

    rt.rewind("before the quarrel", world="save-1")
    clock.set(0.0)
    print("after loading:", [item.text for item in mira.list().items])
    print("Tom owes:", [r.tail for r in mira.neighbors("Tom").relations])
    print("Tom heard from", tom.list().items[0].told_by)
