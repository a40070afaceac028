"""The families of schedules, by name."""

from __future__ import annotations

from random import random
from typing import TYPE_CHECKING

from client.discovery.cpp import CppSchedule
from client.discovery.go import GoSchedule
from client.discovery.java import JavaPollSchedule, JavaWatchSchedule
from client.discovery.polite import PoliteSchedule
from client.exceptions import InvalidConfiguration

if TYPE_CHECKING:
    from collections.abc import Callable

    from client.discovery.actions import Action
    from client.discovery.schedule import DiscoveryOptions, DiscoverySchedule
    from limiter.clock import Clock

FAMILIES: dict[str, type[DiscoverySchedule]] = {
    kind.family: kind
    for kind in (PoliteSchedule, JavaWatchSchedule, JavaPollSchedule, CppSchedule, GoSchedule)
}


def schedule_of(
    family: str,
    options: DiscoveryOptions,
    clock: Clock,
    perform: Callable[[Action], None],
    random: Callable[[], float] = random,
) -> DiscoverySchedule:
    """Return a schedule of a family; see DiscoverySchedule for the arguments.

    Raises:
        InvalidConfiguration: The family is unknown.
    """
    kind = FAMILIES.get(family)
    if kind is None:
        raise InvalidConfiguration(
            f"{family[:40]!r} is no discovery schedule: choose one of {', '.join(FAMILIES)}"
        )
    return kind(options, clock, random, perform)
