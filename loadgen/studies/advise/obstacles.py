"""Reasons why no limits can meet a goal, and warnings about pausing reads (PIP-434)."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

from loadgen.behaviours.discover import Discover
from loadgen.studies.advise.bounds import least_limits
from loadgen.studies.advise.limits import KEYS
from loadgen.studies.advise.question import reading_seconds
from loadgen.studies.advise.sentences import said
from loadgen.units import MB_BYTES, plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from loadgen.plan.group import Group, Reader
    from loadgen.studies.advise.limits import Limits
    from loadgen.studies.advise.question import Question

_POLITE_PERIODS = 1.5


def obstacles(question: Question) -> tuple[str, ...]:
    """Return sentences on why no limits can meet the goal; empty if there is no known reason."""
    return (
        *_too_large_for_frames(question),
        *_too_large_for_goal(question),
        *_too_polite(question),
        *_too_slow(question),
    )


def _too_large_for_frames(question: Question) -> Iterator[str]:
    large = [n for n in question.namespaces if n.answer_bytes > question.frame_limit_bytes]
    if not large:
        return
    more = f" and {len(large) - 1} more" if len(large) > 1 else ""
    largest = max(large, key=lambda each: each.answer_bytes)
    least = least_limits([largest])
    fate = said("fate-behind-a-proxy" if question.proxy else "fate-behind-a-broker")
    yield said(
        "above-frames", named=largest.name + more, largest=largest, question=question, fate=fate
    )
    message_bytes = least.direct_mb * MB_BYTES
    helps = said("larger-frames", message_bytes=message_bytes, least=least, largest=largest)
    yield said("not-told-by-a-proxy", sentence=helps) if question.proxy else helps


def _too_large_for_goal(question: Question) -> Iterator[str]:
    goal = question.goal
    largest = max(question.listed, key=lambda each: sum(least_limits([each])))
    least = least_limits([largest])
    above = [each for each in question.listed if sum(least_limits([each])) > goal.accounted_mb]
    # Clients list the namespaces in turn.
    clients = sum(each.count * len(above) // len(question.listed) for each in question.groups)
    if clients > question.clients * goal.refused_share:
        yield said("above-goal", goal=goal, least=least, largest=largest)


def latest_polite_seconds(groups: Sequence[Group]) -> float:
    """Return the number of seconds until the last ``polite`` client has its list; 0 without any.

    The design of the ``polite`` library determines this time.
    """
    found = [each for each in groups if isinstance(each, Discover)]
    return _POLITE_PERIODS * max((g.period for g in found if g.library == "polite"), default=0)


def _too_polite(question: Question) -> Iterator[str]:
    latest = latest_polite_seconds(question.groups)
    if question.goal.back_within_seconds < latest:
        yield said("too-polite", latest=latest, enough=math.ceil(latest) + 10)


def _too_slow(question: Question) -> Iterator[str]:
    """Yield a sentence for each group that reads too slowly for the goal or its own timeout."""
    allowed = math.floor(question.clients * question.goal.refused_share)
    sizes = [each.answer_bytes for each in question.listed]
    alike: Counter[tuple[Reader, float]] = Counter()
    for group in question.groups:
        alike[group.read, group.timeout] += group.count
    for (read, timeout), clients in alike.items():
        for limit, why in (
            (question.goal.back_within_seconds, "the goal gives them"),
            (timeout, "they wait for an answer before they give up"),
        ):
            late = [size for size in sizes if reading_seconds(read, size) > limit]
            # Clients list the namespaces in turn.
            count = clients * len(late) // len(sizes)
            if count > allowed:
                yield said(
                    "never-read" if read.never else "too-slow",
                    count=count,
                    share=count / question.clients,
                    read=read,
                    seconds=reading_seconds(read, late[-1]),
                    answer=late[-1],
                    limit=limit,
                    why=why,
                )
                break


def too_many_slow(question: Question) -> Iterator[str]:
    """Yield the reason of missed goals if slow readers can occupy all memory all of the time."""
    goal, answer = question.goal, question.mean.answer_bytes
    slow = sum(
        each.count
        for each in question.groups
        if question.held_seconds(each.read, answer) >= goal.back_within_seconds
    )
    direct = (goal.accounted_mb - least_limits(question.listed).heap_mb) * MB_BYTES
    pinned, others = slow * answer, question.clients - slow
    if question.profile == "pulsar" and slow and others and pinned + answer > direct:
        yield said(
            "all-pinned",
            slow=plural(slow, "slow reader"),
            pinned=pinned,
            answer=answer,
            goal=goal,
            direct=max(0, direct),
            needed=pinned + answer,
        )


def switch_warnings(question: Question, limits: Limits) -> Iterator[str]:
    """Yield warnings about the switch of PIP-434 with given limits, if the operator has it on.

    There are none for Floodgate's own profile, which disconnects peers that do not read.
    """
    if question.profile == "floodgate" or not question.today.broker.pause:
        return
    switch, answer, direct_mb = KEYS["pause"], question.largest.answer_bytes, limits.direct_mb
    if direct_mb <= 0:
        yield said("switch-is-on", key=switch)
    else:
        unread = plural(max(1, direct_mb * MB_BYTES // answer), "unread answer")
        figures = {"key": switch, "unread": unread, "answer": answer, "direct_mb": direct_mb}
        yield said("switch-stops-a-broker", **figures)
