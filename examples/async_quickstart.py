"""The same from asyncio: many users at once, none of them blocks the loop.

python examples/async_quickstart.py [DATA_FOLDER]
"""

import asyncio
import sys

import reverie

SAID = {
    "ana": "I am allergic to walnuts.",
    "boris": "My favourite band is Autechre.",
    "chen": "I live in Xiamen and I drink oolong tea every morning.",
}
ASKED = {
    "ana": "What is she allergic to?",
    "boris": "Which band does he like best?",
    "chen": "tea in the morning",
}


async def main(folder: str) -> None:
    """Store what three users say, then ask about each."""
    async with await reverie.open_async(folder) as rt:
        users = {name: rt.user(name) for name in SAID}
        await asyncio.gather(*(users[name].add(SAID[name], wait=True) for name in SAID))
        answers = await asyncio.gather(*(users[name].search(ASKED[name]) for name in ASKED))
        for name, hits in zip(ASKED, answers, strict=True):
            print(f"{name}: {hits[0].text}")


asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "quickstart-data"))
