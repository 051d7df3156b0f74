"""Import of a large ChatGPT export: memory, and a kill -9 in the middle.

    python benchmarks/import_scale.py [--mb 50] [--seed 0] [--work FOLDER]

1. makes an export (import_exports.py) and notes the texts that must come out of it;
2. reads it in a process of its own: the peak of memory above that of the bare program;
3. imports it with `reverie import chatgpt --no-infer --embedder standin` (no model is measured
   here), kills that with SIGKILL on its way, and runs the same command again to its end;
4. opens the folder, exports the user and compares all texts.

The memory of one user is held in memory while it is written to, and copied for each snapshot,
whoever writes it. So the peak of an import that nobody killed is shown beside that of a process
that adds the same turns through `User.add` without any file, and that of one that only holds this
user.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from bench_support import report
from import_exports import conversation, texts, write_export

MIB = 1024 * 1024
HERE = Path(__file__).resolve()
POLL_S = 0.1
STORED_SHARE = 0.7  # bytes on disk for each of the export, at which the import is killed


def peak_mib() -> float:
    """Return the peak of this process's resident memory so far. Not by `getrusage`: that goes on
    from the peak of the process that started this one."""
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return 0.0


def read_alone(path: Path) -> dict[str, Any]:
    """Read an export and keep nothing."""
    from reverie.importers import read

    base, begin, turns = peak_mib(), time.perf_counter(), 0
    for _ in read(path, format="chatgpt"):
        turns += 1
    return {"base": base, "peak": peak_mib(), "turns": turns, "s": time.perf_counter() - begin}


def hold_user(folder: Path) -> dict[str, Any]:
    """Open a folder and bring its user into memory."""
    import reverie

    with reverie.open(folder, embedder="standin", background=False) as rt:
        base = peak_mib()
        stats = rt.user("user").stats()
        return {"base": base, "peak": peak_mib(), "messages": stats.messages, "bytes": stats.bytes}


def write_alone(path: Path) -> dict[str, Any]:
    """Add the turns of an export without reading a file; `path` is of a folder with a note of its
    size and seed. As many turns in a call as the import adds, in a program with as much loaded."""
    import reverie
    import reverie.importers
    from reverie.cli import app  # noqa: F401 - to hold what the import holds
    from reverie.cli.feed import BATCH_TURNS

    size_bytes, seed = json.loads((path / "note.json").read_text(encoding="utf-8"))
    rng, number, written, waiting = random.Random(seed), 0, 0, 0
    with reverie.open(path / "bare", embedder="standin") as rt:
        user = rt.user("user")
        while written < size_bytes:
            said: list[str] = []
            talk = conversation(rng, number, said)
            written += len(json.dumps(talk, ensure_ascii=number % 2 == 0).encode()) + 2
            session = talk["conversation_id"]
            turns = [{"text": t, "id": f"{session}/{i}"} for i, t in enumerate(said)]
            for start in range(0, len(turns), BATCH_TURNS):
                user.add(turns[start : start + BATCH_TURNS], session=session, infer=False)
            number, waiting = number + 1, waiting + len(turns)
    return {"peak": peak_mib(), "turns": waiting}


def child(part: str, path: Path) -> dict[str, Any]:
    """Run one of those above in a process of its own."""
    command = [sys.executable, str(HERE), "--part", part, str(path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def import_command(export: Path, folder: Path) -> list[str]:
    """Return the command line that imports an export."""
    return [
        *(sys.executable, "-c", "from reverie.cli import main; main()", "import", "chatgpt"),
        *(str(export), "--data", str(folder), "--no-infer", "--embedder", "standin", "--json"),
    ]


def largest_bytes(folder: Path) -> int:
    """Return the size of the largest file of a data folder: the partition of its only user."""
    found = 0
    for path in folder.rglob("*"):
        try:
            found = max(found, path.stat().st_size)
        except OSError:  # a file that has just gone
            continue
    return found


def killed(command: list[str], folder: Path, enough_bytes: int) -> bool:
    """Run a command and kill it once the folder is large enough; False if it was done before."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while process.poll() is None:
        if largest_bytes(folder) >= enough_bytes:
            os.kill(process.pid, signal.SIGKILL)
            break
        time.sleep(POLL_S)
    return process.wait() == -signal.SIGKILL


def measured(command: list[str]) -> tuple[dict[str, Any], float, float]:
    """Run a command; returns what it printed, its peak in MiB, and its seconds."""
    begin = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        output = process.stdout.read() if process.stdout is not None else ""
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"the import failed: {output}")
    return json.loads(output), usage.ru_maxrss / 1024, time.perf_counter() - begin


def run(size_mb: float, seed: int, work: Path) -> bool:
    """Do all of it; returns whether every promise was kept."""
    import reverie

    export, folder = work / "conversations.json", work / "data"
    expected = write_export(export, int(size_mb * MIB), seed)
    size_mib = export.stat().st_size / MIB
    alone = child("read", export)
    command = import_command(export, folder)
    was_killed = killed(command, folder, int(size_mib * MIB * STORED_SHARE))
    with reverie.open(folder, embedder="standin", background=False) as rt:
        before = rt.user("user").stats().messages
    printed, resumed_peak, seconds = measured(command)
    _, import_peak, _ = measured(import_command(export, work / "whole"))
    held = child("hold", folder)
    (work / "note.json").write_text(json.dumps([int(size_mb * MIB), seed]), encoding="utf-8")
    bare = child("write", work)
    with reverie.open(folder, embedder="standin", background=False) as rt:
        rt.user("user").export(work / "out")
        problems = rt.check()
    stored = Counter(texts(work / "out" / "messages.jsonl"))
    wanted = Counter(expected)
    lost, extra = (wanted - stored).total(), (stored - wanted).total()
    read_mib = alone["peak"] - alone["base"]
    rows = [
        ("the export", f"{size_mib:.1f} MiB, {len(expected):,} turns", "", None),
        ("reading alone: memory above the bare program", f"{read_mib:.1f} MiB",
         f"at most {size_mib / 2:.0f} MiB", read_mib <= size_mib / 2),
        ("reading alone: time", f"{alone['s']:.1f} s", "", None),
        ("killed (SIGKILL) with so many turns stored", f"{before:,}", "some, not all",
         was_killed and 0 < before < len(expected)),
        ("the same command again: turns read, new, known",
         f"{printed['turns']:,}, {printed['stored']:,}, {printed['known']:,}", "", None),
        ("time of it", f"{seconds:.1f} s", "", None),
        ("turns lost", str(lost), "0", lost == 0),
        ("turns twice, or not of the export", str(extra), "0", extra == 0),
        ("problems that check finds", str(len(problems)), "0", not problems),
        ("peak of the resumed import", f"{resumed_peak:.0f} MiB", "", None),
        ("peak of an import in one go", f"{import_peak:.0f} MiB", "", None),
        ("peak of holding this user, nothing else", f"{held['peak']:.0f} MiB", "", None),
        (f"peak of adding {bare['turns']:,} turns, no file", f"{bare['peak']:.0f} MiB", "", None),
        ("import in one go above that", f"{import_peak - bare['peak']:.0f} MiB",
         f"at most {max(size_mib / 2, 16):.0f} MiB",
         import_peak - bare["peak"] <= max(size_mib / 2, 16)),
    ]  # fmt: skip
    report("import of a ChatGPT export, --no-infer, stand-in embedder", rows)
    return all(row[3] is not False for row in rows)


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--mb", type=float, default=50.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--work", type=Path, help="an empty folder; a temporary one by default")
    parser.add_argument("--part", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.part:
        part, path = given.part
        parts = {"read": read_alone, "hold": hold_user, "write": write_alone}
        print(json.dumps(parts[part](Path(path))))
        return
    with tempfile.TemporaryDirectory(dir=given.work) as folder:
        sys.exit(0 if run(given.mb, given.seed, Path(folder)) else 1)


if __name__ == "__main__":
    main()
