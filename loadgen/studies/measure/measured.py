"""``loadgen measure``: runs small loads against a broker, one after the other."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import yaml
from pydantic_core import to_jsonable_python

from loadgen.documents.model import Document
from loadgen.documents.service_times import KEY, PULSAR
from loadgen.places.experiment import experiment
from loadgen.plan.arrivals import Concurrency
from loadgen.results.results import read_run
from loadgen.studies.measure.fitted import fitted
from proto.version import VERSION

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from loadgen.documents.service_times import ServiceTimes
    from loadgen.places.options import RunOptions
    from loadgen.studies.measure.fitted import Fitted

FILE_NAME = "service-times.yaml"
_HEAD = "# What `loadgen measure` found. A scenario takes it: --set servers.service_times={file}\n"
_DIGITS, _WIDTH = 4, 100
PATTERN = ".*"
"""The pattern of a consumer of all topics, matched behind ``persistent://tenant/namespace/``."""
_MOST_CLIENTS, _MOST_WATCHES = 4_000, 40
_LOOKUP_TOPIC, _LOOKUP_SECONDS = "loadgen-measure", 0.1


class Measured(NamedTuple):
    """The measured service times of a broker, and where they come from.

    Attributes:
        times: Measured times, and for all others the times of profile ``pulsar``.
        fitted: The figures of the probes.
        by: The origin: server, moment, cores of this machine, namespaces.
    """

    times: ServiceTimes
    fitted: Fitted
    by: dict[str, Any]

    @property
    def kept(self) -> tuple[str, ...]:
        """The service times that were not measured but taken from profile ``pulsar``."""
        measured = {*self.fitted.times, "band"}
        return tuple(each for each in type(self.times).model_fields if each not in measured)

    def told(self) -> dict[str, Any]:
        """Return the whole measurement as a dictionary, for the file and for ``--json``."""
        return {
            KEY: self.times,
            "measured": self.fitted.times,
            "as_in_profile_pulsar": self.kept,
            "figures": self.fitted.figures,
            "by": self.by,
        }

    def text(self) -> str:
        """Return the contents of ``service-times.yaml``."""
        told = _rounded(to_jsonable_python(self.told()))
        return _HEAD.format(file=FILE_NAME) + yaml.safe_dump(told, sort_keys=False, width=_WIDTH)


def _rounded(told: Any) -> Any:  # noqa: ANN401 - of mappings, lists and numbers
    if isinstance(told, dict):
        return {key: _rounded(value) for key, value in told.items()}
    return float(f"{told:.{_DIGITS}g}") if isinstance(told, float) else told


def probes(sized: Sequence[str], fresh: Sequence[str], seconds: float) -> list[Document]:
    """Return the scenarios of the small loads that measure a broker, in order.

    Args:
        sized: Namespaces of different sizes, the smallest first.
        fresh: Namespaces without an earlier lookup.
        seconds: The longest time of each load.
    """
    ends, every, matching = (0, len(sized)), [*sized, *fresh], {"pattern": PATTERN}
    looked_up = (len(sized), len(every)) if fresh else ends
    lookups = {
        "do": "lookup",
        "count": looked_up[1] - looked_up[0],
        "namespaces": looked_up,
        "arrive": {"kind": "constant", "rate": 2 / _LOOKUP_SECONDS},
        "every": _LOOKUP_SECONDS,
        "topic": _LOOKUP_TOPIC,
    }
    watches = {"do": "watch", "count": _MOST_WATCHES}
    one, eight, many = ({"arrive": {"kind": "concurrency", "count": n}} for n in (1, 8, 64))
    # A broker still matches patterns for requests whose clients have left: the loads with many
    # requests at once come last.
    loads: dict[str, tuple[str, dict[str, Any]]] = {
        "lookups": ("lookups, the first of a namespace and later ones", lookups),
        "alone": ("lists, one at a time", one),
        "pattern": ("lists with a pattern, one at a time", {**one, **matching}),
        "watch": ("watches, one at a time", {**one, **watches}),
        "small-64": ("lists of the smallest namespace, 64 at once", {**many, "namespaces": (0, 1)}),
        "lists-8": ("lists, 8 at once", eight),
        "lists-64": ("lists, 64 at once", many),
        "pattern-64": ("lists with a pattern, 64 at once", {**many, **matching}),
    }
    usual = {"do": "list", "count": _MOST_CLIENTS, "namespaces": ends}
    return [
        Document.model_validate(
            {
                "name": name,
                "description": said,
                "topics": {"of": every},
                "clients": [{"name": name, **usual, **group}],
                "phases": {"measure": seconds, "drain": seconds},
            }
        )
        for name, (said, group) in loads.items()
    ]


def measured(
    options: RunOptions,
    sized: Sequence[str],
    fresh: Sequence[str],
    seconds: float,
    on_probe: Callable[[str], None] = lambda said: None,
) -> Measured:
    """Run small loads against a broker, one after the other; compute its service times.

    Args:
        options: The address of the broker, and the folder of the runs.
        sized: Namespaces of different sizes, the smallest first.
        fresh: Namespaces without an earlier lookup.
        seconds: The longest time of each probe.
        on_probe: Called with each probe at the beginning.

    Raises:
        LoadgenError: The broker cannot be reached, or answers too little.
    """
    runs = {}
    for document in probes(sized, fresh, seconds):
        on_probe(document.description)
        arrive = document.clients[0].arrive
        tasks = None if isinstance(arrive, Concurrency) and arrive.count > 1 else 1
        how = replace(options, name=document.name, tasks=tasks)
        runs[document.name] = experiment(document, how)
    found = fitted(runs, sized, fresh=bool(fresh))
    update = {name: figure.value for name, figure in found.times.items()} | {"band": found.band}
    by = {
        "server_version": read_run(runs["alone"])["server_version"],
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "cores_of_this_machine": os.cpu_count(),
        "namespaces": list(sized),
        "loadgen": VERSION,
    }
    return Measured(PULSAR.model_copy(update=update), found, by)
