"""Plays random exchanges to a real Pulsar and to Floodgate, and reports differences.

PULSAR_SERVICE_URL=pulsar://... PULSAR_WEB_URL=http://... python -m tests.differential --seed 7
"""

import argparse
import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.differential.cases import Case
from tests.differential.deviations import load_deviations
from tests.differential.dialogues.generating import dialogues
from tests.differential.dialogues.report import DialogueFigures, dialogue_lines, figures_of
from tests.differential.dialogues.run import DialogueRun
from tests.differential.dialogues.run import open_run as open_dialogues
from tests.differential.figures import Figures
from tests.differential.generator import cases
from tests.differential.recording import without_users
from tests.differential.report import count, difference_lines, listed
from tests.differential.rest import report as rest_report
from tests.differential.rest.generating import exchanges
from tests.differential.run import DEVIATIONS, Outcome, Run, new_label, open_run
from tests.differential.shrinker import shrink
from tests.differential.sides import NO_REAL_PULSAR

SHRUNK = 5
"""Most unlisted differing cases to shrink."""
NOT_KEPT = "not kept: "
"""Prefix of a line about a missed bound."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Play each seed, report results, and judge all together; return 0 when every bound is kept."""
    options = _options(arguments)
    play = _play_dialogues if options.dialogues else _play_rest if options.rest else _play
    together = DialogueFigures() if options.dialogues else Figures()
    for seed in options.seed or [1]:
        figures = play(seed, options)
        if figures is None:
            _say(NO_REAL_PULSAR)
            return 0
        together.add(figures)
    expected = [rest_report.CLASSES] if options.rest else []
    complaints = [f"{NOT_KEPT}{one}" for one in together.complaints(*expected)]
    _say(f"{options.where}, together: {together.summary()}", *together.lines(), *complaints)
    return 1 if complaints else 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.differential", description=__doc__)
    parser.add_argument("--seed", type=int, action="append", help="again for more; default 1")
    parser.add_argument("--count", type=int, default=3_000, help="exchanges of each seed")
    parser.add_argument("--proxy", action="store_true", help="through both proxies")
    parser.add_argument("--rest", action="store_true", help="calls of the admin instead")
    parser.add_argument("--dialogues", action="store_true", help="producers and consumers instead")
    parser.add_argument("--record", type=Path, help="file that receives the smallest, to replay")
    parser.add_argument("--all", action="store_true", help="print what differs as listed, too")
    options = parser.parse_args(arguments)
    if options.rest and (options.all or options.record):
        parser.error("--all and --record are for exchanges on the binary protocol, not for --rest")
    options.where = (
        "admin" if options.rest else "through the proxies" if options.proxy else "directly"
    )
    if options.dialogues:
        options.where = "dialogues"
    return options


def _play(seed: int, options: argparse.Namespace) -> Figures | None:
    with open_run(seed, through_proxy=options.proxy) as run:
        if run is None:
            return None
        deviations, figures = load_deviations(DEVIATIONS), Figures()
        differing: list[Outcome] = []
        for outcome in run.play_all(cases(seed, options.count, through_proxy=options.proxy)):
            count(figures, outcome, deviations)
            known = listed(outcome, deviations) is not None and not options.all
            if not outcome.dropped and not outcome.same_fields and not known:
                differing.append(outcome)
        _say(f"{options.where}, seed {seed}: {figures.summary()}")
        _show(run, differing, options)
        return figures


def _show(run: Run, differing: list[Outcome], options: argparse.Namespace) -> None:
    for outcome in differing[SHRUNK:]:
        _say(*difference_lines(outcome))
    for outcome in differing[:SHRUNK]:
        smallest = shrink(outcome.case, run.differs_like(outcome))
        _say("smallest:", *difference_lines(run.play(smallest)))
        if options.record is not None:
            _say(_record(run, outcome, smallest, options.record))


def _play_rest(seed: int, options: argparse.Namespace) -> Figures | None:
    with rest_report.open_players() as players:
        if players is None:
            return None
        figures = Figures()
        for played in players.all(exchanges(seed, options.count)):
            rest_report.count(figures, played)
            _say(*rest_report.difference_lines(played))
        _say(f"{options.where}, seed {seed}: {figures.summary()}")
        return figures


def _play_dialogues(seed: int, options: argparse.Namespace) -> DialogueFigures | None:
    label = new_label()
    with open_dialogues(label) as run:
        if run is None:
            return None
        figures = asyncio.run(_play_seed(run, seed, options.count, label))
    _say(f"{options.where}, seed {seed}: {figures.summary()}")
    return figures


async def _play_seed(run: DialogueRun, seed: int, number: int, label: str) -> DialogueFigures:
    await run.warm_up(dialogues(seed, number, f"{label}-warm"))
    outcomes = await run.play_all(dialogues(seed, number, label))
    differing = [one for one in outcomes if one.found is not None]
    for outcome in differing[:SHRUNK]:
        _say("smallest:", *dialogue_lines(await run.shrunk(outcome)))
    for outcome in differing[SHRUNK:]:
        _say(*dialogue_lines(outcome))
    return figures_of(outcomes)


def _record(run: Run, outcome: Outcome, smallest: Case, path: Path) -> str:
    """Add a case to a recording; return a sentence about the result."""
    alone = without_users(smallest)
    if not run.differs_like(outcome)(alone):
        return f"not recorded: {alone.name} agrees where nobody uses non-persistent topics"
    group = "odd" if alone.connects else "connect"
    line = run.recording(alone, f"{group}/odd_{alone.name.replace('-', '_')}")
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line, ensure_ascii=False) + "\n")
    return f"recorded: {line['case']}"


def _say(*lines: str) -> None:
    sys.stdout.writelines(f"{line}\n" for line in lines)
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
