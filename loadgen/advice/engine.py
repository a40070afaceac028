"""The engine of a search: the outcome of a setting."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadgen.advice.bounds import expected

if TYPE_CHECKING:
    from collections.abc import Callable

    from loadgen.advice.advice import Request
    from loadgen.advice.goal import Outcome
    from loadgen.advice.limits import Setting


def engine_for(request: Request) -> Callable[[Setting], Outcome]:
    """Return what tells the outcome of a setting."""
    return lambda setting: expected(request.workload, request.goal, setting)
