"""The options of a proof and its result: figures, and checks as sentences."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


class ProofError(Exception):
    """A proof could not run; one sentence."""


@dataclass(frozen=True)
class ProofOptions:
    """The options of a proof.

    Attributes:
        out: Folder of logs and results.
        quick: Run a small variant that shows the proof itself to work; rates are not judged.
        soak_seconds: Duration of soaks.
        note: Called with the progress.
        names: Numbers of names of ``growth.names``; empty for the default.
        stores: Its metadata stores; empty for all.
        profiles: Its profiles; empty for both.
        client: A command of a client's program, for ``clients.patience``; empty for none.
    """

    out: Path
    quick: bool = False
    soak_seconds: float = 300.0
    note: Callable[[str], None] = lambda _: None
    names: Sequence[int] = ()
    stores: Sequence[str] = ()
    profiles: Sequence[str] = ()
    client: str = ""


@dataclass(frozen=True)
class Check:
    """A requirement with its figures."""

    name: str
    passed: bool
    sentence: str


@dataclass
class ProofResult:
    """The result of a proof. Units are in the figures' names.

    Attributes:
        table: For people, shown below the checks; empty for none.
    """

    figures: dict[str, Any] = field(default_factory=dict)
    checks: list[Check] = field(default_factory=list)
    table: str = ""

    @property
    def passed(self) -> bool:
        """True if every check held; a proof without a check has failed."""
        return bool(self.checks) and all(check.passed for check in self.checks)

    def check(self, name: str, passed: bool, sentence: str) -> None:
        self.checks.append(Check(name, passed, sentence))

    def to_json(self) -> dict[str, Any]:
        """Return the content of the result's file."""
        return {
            "passed": self.passed,
            "figures": self.figures,
            "checks": [vars(check) for check in self.checks],
            "table": self.table,
        }
