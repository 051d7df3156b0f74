"""A program for the tests of durability: appends, and prints each head that was acknowledged."""

from __future__ import annotations

import sys
from pathlib import Path

from reverie.memory_graph.ids import Key
from reverie.memory_graph.store import Partition


def main(path: str, count: int, *pragmas: str) -> None:
    """Append `count` events of 900 bytes, one by one; no end when `count` is 0."""
    partition = Partition.open(Path(path), index=0, owner="writer")
    for pragma in pragmas:
        partition._db.rows(f"PRAGMA {pragma}")
    sys.stdout.write("open\n")
    sys.stdout.flush()
    done = 0
    while not count or done < count:
        with partition.write() as txn:
            head = txn.append(Key("w", "u"), [b"%08d" % (done + 1) + b"." * 892])
            txn.enqueue(Key("w", "u"), [f"t{head}"])
        done += 1
        sys.stdout.write(f"{head}\n")
        sys.stdout.flush()
    partition.close()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), *sys.argv[3:])
