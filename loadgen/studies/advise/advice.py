"""The advice: obstacles first, then a search in virtual time, then real storms that confirm it.

Each try and each storm is one run of the same document.
"""

from __future__ import annotations

import math
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from loadgen.documents.reading import parse_document
from loadgen.errors import UsageError
from loadgen.places.experiment import experiment
from loadgen.places.options import RunOptions
from loadgen.results.results import read_run
from loadgen.studies.advise.limits import (
    SERVED_PER_SECOND,
    Limits,
    Setting,
    derived,
    frame_limit_bytes,
    guess,
    least_limits,
    memory_knobs,
    widest,
)
from loadgen.studies.advise.question import (
    NEVER,
    Outcome,
    document_text,
    longest_seconds,
    misses,
    outcome_of,
    percent,
    told,
)
from loadgen.studies.advise.search import (
    OutOfTimeError,
    Plan,
    Tries,
    findings,
    search,
    unsteady,
)
from loadgen.units import MB_BYTES, format_bytes, format_seconds, plural, rate_text
from loadgen.virtual.loop import CutError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from loadgen.documents.model import Profile
    from loadgen.studies.advise.question import Goal, Workload
    from loadgen.studies.advise.search import KeyFinding
    from loadgen.studies.points import Experiment

MOST_CLIENTS = 20_000
"""Sockets of a storm that fits one machine beside its servers."""
_STORMS, _NAMED = 3, 3
_AROUND_SECONDS = 15.0
"""For topics, servers and connections before a storm, and its report behind it."""
_NETTY_LOW_BYTES = 32_768
_POLITE_PERIODS = 1.5


@dataclass(frozen=True)
class Request:
    """The question.

    Attributes:
        today: The limits of the operator's files, or as shipped.
        seconds: How long the search may take.
    """

    workload: Workload
    goal: Goal
    profile: Profile
    today: Setting
    seconds: float = 120.0

    @property
    def proxy(self) -> bool:
        """True if clients come through a proxy."""
        return self.today.proxy is not None


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
        tries: Tries in virtual time, and ``seconds`` that they took.
        complete: False if time ran out before the limits were at their smallest.
        quick: True if the limits were reckoned, and tried alone.
        notes: Where a larger limit was worse.
        not_confirmed: Why there was no real storm.
        confirmations: Real storms, in their order; the last one's setting is advised.
    """

    request: Request
    setting: Setting | None = None
    outcome: Outcome | None = None
    findings: tuple[KeyFinding, ...] = ()
    obstacles: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    today: Outcome | None = None
    tries: int = 0
    seconds: float = 0.0
    complete: bool = True
    quick: bool = False
    notes: tuple[str, ...] = ()
    not_confirmed: str = "--no-confirm"
    confirmations: tuple[Confirmation, ...] = ()

    @property
    def met(self) -> bool:
        """True if there is a setting that meets the goal, and no real storm says otherwise."""
        return self.setting is not None and all(each.met for each in self.confirmations[-1:])


def advise(
    request: Request,
    engine: Callable[[Setting], Outcome] | None = None,
    on_try: Callable[[int, Setting, Outcome], None] = lambda _number, _setting, _outcome: None,
) -> Advice:
    """Search limits that meet the goal.

    Args:
        request: The question.
        engine: Returns what comes of a setting; None: storms in virtual time, in the time that
            the request has.
        on_try: Told of each try.

    Raises:
        UsageError: There was no time for a single try.
    """
    begun = time.perf_counter()
    known = obstacles(request.workload, request.goal, request.profile, proxy=request.proxy)
    if known:
        return Advice(request, obstacles=tuple(known), warnings=_warnings(request, request.today))
    engine = engine or virtual_storms(request, request.seconds)
    tries = Tries(engine, request.goal, on_try)
    found = _searched(request, tries)
    return replace(found, tries=len(tries.done), seconds=time.perf_counter() - begun)


def quick_advice(request: Request, run: Experiment = experiment) -> Advice:
    """Reckon limits, and try them alone in virtual time: an advice in the time of a few storms."""
    begun = time.perf_counter()
    found = advise(request, lambda setting: reckoned(request.workload, request.goal, setting))
    setting, engine = found.setting, virtual_storms(request, run=run)
    for tries in range(1, _STORMS + 1):
        if setting is None:
            break
        outcome = engine(setting)
        seconds = time.perf_counter() - begun
        found = replace(
            found, setting=setting, outcome=outcome, tries=tries, seconds=seconds, quick=True
        )
        if not misses(request.goal, outcome) or seconds > request.seconds:
            break
        for knob in memory_knobs(setting):
            setting = knob.above(setting)
    return found


def reckoned(workload: Workload, goal: Goal, setting: Setting) -> Outcome:
    """Return an outcome without any simulation: the analytic model, monotone in every limit."""
    least, mean, readers = least_limits(workload.largest), workload.mean, workload.readers
    asked = workload.answers
    servers = [setting.of(each) for each in setting.servers]
    if any(each.heap_mb < least.heap_mb or each.direct_mb < least.direct_mb for each in servers):
        return Outcome(workload.clients, 0, None, asked, asked)
    seconds = asked * mean.answer_bytes / MB_BYTES / SERVED_PER_SECOND
    # Behind a proxy the broker's reader is fast.
    places = servers[0].direct_mb * MB_BYTES // max(1, mean.answer_bytes)
    held = readers.held_seconds(mean.answer_bytes)
    # All start together, so places are free again together: whole rounds.
    seconds += math.ceil(asked / max(1, places)) * held
    seconds += readers.seconds(mean.answer_bytes) - held
    late = readers.seconds(mean.answer_bytes, slow=True) > goal.back_within_seconds
    slow_late = workload.slow_clients if late else 0
    share = min(1.0, goal.back_within_seconds / seconds) if seconds else 1.0
    back = int((workload.clients - slow_late) * share)
    return Outcome(workload.clients, back, seconds, asked, asked - int(asked * share))


def virtual_storms(
    request: Request, seconds: float = math.inf, run: Experiment = experiment
) -> Callable[[Setting], Outcome]:
    """Return what runs a storm of a setting in virtual time and tells its outcome.

    A storm that is under way after so many seconds from now is cut: ``OutOfTimeError``.
    """
    until = time.perf_counter() + seconds

    def outcome(setting: Setting) -> Outcome:
        with tempfile.TemporaryDirectory(prefix="loadgen-") as folder:
            options = RunOptions(
                out=Path(folder), place="virtual", may_go_on=lambda: time.perf_counter() < until
            )
            try:
                return _storm(request, setting, options, run)
            except CutError:
                raise OutOfTimeError from None

    return outcome


def _storm(request: Request, setting: Setting, options: RunOptions, run: Experiment) -> Outcome:
    text = document_text(request.workload, request.goal, setting.keys(), request.profile)
    directory = run(parse_document(text), replace(options, written=text))
    if read_run(directory).get("interrupted"):
        raise KeyboardInterrupt
    return outcome_of(request.goal, directory)


def _searched(request: Request, tries: Tries) -> Advice:
    workload, goal, proxy = request.workload, request.goal, request.proxy
    flow = request.profile == "floodgate"

    def derive(setting: Setting) -> Setting:
        return derived(workload, setting, waits_for_direct_first=flow)

    start = derive(widest(workload, goal, proxy=proxy).on_all(pause=flow))
    try:
        if not tries.meets(start):
            why = _even_the_widest(request, tries.outcome(start), start)
            return Advice(request, obstacles=(why,), warnings=_warnings(request, request.today))
    except OutOfTimeError:
        raise UsageError(
            f"a single storm of {plural(workload.clients, 'client')} in virtual time was cut after "
            f"{request.seconds:.0f} s, all that the search had: give it more --minutes, or fewer "
            "clients with --family"
        ) from None
    guessed = guess(workload, goal, proxy=proxy).on_all(pause=flow)
    plan = Plan(start, guessed, least_limits(workload.largest), derive)
    setting, _, complete = search(tries, plan)
    try:
        today = tries.outcome(request.today)
    except OutOfTimeError:
        today = None
    return Advice(
        request,
        setting,
        tries.outcome(setting),
        findings(tries, setting, workload, request.profile),
        warnings=_warnings(request, setting),
        today=today,
        complete=complete,
        notes=tuple(unsteady(tries, memory_knobs(setting))),
    )


def _warnings(request: Request, setting: Setting) -> tuple[str, ...]:
    asked = request.today.broker.pause
    return tuple(switch_warnings(request.workload, setting.broker, request.profile, asked=asked))


def _even_the_widest(request: Request, outcome: Outcome, setting: Setting) -> str:
    first = setting.of(setting.servers[0])
    reasons = sorted(outcome.reasons.items(), key=lambda each: -each[1])[:_NAMED]
    said = "; ".join(f"{count:,} x {reason}" for reason, count in reasons)
    return (
        f"Nothing helps: with all of the {request.goal.accounted_mb:,} MB ({first.heap_mb} of heap "
        f"and {first.direct_mb} of direct memory) the goal is {told(request.goal, outcome)}"
        f"{f' ({said})' if said else ''}. What it takes is fewer or smaller answers at once, "
        "starts that are spread, faster readers, or more time."
    )


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
    request, setting = advice.request, advice.setting
    assert setting is not None
    if request.workload.clients > MOST_CLIENTS:
        why = f"{request.workload.clients:,} clients are more sockets than fit one machine"
        return replace(advice, not_confirmed=why)
    longest = longest_seconds(request.workload, request.goal) + _AROUND_SECONDS
    storms: list[Confirmation] = []
    while len(storms) < _STORMS and time.perf_counter() + longest <= until:
        number = len(storms) + 1
        note(f"storm {number}")
        options = RunOptions(out=out, name=f"storm-{number}", place="processes", say=note)
        outcome = _storm(request, setting, options, run)
        storms.append(Confirmation(setting, outcome, not misses(request.goal, outcome)))
        if storms[-1].met:
            break
        # Each limit that decides is one step larger.
        deciding = {(each.server, each.key) for each in advice.findings if each.decides}
        for knob in memory_knobs(setting):
            if (knob.server, knob.key) in deciding:
                setting = knob.above(setting)
    if not storms:
        why = f"a storm may take {longest:.0f} s, and {max(0.0, seconds):.0f} s were left"
        return replace(advice, not_confirmed=why)
    last = storms[-1].setting
    found = replace(advice, confirmations=tuple(storms), setting=last)
    if last == advice.setting:
        return found
    # Its neighbours are tried again.
    engine = virtual_storms(request, until - time.perf_counter(), run)
    tries = Tries(engine, request.goal)
    return replace(found, findings=findings(tries, last, request.workload, request.profile))


# -- obstacles ------------------------------------------------------------------------------------


def obstacles(workload: Workload, goal: Goal, profile: Profile, *, proxy: bool) -> list[str]:
    """Say why no limit meets the goal; empty: nothing is known that speaks against it."""
    return [
        *_too_large_for_frames(workload, proxy=proxy),
        *_too_large_for_goal(workload, goal),
        *_too_polite(workload, goal),
        *_too_slow(workload, goal),
        *(_too_many_slow(workload, goal) if profile == "pulsar" else ()),
    ]


def _too_large_for_frames(workload: Workload, *, proxy: bool) -> Iterator[str]:
    limit = frame_limit_bytes(workload)
    large = [each for each in workload.namespaces if each.answer_bytes > limit]
    if not large:
        return
    named = ", ".join(each.name for each in large[:_NAMED])
    more = f" and {len(large) - _NAMED} more" if len(large) > _NAMED else ""
    largest = max(large, key=lambda each: each.answer_bytes)
    least, fate, behind = least_limits(largest), _CLOSED, ""
    if proxy:
        fate, behind = _CLOSED_BEHIND_A_PROXY, _NOT_TOLD
    yield (
        f"Nothing helps {named}{more} but maxMessageSize: the answer for {largest.name} has "
        f"{largest.answer_bytes:,} bytes, and a frame at most {limit:,} "
        f"(maxMessageSize={workload.max_message_bytes} and 10,236). Whatever the limits, {fate}."
    )
    yield (
        f"With maxMessageSize={least.direct_mb * MB_BYTES} in every broker.conf and proxy.conf "
        "(and nettyMaxFrameSizeBytes of the bookies above it) the limits must be at least "
        f"{least.heap_mb} MB of heap and {least.direct_mb} MB of direct memory to list it once, "
        f"and the advice can be asked again. Otherwise split {largest.name}, or let broker-side "
        f"patterns keep less of it.{behind}"
    )


_CLOSED = "the broker sends it without an error, and clients close the connection on it"
_CLOSED_BEHIND_A_PROXY = (
    "the proxy loses its broker connection and its clients are told ServiceNotReady"
)
_NOT_TOLD = (
    " A client of a proxy is not told of it (4.0.8 was seen to leave it out of CONNECTED), so it "
    "must ask the broker."
)


def _too_large_for_goal(workload: Workload, goal: Goal) -> Iterator[str]:
    least = least_limits(workload.largest)
    if least.heap_mb + least.direct_mb > goal.accounted_mb:
        yield (
            f"{goal.accounted_mb:,} MB hold no single answer for {workload.largest.name}: it takes "
            f"{least.heap_mb} MB of heap and {least.direct_mb} MB of direct memory, and a limit "
            "below that refuses it for ever."
        )


def _too_polite(workload: Workload, goal: Goal) -> Iterator[str]:
    latest = _POLITE_PERIODS * workload.period_seconds
    if "polite" in workload.families and goal.back_within_seconds < latest:
        yield (
            f"polite clients ask for their watch half a period to one and a half behind their "
            f"list, so the last of them is back after {latest:g} s whatever the limits: give them "
            f"--back-within {math.ceil(latest) + 10}s, or a shorter --period."
        )


def _too_slow(workload: Workload, goal: Goal) -> Iterator[str]:
    allowed = math.floor(workload.clients * goal.refused_share)
    readers, slow_clients = workload.readers, workload.slow_clients
    limits = (
        (goal.back_within_seconds, "the goal gives them"),
        (workload.operation_timeout_seconds, "they wait for an answer before they give up"),
    )
    for slow, clients in ((False, workload.clients - slow_clients), (True, slow_clients)):
        rate = readers.slow_rate if slow else readers.rate
        for limit, what in limits:
            sizes = [each.answer_bytes for each in workload.listed]
            late = [size for size in sizes if readers.seconds(size, slow=slow) > limit]
            # Namespaces are asked for in turn.
            count = clients * len(late) // len(workload.listed)
            if count <= allowed:
                continue
            answer = format_bytes(late[-1])
            if rate == NEVER:
                yield (
                    f"{plural(count, 'client')} ({percent(count / workload.clients)}) never read "
                    f"their answer of {answer}, and the goal lets fewer stay away: no limit brings "
                    "them back."
                )
            else:
                seconds = format_seconds(readers.seconds(late[-1], slow=slow))
                yield (
                    "The readers' speed alone makes the goal impossible: at "
                    f"{rate_text(rate)} {plural(count, 'client')} take {seconds} or more for an "
                    f"answer of {answer} or more, and {limit:g} s {what}. No limit changes that."
                )
            break


def _too_many_slow(workload: Workload, goal: Goal) -> Iterator[str]:
    """Say so if readers that hold memory for the goal's whole time can hold all of it."""
    readers, answer = workload.readers, workload.mean.answer_bytes
    slow = workload.slow_clients
    if not slow or readers.held_seconds(answer, slow=True) < goal.back_within_seconds:
        return
    direct = (goal.accounted_mb - least_limits(workload.largest).heap_mb) * MB_BYTES
    pinned = slow * answer
    if pinned + answer > direct:
        yield (
            f"{plural(slow, 'slow reader')} pin {format_bytes(pinned)} of direct memory, an answer "
            f"of {format_bytes(answer)} each, and {goal.accounted_mb:,} MB accounted leave "
            f"{format_bytes(max(0, direct))} for it: in profile pulsar they have all of it, and "
            f"nobody else is answered. It takes {format_bytes(pinned + answer)}, fewer slow "
            "readers, or a server that ends them (profile floodgate)."
        )


def switch_warnings(
    workload: Workload, limits: Limits, profile: Profile, *, asked: bool
) -> list[str]:
    """Say where the switch of PIP-434 stops a broker.

    Args:
        workload: The load.
        limits: What is advised for the broker.
        profile: Floodgate's own profile ends peers that do not read.
        asked: True if the operator's file has the switch on.
    """
    found: list[str] = []
    if profile == "floodgate":
        return found
    if asked:
        found.append(
            "Your broker.conf has pulsarChannelPauseReceivingRequestsIfUnwritable=true: it is "
            "advised to be false."
        )
    answer, direct_mb = workload.largest.answer_bytes, limits.direct_mb
    unread = max(1, direct_mb * MB_BYTES // max(1, answer))
    if direct_mb > 0:
        found.append(
            "pulsarChannelPauseReceivingRequestsIfUnwritable=true can stop all listings of a broker"
            f" for good: {plural(unread, 'unread answer')} of {format_bytes(answer)}, also of one "
            f"connection that pipelines them, hold so much of the {direct_mb} MB that the next one "
            "does not fit, and the keep-alive spares a connection that is paused: everybody else "
            "was refused without end (seen on 4.2.4, 130 s). With false the keep-alive ends such a "
            "peer after a minute."
        )
    if limits.high_water_mark < _NETTY_LOW_BYTES:
        found.append(
            f"pulsarChannelWriteBufferHighWaterMark={limits.high_water_mark} is below Netty's low "
            f"mark of {_NETTY_LOW_BYTES}: a Pulsar broker refuses every connection with it."
        )
    return found
