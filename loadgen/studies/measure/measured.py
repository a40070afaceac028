"""Measures a broker that runs, by probes in turn, and writes its service times into a file."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import yaml

from loadgen.documents.service_times import KEY, PULSAR
from loadgen.places.experiment import experiment
from loadgen.results.results import read_run
from loadgen.studies.measure.fitted import fitted
from loadgen.studies.measure.probes import probes
from proto.version import VERSION

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from loadgen.documents.service_times import ServiceTimes
    from loadgen.places.options import RunOptions
    from loadgen.studies.measure.fitted import Fitted

FILE_NAME = "service-times.yaml"
_HEAD = "# What `loadgen measure` found. A scenario takes it: --set servers.service_times={file}\n"
_DIGITS, _WIDTH = 4, 100


@dataclass(frozen=True)
class Measured:
    """What was measured.

    Attributes:
        times: The service times: those that were found, and the others as in profile ``pulsar``.
        fitted: What the probes say.
        by: What produced it: server, moment, cores of this machine, samples.
    """

    times: ServiceTimes
    fitted: Fitted
    by: dict[str, Any]

    @property
    def kept(self) -> tuple[str, ...]:
        """The times that cannot be told from outside, or were not measured."""
        return tuple(
            each for each in type(self.times).model_fields if each not in self.fitted.times
        )

    def told(self) -> dict[str, Any]:
        """Return all of it, as the file and programs have it."""
        return {
            KEY: self.times.model_dump(),
            "measured": {name: asdict(each) for name, each in self.fitted.times.items()},
            "as_in_profile_pulsar": list(self.kept),
            "figures": {name: asdict(each) for name, each in self.fitted.figures.items()},
            "by": self.by,
        }

    def text(self) -> str:
        """Return the file's text."""
        head = _HEAD.format(file=FILE_NAME)
        return head + yaml.safe_dump(_rounded(self.told()), sort_keys=False, width=_WIDTH)


def _rounded(told: Any) -> Any:  # noqa: ANN401 - of mappings, lists and numbers
    if isinstance(told, dict):
        return {key: _rounded(value) for key, value in told.items()}
    return float(f"{told:.{_DIGITS}g}") if isinstance(told, float) else told


def measured(
    options: RunOptions,
    sized: Sequence[str],
    fresh: Sequence[str],
    seconds: float,
    on_probe: Callable[[str], None] = lambda said: None,
) -> Measured:
    """Run the probes against a broker, one after the other.

    Args:
        options: Where it is, and where the runs go.
        sized: Namespaces of different sizes, the smallest first.
        fresh: Namespaces that nobody has looked a topic up in.
        seconds: How long each probe lasts at most.
        on_probe: Told what is measured next.

    Raises:
        LoadgenError: It cannot be reached, or answers too little.
    """
    runs = {}
    for each in probes(sized, fresh, seconds):
        on_probe(each.said)
        alone = 1 if each.at_once == 1 else None
        runs[each.name] = experiment(each.document, replace(options, name=each.name, tasks=alone))
    found = fitted(runs, sized, fresh=bool(fresh))
    update = {name: figure.value for name, figure in found.times.items()}
    by = {
        "server_version": read_run(runs["alone"])["server_version"],
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "cores_of_this_machine": os.cpu_count(),
        "namespaces": list(sized),
        "loadgen": VERSION,
    }
    return Measured(PULSAR.model_copy(update=update), found, by)
