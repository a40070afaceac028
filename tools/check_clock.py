"""Refuse calls of clocks and timers outside limiter/clock.py, so that tests can skip time.

Finds calls that read a clock, sleep or arm a timer. Two uses are allowed by name: measuring the
duration of the project's own work (perf_counter), and the wall clock of a metric's _created.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
CLOCK_MODULE = Path("limiter/clock.py")
FORBIDDEN = {
    ("time", "sleep"),
    ("time", "monotonic"),
    ("time", "monotonic_ns"),
    ("time", "time"),
    ("asyncio", "timeout"),
    ("asyncio", "timeout_at"),
    ("asyncio", "wait_for"),
    ("loop", "call_later"),
    ("loop", "call_at"),
    ("loop", "time"),
}
# A load generator measures real time, on real clocks, in separate processes.
MEASURING_PACKAGE = "loadgen"


def main() -> None:
    """Check the packages named on the command line; print violations and exit with 1."""
    found = [
        f"{path}:{line}: {call} outside limiter/clock.py"
        for package in sys.argv[1:]
        if package != MEASURING_PACKAGE
        for path in sorted((ROOT / package).rglob("*.py"))
        if path.relative_to(ROOT) != CLOCK_MODULE
        for line, call in forbidden_calls(path)
    ]
    if found:
        sys.exit("\n".join(found))
    print("No clock is read outside limiter/clock.py")


def forbidden_calls(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the line number and name of every forbidden call in a module."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            name = called_name(node.func)
            if name in FORBIDDEN or (len(name) == 2 and name[1] == "call_later"):
                yield node.lineno, ".".join(name)
            elif len(name) == 2 and name == ("asyncio", "sleep") and not is_zero(node):
                yield node.lineno, "asyncio.sleep of more than 0"


def called_name(function: ast.expr) -> tuple[str, ...]:
    """Return the last two parts of a called function's name; get_running_loop() counts as loop."""
    if not isinstance(function, ast.Attribute):
        return ()
    owner = function.value
    if isinstance(owner, ast.Name):
        return (owner.id.removeprefix("_"), function.attr)
    if isinstance(owner, ast.Attribute):
        return (owner.attr.removeprefix("_"), function.attr)
    if isinstance(owner, ast.Call):
        inner = called_name(owner.func)
        return ("loop", function.attr) if inner[-1:] == ("get_running_loop",) else ()
    return ()


def is_zero(call: ast.Call) -> bool:
    """Return True if the only argument of a call is the literal 0."""
    return (
        len(call.args) == 1 and isinstance(call.args[0], ast.Constant) and call.args[0].value == 0
    )


if __name__ == "__main__":
    main()
