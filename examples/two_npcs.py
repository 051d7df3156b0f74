"""Two characters: one saw it, the other was told; what each knows, and whom they trust.

python examples/two_npcs.py [DATA_FOLDER]
"""

import sys

import reverie

clock = reverie.SimulatedClock(start=0.0)
folder = sys.argv[1] if len(sys.argv) > 1 else "two-npcs-data"
with reverie.open(folder, clock=clock, embedder="standin") as rt:
    town = rt.world("town")
    mira, tom = town.user("mira"), town.user("tom")
    theft = town.observe("The player stole the amulet.", witnesses=["mira"], place="shrine")
    seen = theft.kept["mira"].memory_id
    mira.relationships.move("player", trust=-0.4, reason="a thief", memory_id=seen)
    print("tom knows:", tom.search("Who stole the amulet?"))
    clock.advance(86_400)
    town.tell("mira", "tom", seen)
    tom.relationships.move("player", trust=-0.2, reason="mira says so")
    for npc in mira, tom:
        hit = npc.search("Who stole the amulet?")[0]
        how = f"told by {hit.told_by}" if hit.told_by else hit.provenance
        print(f"{npc.key.user_id}: {hit.text} [{how}] because: {'; '.join(hit.reasons)}")
    print("who knows:", [(k.user_id, k.heard) for k in town.who_knows(theft.event_id)])
    for one in town.relationships("trust", at_most=-0.1):
        print(f"{one.owner} trusts the {one.other}: {one.value:.2f}")
