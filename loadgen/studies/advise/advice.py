"""The advice: obstacles first, then a search in virtual time, then real storms that confirm it.

Each try and each storm is one run of the same document.
"""

from __future__ import annotations

import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from loadgen.documents.reading import parse_document
from loadgen.errors import UsageError
from loadgen.places.experiment import experiment
from loadgen.places.options import RunOptions
from loadgen.results.results import read_run
from loadgen.studies.advise.bounds import derived, guess, least_limits, widest
from loadgen.studies.advise.findings import findings
from loadgen.studies.advise.goal import Outcome, outcome_of
from loadgen.studies.advise.limits import Setting, memory_knobs
from loadgen.studies.advise.obstacles import obstacles, switch_warnings
from loadgen.studies.advise.question import document_text
from loadgen.studies.advise.search import OutOfTimeError, Tries
from loadgen.studies.advise.sentences import said
from loadgen.virtual.loop import CutError

if TYPE_CHECKING:
    from collections.abc import Callable

    from loadgen.studies.advise.findings import KeyFinding
    from loadgen.studies.advise.question import Question
    from loadgen.studies.points import Experiment

    Storm = Callable[[Setting], Outcome]

MOST_CLIENTS = 20_000
"""Sockets of a storm that fits one machine beside its servers."""
_STORMS, _NAMED = 3, 3
_AROUND_SECONDS = 15.0
"""For topics, servers and connections before a storm, and its report behind it."""


@dataclass(frozen=True)
class Confirmation:
    """A real storm: its setting, and what came of it."""

    setting: Setting
    outcome: Outcome
    met: bool


@dataclass(frozen=True)
class Advice:
    """The answer.

    Attributes:
        setting: The advised one; None: nothing helps.
        outcome: What came of it in virtual time.
        obstacles: Why nothing helps.
        today: What comes of the operator's present limits; None: not tried.
        tries: Storms in virtual time, and ``seconds`` that they took.
        complete: False if time ran out before the limits were at their smallest.
        not_confirmed: Why there was no real storm.
        confirmations: Real storms, in their order; the last one's setting is advised.
    """

    question: Question
    setting: Setting | None = None
    outcome: Outcome | None = None
    findings: tuple[KeyFinding, ...] = ()
    obstacles: tuple[str, ...] = ()
    today: Outcome | None = None
    tries: int = 0
    seconds: float = 0.0
    complete: bool = True
    not_confirmed: str = "--no-confirm"
    confirmations: tuple[Confirmation, ...] = ()

    @property
    def met(self) -> bool:
        """True if there is a setting that meets the goal, and no real storm says otherwise."""
        return self.setting is not None and all(each.met for each in self.confirmations[-1:])

    @property
    def warnings(self) -> tuple[str, ...]:
        """Where the switch of PIP-434 stops a broker that has these limits, or today's."""
        limits = (self.setting or self.question.today).broker
        return tuple(switch_warnings(self.question, limits))


# -- storms ---------------------------------------------------------------------------------------


def run_storm(
    question: Question, setting: Setting, options: RunOptions, run: Experiment = experiment
) -> Outcome:
    """Run the storm of a setting, wherever the options say, and return what came of it.

    Raises:
        OutOfTimeError: It was cut in virtual time.
        KeyboardInterrupt: There was a Ctrl-C.
    """
    text = document_text(question, setting)
    try:
        directory = run(parse_document(text), replace(options, written=text))
    except CutError:
        raise OutOfTimeError from None
    if read_run(directory).get("interrupted"):
        raise KeyboardInterrupt
    return outcome_of(question.goal, directory)


def virtual_storms(question: Question, seconds: float, run: Experiment = experiment) -> Storm:
    """Return what runs the storm of a setting in virtual time.

    A storm that is under way after so many seconds from now is cut: ``OutOfTimeError``.
    """
    until = time.perf_counter() + seconds

    def storm(setting: Setting) -> Outcome:
        with tempfile.TemporaryDirectory(prefix="loadgen-") as folder:
            may_go_on = lambda: time.perf_counter() < until  # noqa: E731
            options = RunOptions(out=Path(folder), place="virtual", may_go_on=may_go_on)
            return run_storm(question, setting, options, run)

    return storm


# -- the search -----------------------------------------------------------------------------------


def advise(
    question: Question,
    storm: Storm | None = None,
    on_try: Callable[[int, Outcome], None] = lambda _number, _outcome: None,
) -> Advice:
    """Search limits that meet the goal.

    Args:
        question: What is asked.
        storm: Returns what comes of a setting; None: storms in virtual time, in the time that
            the question has.
        on_try: Told of each storm.

    Raises:
        UsageError: There was no time for a single storm.
    """
    begun = time.perf_counter()
    found = Advice(question, obstacles=obstacles(question))
    if found.obstacles:
        return found
    storm = storm or virtual_storms(question, question.seconds)
    tries = Tries(storm, question.goal, on_try, partial(derived, question))
    most, least = widest(question), least_limits(question.largest)
    try:
        missed = tries.misses(most)
    except OutOfTimeError:
        raise UsageError(said("no-time-at-all", question=question)) from None
    if missed:
        found = replace(found, obstacles=(_widest_misses(tries, most),))
    else:
        setting, _, complete = tries.search(guess(question), most, least)
        with suppress(OutOfTimeError):
            found = replace(found, today=tries.outcome(question.today))
        around = findings(tries, setting, question)
        outcome = tries.outcome(setting)
        found = replace(found, setting=setting, outcome=outcome, findings=around, complete=complete)
    return replace(found, tries=len(tries.done), seconds=time.perf_counter() - begun)


def _widest_misses(tries: Tries, widest: Setting) -> str:
    limits, outcome = widest.of(widest.servers[0]), tries.outcome(widest)
    reasons = [f"{n:,} x {reason}" for reason, n in outcome.reasons.items()][:_NAMED]
    told = tries.goal.told(outcome) + (f" ({'; '.join(reasons)})" if reasons else "")
    return said("widest-misses", goal=tries.goal, limits=limits, told=told)


# -- real storms ----------------------------------------------------------------------------------


def confirm(
    advice: Advice,
    out: Path,
    seconds: float,
    note: Callable[[str], None] = lambda text: None,
    run: Experiment = experiment,
) -> Advice:
    """Run the advised limits over sockets; where they miss the goal, those one step above.

    The servers are Floodgate's own, in the profile that was asked for; nothing is scaled.

    Args:
        advice: Its setting is run.
        out: The folder of the run directories.
        seconds: How long all of it may take.
        note: Told of what is going on.
        run: Runs a document.

    Raises:
        LoadgenError: The servers did not start, or the storm could not be run.
    """
    until = time.perf_counter() + seconds
    question, setting = advice.question, advice.setting
    assert setting is not None
    if question.clients > MOST_CLIENTS:
        why = said("too-many-sockets", clients=question.clients)
        return replace(advice, not_confirmed=why)
    longest = question.storm_seconds + _AROUND_SECONDS
    storms: list[Confirmation] = []
    while len(storms) < _STORMS and time.perf_counter() + longest <= until:
        name = f"storm-{len(storms) + 1}"
        note(name.replace("-", " "))
        options = RunOptions(out=out, name=name, place="processes", say=note)
        outcome = run_storm(question, setting, options, run)
        storms.append(Confirmation(setting, outcome, not question.goal.misses(outcome)))
        if storms[-1].met:
            break
        for knob in memory_knobs(setting):
            setting = knob.moved(setting, 1)
    if not storms:
        why = said("no-time-for-a-storm", longest=longest, left=max(0.0, seconds))
        return replace(advice, not_confirmed=why)
    setting = storms[-1].setting
    advice = replace(advice, confirmations=tuple(storms))
    if setting == advice.setting:
        return advice
    # Its neighbours are tried again.
    storm = virtual_storms(question, until - time.perf_counter(), run)
    looked = findings(Tries(storm, question.goal), setting, question)
    return replace(advice, setting=setting, findings=looked)
