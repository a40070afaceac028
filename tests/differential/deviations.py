"""Accepted differences, each with its reason: ``deviations.toml``."""

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

from tests.differential.cases import Step


@dataclass(frozen=True)
class Deviation:
    """Known class of differences.

    Attributes:
        name: Short description.
        kind: Prefix of the step's class.
        request: Text within the step.
        reason: Reason for the difference.
    """

    name: str
    kind: str
    request: re.Pattern[str]
    reason: str

    def covers(self, step: Step) -> bool:
        return step.kind.startswith(self.kind) and self.request.search(str(step)) is not None


def load_deviations(path: Path) -> list[Deviation]:
    """Read the list.

    Raises:
        ValueError: An entry lacks a reason.
    """
    entries = tomllib.loads(path.read_text(encoding="utf-8"))["deviation"]
    found = [
        Deviation(one["name"], one["kind"], re.compile(one["request"]), one["reason"].strip())
        for one in entries
    ]
    for one in found:
        if not one.reason:
            raise ValueError(f"{path.name}: {one.name} needs a reason")
    return found
