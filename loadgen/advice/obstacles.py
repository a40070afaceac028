"""Goals that no limit meets, and where the PIP-434 switch stops a broker: each with its figures."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from loadgen.advice.bounds import frame_limit_bytes, least_limits
from loadgen.advice.goal import percent
from loadgen.advice.workload import NEVER
from loadgen.units import MB_BYTES, format_bytes, format_seconds, plural, rate_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loadgen.advice.goal import Goal
    from loadgen.advice.limits import Limits
    from loadgen.advice.workload import NamespaceShape, Workload
    from loadgen.cluster import Profile

_NETTY_LOW_BYTES = 32_768
_NAMED = 3
_POLITE_PERIODS = 1.5


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
    needed = least_limits(largest).direct_mb * MB_BYTES
    fate = (
        "the proxy loses its broker connection and its clients are told ServiceNotReady"
        if proxy
        else "the broker sends it without an error, and clients close the connection on it"
    )
    yield (
        f"Nothing helps {named}{more} but maxMessageSize: the answer for {largest.name} has "
        f"{largest.answer_bytes:,} bytes, and a frame at most {limit:,} "
        f"(maxMessageSize={workload.max_message_bytes} and 10,236). Whatever the limits, {fate}."
    )
    yield _and_what_then(largest, needed, proxy=proxy)


def _and_what_then(largest: NamespaceShape, needed: int, *, proxy: bool) -> str:
    least = least_limits(largest)
    behind = (
        " A client of a proxy is not told of it (4.0.8 was seen to leave it out of CONNECTED), so "
        "it must ask the broker."
        if proxy
        else ""
    )
    return (
        f"With maxMessageSize={needed} in every broker.conf and proxy.conf (and nettyMaxFrameSize"
        f"Bytes of the bookies above it) the limits must be at least {least.heap_mb} MB of heap "
        f"and {least.direct_mb} MB of direct memory to list it once, and the advice can be asked "
        f"again. Otherwise split {largest.name}, or let broker-side patterns keep less of it."
        f"{behind}"
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
    slow_clients = workload.slow_clients
    for slow, clients in ((False, workload.clients - slow_clients), (True, slow_clients)):
        for limit, what in (
            (goal.back_within_seconds, "the goal gives them"),
            (workload.operation_timeout_seconds, "they wait for an answer before they give up"),
        ):
            late = [
                each
                for each in workload.listed
                if workload.readers.seconds(each.answer_bytes, slow=slow) > limit
            ]
            # Namespaces are asked for in turn.
            count = clients * len(late) // len(workload.listed)
            if count > allowed:
                against = f"{limit:g} s {what}"
                yield _too_slow_sentence(workload, count, late[-1].answer_bytes, against, slow)
                break


def _too_slow_sentence(
    workload: Workload,
    clients: int,
    answer_bytes: int,
    against: str,
    slow: bool,
) -> str:
    readers, answer = workload.readers, format_bytes(answer_bytes)
    rate = readers.slow_rate if slow else readers.rate
    if rate == NEVER:
        return (
            f"{plural(clients, 'client')} ({percent(clients / workload.clients)}) never read their "
            f"answer of {answer}, and the goal lets fewer stay away: no limit brings them back."
        )
    seconds = format_seconds(readers.seconds(answer_bytes, slow=slow))
    return (
        f"The readers' speed alone makes the goal impossible: at {rate_text(rate)} "
        f"{plural(clients, 'client')} take {seconds} or more for an answer of {answer} or more, "
        f"and {against}. No limit changes that."
    )


def _too_many_slow(workload: Workload, goal: Goal) -> Iterator[str]:
    """Say so if readers that hold memory for the goal's whole time can hold all of it."""
    readers, answer = workload.readers, workload.mean.answer_bytes
    slow = workload.slow_clients
    if not slow or readers.held_seconds(answer, slow=True) < goal.back_within_seconds:
        return
    least = least_limits(workload.largest)
    direct = (goal.accounted_mb - least.heap_mb) * MB_BYTES
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
    if profile == "floodgate":
        return []
    found = []
    if asked:
        found.append(
            "Your broker.conf has pulsarChannelPauseReceivingRequestsIfUnwritable=true: it is "
            "advised to be false."
        )
    if limits.direct_mb > 0:
        found.append(_how_it_stops(workload.largest.answer_bytes, limits.direct_mb))
    if limits.high_water_mark < _NETTY_LOW_BYTES:
        found.append(
            f"pulsarChannelWriteBufferHighWaterMark={limits.high_water_mark} is below Netty's low "
            f"mark of {_NETTY_LOW_BYTES}: a Pulsar broker refuses every connection with it."
        )
    return found


def _how_it_stops(answer: int, direct_mb: int) -> str:
    unread = max(1, direct_mb * MB_BYTES // max(1, answer))
    return (
        "pulsarChannelPauseReceivingRequestsIfUnwritable=true can stop all listings of a broker "
        f"for good: {plural(unread, 'unread answer')} of {format_bytes(answer)}, also of one "
        f"connection that pipelines them, hold so much of the {direct_mb} MB that the next one "
        "does not fit, and the keep-alive spares a connection that is paused: everybody else was "
        "refused without end (seen on 4.2.4, 130 s). With false the keep-alive ends such a peer "
        "after a minute."
    )
