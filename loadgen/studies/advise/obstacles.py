"""Where no limit meets the goal, with the figure that says so, and where the switch hangs."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

from loadgen.behaviours.discover import Discover
from loadgen.studies.advise.bounds import least_limits
from loadgen.studies.advise.goal import percent
from loadgen.studies.advise.limits import KEYS
from loadgen.studies.advise.question import reading_seconds
from loadgen.units import MB_BYTES, format_bytes, format_seconds, plural, rate_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loadgen.plan.group import Reader
    from loadgen.studies.advise.limits import Limits
    from loadgen.studies.advise.question import Question

_NETTY_LOW_BYTES = 32_768
_POLITE_PERIODS = 1.5
_NAMED = 3


def obstacles(question: Question) -> tuple[str, ...]:
    """Say why no limit meets the goal; empty: nothing is known that speaks against it."""
    return (
        *_too_large_for_frames(question),
        *_too_large_for_goal(question),
        *_too_polite(question),
        *_too_slow(question),
        *_too_many_slow(question),
    )


def _too_large_for_frames(question: Question) -> Iterator[str]:
    limit = question.frame_limit_bytes
    large = [each for each in question.namespaces if each.answer_bytes > limit]
    if not large:
        return
    named = ", ".join(each.name for each in large[:_NAMED])
    more = f" and {len(large) - _NAMED} more" if len(large) > _NAMED else ""
    largest = max(large, key=lambda each: each.answer_bytes)
    least, behind = least_limits(largest), ""
    fate = "the broker sends it without an error, and clients close the connection on it"
    if question.proxy:
        fate = "the proxy loses its broker connection and its clients are told ServiceNotReady"
        behind = (
            " A client of a proxy is not told of it (4.0.8 was seen to leave it out of CONNECTED), "
            "so it must ask the broker."
        )
    yield (
        f"Nothing helps {named}{more} but maxMessageSize: the answer for {largest.name} has "
        f"{largest.answer_bytes:,} bytes, and a frame at most {limit:,} (maxMessageSize="
        f"{question.max_message_bytes} and 10,236). Whatever the limits, {fate}."
    )
    yield (
        f"With maxMessageSize={least.direct_mb * MB_BYTES} in every broker.conf and proxy.conf "
        "(and nettyMaxFrameSizeBytes of the bookies above it) the limits must be at least "
        f"{least.heap_mb} MB of heap and {least.direct_mb} MB of direct memory to list it once, "
        f"and the advice can be asked again. Otherwise split {largest.name}, or let broker-side "
        f"patterns keep less of it.{behind}"
    )


def _too_large_for_goal(question: Question) -> Iterator[str]:
    least, most_mb = least_limits(question.largest), question.goal.accounted_mb
    if sum(least) > most_mb:
        yield (
            f"{most_mb:,} MB hold no single answer for {question.largest.name}: it takes "
            f"{least.heap_mb} MB of heap and {least.direct_mb} MB of direct memory, and a limit "
            "below that refuses it for ever."
        )


def _too_polite(question: Question) -> Iterator[str]:
    polite = [each for each in question.groups if isinstance(each, Discover)]
    latest = _POLITE_PERIODS * max((g.period for g in polite if g.library == "polite"), default=0)
    if question.goal.back_within_seconds < latest:
        yield (
            "polite clients ask for their watch half a period to one and a half behind their "
            f"list, so the last of them is back after {latest:g} s whatever the limits: give them "
            f"--back-within {math.ceil(latest) + 10}s, or a shorter period."
        )


def _too_slow(question: Question) -> Iterator[str]:
    """Say which readers, those of one speed together, miss the goal, or their own timeout."""
    allowed = math.floor(question.clients * question.goal.refused_share)
    alike: Counter[tuple[Reader, float]] = Counter()
    for group in question.groups:
        alike[group.read, group.timeout] += group.count
    for (read, timeout), clients in alike.items():
        for limit, why in (
            (question.goal.back_within_seconds, "the goal gives them"),
            (timeout, "they wait for an answer before they give up"),
        ):
            sizes = [each.answer_bytes for each in question.listed]
            late = [size for size in sizes if reading_seconds(read, size) > limit]
            # Namespaces are asked for in turn.
            count = clients * len(late) // len(sizes)
            if count <= allowed:
                continue
            who, answer = plural(count, "client"), format_bytes(late[-1])
            if read.never:
                yield (
                    f"{who} ({percent(count / question.clients)}) never read their answer of "
                    f"{answer}, and the goal lets fewer stay away: no limit brings them back."
                )
            else:
                seconds = format_seconds(reading_seconds(read, late[-1]))
                yield (
                    f"The readers' speed alone makes the goal impossible: at {rate_text(read.rate)}"
                    f" {who} take {seconds} or more for an answer of {answer} or more, and "
                    f"{limit:g} s {why}. No limit changes that."
                )
            break


def _too_many_slow(question: Question) -> Iterator[str]:
    """Say so if readers that hold memory for the goal's whole time can hold all of it."""
    goal, answer = question.goal, question.mean.answer_bytes
    slow = sum(
        each.count
        for each in question.groups
        if question.held_seconds(each.read, answer) >= goal.back_within_seconds
    )
    direct = (goal.accounted_mb - least_limits(question.largest).heap_mb) * MB_BYTES
    pinned = slow * answer
    crowded = 0 < slow < question.clients and pinned + answer > direct
    if question.profile == "pulsar" and crowded:
        yield (
            f"{plural(slow, 'slow reader')} pin {format_bytes(pinned)} of direct memory, an answer "
            f"of {format_bytes(answer)} each, and {goal.accounted_mb:,} MB accounted leave "
            f"{format_bytes(max(0, direct))} for it: in profile pulsar they have all of it, and "
            f"nobody else is answered. It takes {format_bytes(pinned + answer)}, fewer slow "
            "readers, or a server that ends them (profile floodgate)."
        )


def switch_warnings(question: Question, limits: Limits) -> Iterator[str]:
    """Say where the switch of PIP-434 stops a broker that has these limits.

    Floodgate's own profile ends peers that do not read.
    """
    if question.profile == "floodgate":
        return
    if question.today.broker.pause:
        yield f"Your broker.conf has {KEYS['pause']}=true: it is advised to be false."
    answer, direct_mb = question.largest.answer_bytes, limits.direct_mb
    if direct_mb > 0:
        unread = max(1, direct_mb * MB_BYTES // answer)
        yield (
            f"{KEYS['pause']}=true can stop all listings of a broker for good: "
            f"{plural(unread, 'unread answer')} of {format_bytes(answer)}, also of one "
            f"connection that pipelines them, hold so much of the {direct_mb} MB that the next one "
            "does not fit, and the keep-alive spares a connection that is paused: everybody else "
            "was refused without end (seen on 4.2.4, 130 s). With false the keep-alive ends such a "
            "peer after a minute."
        )
    if limits.high_water_mark < _NETTY_LOW_BYTES:
        yield (
            f"{KEYS['high_water_mark']}={limits.high_water_mark} is below Netty's low mark of "
            f"{_NETTY_LOW_BYTES}: a Pulsar broker refuses every connection with it."
        )
