"""Warnings of patterns that a broker leaves to its clients: it sends the whole namespace then."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadgen.documents.faults import shown
from loadgen.scenarios.discovery.scenario import DiscoveryScenario

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loadgen.cluster import ClusterPlan
    from loadgen.scenario import Scenario

LENGTH_KEY = "subscriptionPatternMaxLength"
_PULSARS_LENGTH = 50
_SEND_NONE = ("cpp", "go")
"""Families that ask for whole namespaces anyway."""


def pattern_warnings(scenario: Scenario, cluster: ClusterPlan) -> Iterator[str]:
    """Yield a sentence for each pattern that is too long for the cluster's broker."""
    longest = int(cluster.broker.get(LENGTH_KEY) or _PULSARS_LENGTH)
    for key, pattern, before in _sent(scenario):
        # As Java counts: two for a character above U+FFFF.
        length = len((before + pattern).encode("utf-16-le", "surrogatepass")) // 2
        if length > longest:
            behind = f" behind {before}" if before else ""
            yield (
                f"{key} {shown(pattern)}{behind} makes {length} characters, and a broker applies "
                f"{longest} at most ({LENGTH_KEY}) and sends the whole namespace for more: shorten "
                f"it, or set cluster.broker.{LENGTH_KEY} to {length}"
            )


def _sent(scenario: Scenario) -> Iterator[tuple[str, str, str]]:
    """Yield patterns that are sent, each with its key, and what a client writes before it."""
    if not isinstance(scenario, DiscoveryScenario):
        if scenario.pattern is not None:
            yield "load.pattern", scenario.pattern, ""
        return
    for number, group in enumerate(scenario.groups):
        if group.pattern is not None and group.family not in _SEND_NONE:
            asked = scenario.namespaces[slice(*(group.namespaces or (None, None)))]
            longest = max((each.name for each in asked), key=len)
            yield f"load.groups[{number}].pattern", group.pattern, f"persistent://{longest}/"
