"""Run mypy over the project under its import names.

The folders are mapped to packages by setuptools (`reverie.models` is models/), which mypy cannot
follow. So a tree of links in build/types has the shape that imports have, and the paths in mypy's
output are turned back into those of the repository.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TREE = Path("build", "types")


def link_tree() -> dict[str, str]:
    """Build the tree anew; return path of each linked entry -> its path in the repository."""
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())
    folders: dict[str, str] = config["tool"]["setuptools"]["package-dir"]
    shutil.rmtree(ROOT / TREE, ignore_errors=True)
    links = {}
    for package in sorted(folders):  # a parent comes before its children
        place = TREE.joinpath(*package.split("."))
        if "." in package:
            links[place] = Path(folders[package])
        else:  # a real folder, because its children are linked into it
            (ROOT / place).mkdir(parents=True)
            found = (ROOT / folders[package]).iterdir()
            links |= {place / path.name: Path(folders[package], path.name) for path in found}
    for place, target in links.items():
        (ROOT / place).symlink_to(ROOT / target)
    return {place.as_posix(): target.as_posix() for place, target in links.items()}


def main() -> int:
    """Build the tree, run mypy with the arguments given, and return its exit status."""
    links = link_tree()
    run = subprocess.run(
        [sys.executable, "-m", "mypy", *sys.argv[1:]],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    longest_first = sorted(links, key=len, reverse=True)
    pattern = re.compile("|".join(map(re.escape, longest_first)))
    print(pattern.sub(lambda match: links[match.group()], run.stdout), end="")
    return run.returncode


if __name__ == "__main__":
    sys.exit(main())
