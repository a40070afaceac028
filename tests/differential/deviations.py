"""The list of differences that stay, each with its reason: ``deviations.toml``."""

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

from tests.differential.cases import Step


@dataclass(frozen=True)
class Deviation:
    """A class of differences that is known.

    Attributes:
        name: In a few words.
        kind: What the class of a step begins with.
        request: Found in the text of the step.
        reason: Why it stays.
    """

    name: str
    kind: str
    request: re.Pattern[str]
    reason: str

    def covers(self, step: Step) -> bool:
        """Tell whether a step is of this class."""
        return step.kind.startswith(self.kind) and self.request.search(str(step)) is not None


def load_deviations(path: Path) -> list[Deviation]:
    """Read the list.

    Raises:
        ValueError: An entry gives no reason.
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
