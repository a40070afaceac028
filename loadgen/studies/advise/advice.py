"""The search for topic-list limits, by storms in virtual time and then by real storms.

First it looks for reasons why no limits can meet the goal.

The advised limits stay away from the growth stall. They withstand growth, more clients and slow
servers. The edge (limits that only just pass) is shown and never advised.

Each simulated or real storm is a run of the same scenario document.
"""

from __future__ import annotations

import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from loadgen.documents.model import Topics
from loadgen.documents.reading import parse_document
from loadgen.errors import LoadgenError, UsageError
from loadgen.places.experiment import experiment
from loadgen.places.options import RunOptions
from loadgen.results.results import read_run
from loadgen.studies.advise.bounds import least_setting, room_for_grants, splits, start
from loadgen.studies.advise.goal import Goal, Outcome, outcome_of
from loadgen.studies.advise.limits import (
    Setting,
    capped,
    larger_of,
    memory_knobs,
    raised,
    scaled,
    with_waits,
)
from loadgen.studies.advise.obstacles import obstacles, switch_warnings, too_many_slow
from loadgen.studies.advise.question import LOOKUP_KEYS, LOOKUP_REFUSALS, document_text
from loadgen.studies.advise.search import (
    STEP,
    OutOfTimeError,
    Tries,
    directions,
    slow_brokers,
    strains,
)
from loadgen.studies.advise.sentences import said
from loadgen.virtual.loop import CutError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from loadgen.studies.advise.question import Question
    from loadgen.studies.advise.search import OnTry, Storm
    from loadgen.studies.points import Experiment

MOST_SOCKETS = 20_000
"""Most sockets of a storm on one machine, beside the servers'."""
_STORMS, _NAMED = 3, 3
HERE = RunOptions()
MOST_ROOM = 2.5
"""Largest memory advised for slow servers, as a multiple of the smallest limits that pass."""
_AROUND_SECONDS = 15.0
"""Seconds for topics, servers and connections before a storm, and for the report after."""


@dataclass(frozen=True)
class Confirmation:
    """A real restart storm with the advised limits, and its outcome."""

    setting: Setting
    outcome: Outcome
    met: bool


@dataclass(frozen=True)
class Advice:
    """The advised limits, and everything else that the search for them found.

    Attributes:
        setting: The advised limits; None if no limits meet the goal.
        outcome: The outcome of the advised limits in virtual time.
        today: The outcome of the operator's present limits; None if they were not tried.
        shaky: True if the present limits meet the goal as stated, but not with a slow broker.
        promised: True if the advised limits also meet the goal with a slow broker, with two seeds.
        edge: The smallest limits that just meet the goal as stated; None if not searched for.
        breaks: Harder loads with which the advised limits miss the goal, with the outcomes.
        bears: Harder loads with which the advised limits meet the goal.
        obstacles: Sentences on why no limits can meet the goal.
        tries: Number of storms in virtual time; they took ``seconds``.
        complete: False if the time was over before every harder load was tried.
        not_confirmed: The reason why there was no real storm.
        confirmations: The real storms, in order; the limits of the last one are advised.
        stormed: The address of the cluster used in these storms; empty for servers on this machine.
    """

    question: Question
    setting: Setting | None = None
    outcome: Outcome | None = None
    today: Outcome | None = None
    shaky: bool = False
    promised: bool = True
    edge: Setting | None = None
    breaks: tuple[tuple[str, Outcome], ...] = ()
    bears: tuple[str, ...] = ()
    obstacles: tuple[str, ...] = ()
    tries: int = 0
    seconds: float = 0.0
    complete: bool = True
    not_confirmed: str = "--no-confirm"
    confirmations: tuple[Confirmation, ...] = ()
    stormed: str = ""

    @property
    def met(self) -> bool:
        """True if the advised limits met the goal in virtual time and in the last real storm."""
        tried = [each.met for each in self.confirmations[-1:]]
        if self.outcome is not None:
            tried.append(not self.question.goal.misses(self.outcome))
        return self.setting is not None and self.promised and bool(tried) and all(tried)

    @property
    def passes_today(self) -> bool:
        """True if the operator's present limits meet the goal under the stated load."""
        return self.today is not None and not self.question.goal.misses(self.today)

    def raised_to(self, setting: Setting) -> Advice:
        """Return the advice with raised limits, of which no storm in virtual time is known."""
        if setting == self.setting:
            return self
        return replace(self, setting=setting, outcome=None, bears=(), breaks=())

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings if the operator's broker pauses reading by PIP-434."""
        return tuple(switch_warnings(self.question, (self.setting or self.question.today).broker))


# -- storms ---------------------------------------------------------------------------------------


def run_storm(
    question: Question, setting: Setting, options: RunOptions, run: Experiment = experiment
) -> Outcome:
    """Run a restart storm of a question's clients with the given limits; return the outcome.

    Raises:
        OutOfTimeError: The storm was cut in virtual time, because the time was over.
        LoadgenError: A part of the load was lost, so the storm has no outcome.
        KeyboardInterrupt: The user pressed Ctrl-C.
    """
    document = parse_document(document_text(question, setting))
    if options.service_url:  # A running cluster has the namespaces under their own names.
        topics = Topics(of=tuple(each.name for each in question.listed))
        document = document.model_copy(update={"topics": topics})
    try:
        directory = run(document, options)
    except CutError:
        raise OutOfTimeError from None
    told = read_run(directory)
    if told.get("interrupted"):
        raise KeyboardInterrupt
    if lost := told.get("lost"):
        raise LoadgenError(f"a storm lost a part of its load: {lost}")
    return outcome_of(question.goal, directory)


def virtual_storms(seconds: float, run: Experiment = experiment) -> Storm:
    """Return a function that runs the restart storm of a question in virtual time.

    A storm that is still in progress after ``seconds`` from now is cut: ``OutOfTimeError``.
    """
    until = time.perf_counter() + seconds

    def storm(question: Question, setting: Setting) -> Outcome:
        with tempfile.TemporaryDirectory(prefix="loadgen-") as folder:
            may_go_on = lambda: time.perf_counter() < until  # noqa: E731
            options = RunOptions(out=Path(folder), place="virtual", may_go_on=may_go_on)
            return run_storm(question, setting, options, run)

    return storm


# -- the search -----------------------------------------------------------------------------------


def advise(
    question: Question,
    storm: Storm | None = None,
    on_try: OnTry = lambda *_: None,
) -> Advice:
    """Search for limits that meet a question's goal, also under somewhat harder loads.

    Args:
        question: The topics, clients and goal.
        storm: Returns the outcome of limits under a question; None: storms in virtual time, within
            the question's time.
        on_try: Called with each finished storm.

    Raises:
        UsageError: The time was too short for even one storm.
    """
    begun = time.perf_counter()
    found = Advice(question, obstacles=obstacles(question))
    if found.obstacles:
        return found
    tries = Tries(storm or virtual_storms(question.seconds), question.goal, on_try)
    try:
        found = replace(found, today=tries.outcome(question, question.today))
        most = next((e for e in _all_memory(found) if not tries.misses(question, e)), None)
    except OutOfTimeError:
        if not tries.done:
            raise UsageError(said("no-time-at-all", question=question)) from None
        found, most = replace(found, obstacles=(said("no-time-for-more"),), complete=False), None
    if most is None:
        why = found.obstacles or tuple(_widest_misses(question, tries))
        found = replace(found, obstacles=why)
    else:
        found = _search(found, tries, most)
    return replace(found, tries=len(tries.done), seconds=time.perf_counter() - begun)


def _search(found: Advice, tries: Tries, most: Setting) -> Advice:
    """Search for limits that also meet the goal under harder loads, as far as time permits."""
    question, borne, breaks = found.question, list[str](), dict[str, Outcome]()
    first, tried = start(question), strains(question)
    found = replace(found, setting=first)
    try:
        most = _sure_division(found, tries, tried) or most
        holds = all(tries.bears(each, question.today, most) for each in tried[:2])
        lucky = found.passes_today and not tries.meets(slow_brokers(tried), question.today)
        found = replace(found, shaky=lucky)
        first = with_waits(first, most)
        setting = _first(found, tries, first, tried[:2], sure=holds)
        found = replace(found, setting=setting)
        setting = tries.climb(setting, most, tried[:3])
        met = [each for each in tried[:2] if all(tries.meets([each], e) for e in (most, setting))]
        edge = tries.edge(met, setting, least_setting(question), most)
        # Slow servers justify more memory, but not any amount.
        roomy = capped(scaled(edge, MOST_ROOM, setting), most)
        setting = tries.climb(setting, larger_of(roomy, setting, question.goal.accounted_mb), tried)
        setting = _made_sure(found, tries, setting, most, tried)
        outcome = tries.outcome(question, setting)
        if capped(edge, setting) != edge:  # The last climb divided the memory differently.
            edge = tries.edge(met, setting, capped(least_setting(question), setting), most)
        promised = tries.meets(slow_brokers(tried), setting)
        found = replace(found, setting=setting, outcome=outcome, edge=edge, promised=promised)
        _try_harder(tries, setting, tried, borne, breaks)
    except OutOfTimeError:
        found = replace(found, complete=False)
        if found.outcome is None:
            found = _as_far_as_tried(found, tries, tried, most)
    # With several seeds a strain may hold once and break once: it breaks.
    bears = tuple(each for each in dict.fromkeys(borne) if each not in breaks)
    return replace(found, breaks=tuple(breaks.items()), bears=bears)


def _try_harder(
    tries: Tries,
    setting: Setting,
    tried: Sequence[Question],
    borne: list[str],
    breaks: dict[str, Outcome],
) -> None:
    """Try limits under ever harder loads; add each kind that they meet or miss to the results."""
    more, larger, slower = directions(tried[0])
    # A single seed of even slower brokers says nothing if the limits miss with another seed.
    slower = slower if tries.meets(slow_brokers(tried), setting) else []
    for harder in filter(None, (*([each] for each in tried[1:]), more, larger, slower)):
        broken = next((each for each in harder if tries.misses(each, setting)), None)
        if broken is None:
            borne.append(harder[-1].strain)
        else:
            breaks.setdefault(broken.strain, tries.outcome(broken, setting))


def _all_memory(found: Advice) -> Iterator[Setting]:
    """Yield limits that use all memory of the goal, divided differently between heap and direct.

    Some of them have the operator's present timeouts.
    """
    yield from splits(found.question)
    if found.passes_today:
        yield from (with_waits(each, found.question.today) for each in splits(found.question))
        if (kept := _in_force(found.question, splits(found.question)[0])) is not None:
            yield _switched(found.question, kept)


def _sure_division(found: Advice, tries: Tries, tried: Sequence[Question]) -> Setting | None:
    """Return limits with all memory that meet the goal with a slow broker; with two seeds, if any.

    The result is None if no division of the memory does with even one seed.
    """
    loads, with_one = (tried[0], *slow_brokers(tried)), None
    for each in _all_memory(found):
        if tries.meets(loads, each):
            return each
        if with_one is None and tries.meets(loads[:2], each):
            with_one = each
    return with_one


def _made_sure(
    found: Advice, tries: Tries, setting: Setting, most: Setting, tried: Sequence[Question]
) -> Setting:
    """Return limits raised for slow brokers if ``most`` bears these, and for granted answers.

    The operator's present limits are returned if they are to be kept, and bear more: raising one
    limit may have lowered another one below today's.
    """
    if tries.meets(slow_brokers(tried), most):
        setting = tries.climb(setting, most, (tried[0], *slow_brokers(tried)))
    setting = room_for_grants(found.question, setting)
    kept = _in_force(found.question, setting) if found.passes_today else None
    if kept is None or capped(kept, setting) == kept:
        return setting
    kept = _switched(found.question, kept)
    borne = [each for each in tried if tries.meets([each], kept)]
    return kept if len(borne) == len(tried) or not tries.meets(borne, setting) else setting


def _first(
    found: Advice, tries: Tries, setting: Setting, loads: Sequence[Question], *, sure: bool
) -> Setting:
    """Return the limits with which a search begins.

    If the operator's present limits are to be kept, the result is not below them, and meets the
    goal under each of the loads under which they do.
    """
    question, searched = found.question, setting
    kept = _in_force(question, setting) if found.passes_today else None
    if kept is not None:
        setting = larger_of(setting, kept, question.goal.accounted_mb)
        setting = _switched(question, setting)
        setting = setting if sure else with_waits(setting, searched)
    if not found.passes_today:
        return setting
    borne = [each for each in loads if tries.meets([each], question.today)]
    # Clients refused after a short wait retry, which may cost more than a long wait.
    for each in (setting, with_waits(setting, question.today)):
        if tries.meets(borne, each):
            return each
    # Raising one limit has lowered the other too far.
    return setting if kept is None else _switched(question, kept)


def _as_far_as_tried(
    found: Advice, tries: Tries, tried: Sequence[Question], most: Setting
) -> Advice:
    """Complete an advice after time ran out, with the smallest passed limits that none refuted.

    They are not below the operator's present limits, if these are to be kept.
    """
    today, first, knobs = found.question.today, found.setting, memory_knobs(most)
    assert first is not None
    kept = _in_force(found.question, first) if found.passes_today else None
    floor = kept or first

    def may_hold(setting: Setting) -> bool:
        return room_for_grants(found.question, setting) == setting and all(
            not tries.known_miss(each, setting) or tries.known_miss(each, most) for each in tried
        )

    passed = [
        each
        for question, each in tries.done
        if question is tried[0]
        and (kept or each != today)
        and not tries.known_miss(question, each)
        and all(knob.value(each) >= knob.value(floor) for knob in knobs)
    ]
    passed.sort(key=lambda each: sum(knob.value(each) for knob in knobs))
    setting = _switched(found.question, next(filter(may_hold, passed), most))
    outcome = tries.done.get((tried[0], setting))
    slow = [(each, setting) for each in slow_brokers(tried)]
    promised = all(each in tries.done and not tries.known_miss(*each) for each in slow)
    return replace(found, setting=setting, outcome=outcome, promised=promised)


def _switched(question: Question, setting: Setting) -> Setting:
    """Return limits with the switch of PIP-434 on if the profile can bear it, else off."""
    pause = question.profile == "floodgate"
    return replace(setting, broker=replace(setting.broker, pause=pause))


def _in_force(question: Question, setting: Setting) -> Setting | None:
    """Return the operator's present limits; None if they exceed the goal's memory.

    Memory without a limit today is limited as in ``setting``.
    """
    today, budget = question.today, question.goal.accounted_mb
    for knob in memory_knobs(today):
        if knob.value(today) <= 0:
            today = knob.set(today, knob.value(setting))
    fits = all(today.of(each).accounted_mb <= budget for each in today.servers)
    return today if fits else None


def _widest_misses(question: Question, tries: Tries) -> Iterator[str]:
    """Yield sentences on how and why even limits with all of the goal's memory miss the goal."""
    widest = splits(question)[0]
    limits, outcome = widest.of(widest.servers[0]), tries.outcome(question, widest)
    reasons = [f"{n:,} x {reason}" for reason, n in outcome.reasons.items()][:_NAMED]
    missed = ", ".join(tries.goal.misses(outcome))
    missed += f" ({'; '.join(reasons)})" if reasons else ""
    more = _more_memory(question, tries)
    helps = "" if more is None else said("more-memory", goal=more)
    yield said("widest-misses", goal=tries.goal, limits=limits, missed=missed, helps=helps)
    yield from too_many_slow(question)
    for server, words in LOOKUP_REFUSALS.items():
        refused = sum(n for reason, n in outcome.reasons.items() if words in reason)
        if refused:
            key = LOOKUP_KEYS[server]
            places = question.more.get(server, {}).get(key, question.lookups)
            yield said("few-lookups", refused=refused, server=server, key=key, places=places)


def _more_memory(question: Question, tries: Tries) -> Goal | None:
    """Return the goal with the least of 2, 4, 8 or 16 times the memory that a storm meets."""
    budget = question.goal.accounted_mb
    larger = [replace(question.goal, accounted_mb=factor * budget) for factor in (2, 4, 8, 16)]

    def meets(goal: Goal) -> bool:
        setting = splits(replace(question, goal=goal))[0]
        return not goal.misses(tries.outcome(question, setting))

    with suppress(OutOfTimeError):
        if meets(larger[-1]):
            return next(filter(meets, larger))
    return None


# -- real storms ----------------------------------------------------------------------------------


def confirm(
    advice: Advice,
    out: Path,
    seconds: float,
    note: Callable[[str], None] = lambda text: None,
    run: Experiment = experiment,
    at: RunOptions = HERE,
) -> Advice:
    """Run a real storm with the advised limits; if it misses the goal, raise the limits and repeat.

    No limits exceed the memory that the goal allows: if they cannot be raised further, the missed
    goal stands. A goal that is missed on a machine too slow for its clients says nothing about the
    limits.

    The servers are Floodgate's own, in the profile of the question. With ``at`` they are a cluster
    with limits of its own, for a single storm.

    Args:
        advice: The advice whose limits are to be confirmed.
        out: The folder for the run directories.
        seconds: The time limit of all storms together.
        note: Called with a sentence about each step.
        run: Runs a scenario document.
        at: The addresses of a cluster to use instead of Floodgate's own servers.

    Raises:
        LoadgenError: The servers did not start, or the storm could not be run.
    """
    until = time.perf_counter() + seconds
    question, setting = advice.question, advice.setting
    assert setting is not None
    if question.clients > MOST_SOCKETS:
        why = said("too-many-sockets", clients=question.clients)
        return replace(advice, not_confirmed=why)
    longest = question.storm_seconds + _AROUND_SECONDS
    storms: list[Confirmation] = []
    limited = ""
    while len(storms) < _STORMS and time.perf_counter() + longest <= until:
        name = f"storm-{len(storms) + 1}"
        if at.service_url:
            listed = len(question.listed)
            note(said("storms-a-cluster", url=at.service_url, question=question, listed=listed))
        note(name.replace("-", " "))
        options = replace(at, out=out, name=name, place="processes", say=note)
        outcome = run_storm(question, setting, options, run)
        met = not question.goal.misses(outcome)
        if outcome.limited and not met:
            limited = said("machine-limited", why=outcome.limited)
            break
        storms.append(Confirmation(setting, outcome, met))
        larger = raised(setting, STEP, question.goal.accounted_mb)
        if storms[-1].met or at.service_url or larger == setting:
            break
        setting = larger
    if not storms:
        why = said("no-time-for-a-storm", longest=longest, left=max(0.0, seconds))
        return replace(advice, not_confirmed=limited or why)
    setting, where = storms[-1].setting, at.service_url
    found = advice.raised_to(setting)
    return replace(found, confirmations=tuple(storms), stormed=where)
