"""Saltmere: a small town whose people see, tell, distort and forget what happens in it.

    from reverie.town import Plan, run

    outcome = run(Plan(folder=Path("town"), days=2, npcs=8))

The town is what `town.toml` says. `run.py` plays it day after day through reverie's public
interface; a language model, if there is one, chooses what happens in some scenes (`scene.py`,
`director.py`); `truth.py` compares what the memories say with the script's own book; `report.py`
draws a page of it. Files here import nothing of each other that comes later in this list: streams,
setting, crowd, schedule, ledger, script, record, scene, words, prompts, director, play, evening,
ask, script_log, direction, run, truth, charts, pictures, report.
"""

from reverie.town.run import Outcome, Plan, run

__all__ = ["Outcome", "Plan", "run"]
