"""Writes cases of a split: `python -m reverie.models.training.write_cases heldout FILE`."""

from __future__ import annotations

import argparse
from pathlib import Path

from reverie.models.training.decisions import write_cases
from reverie.models.training.lexicon import SPLITS


def main() -> None:
    """Write the file that was asked for."""
    parser = argparse.ArgumentParser(prog="python -m reverie.models.training.write_cases")
    parser.add_argument("split", choices=SPLITS)
    parser.add_argument("file", type=Path)
    parser.add_argument(
        "--count", type=int, help="240 of heldout, unseen and late, 400 of others when absent"
    )
    given = parser.parse_args()
    write_cases(given.file, given.split, given.count)


if __name__ == "__main__":
    main()
