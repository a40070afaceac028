"""A target, as its module describes it."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """One target: a module with ``one_input(data)``, and what else it may have.

    Its module may have, too: ``ALLOWED`` (errors that are the answer to a bad input), ``seeds()``
    (inputs to begin with), ``mutated(data, most_bytes, seed)``, ``renewed()`` (makes what lasts
    longer than an input anew), ``FIGURES`` (counts, for the table).

    Attributes:
        title: The subject, for the table.
        module: Where ``one_input`` stands.
        instrumented: Packages whose branches guide the search.
        measured: Files whose lines are counted, as patterns relative to the repository.
        inputs: The whole amount.
        most_bytes: The longest input.
        compares: Comparisons guide the search as well, at twice the cost: for what parses bytes.
    """

    title: str
    module: str
    instrumented: tuple[str, ...]
    measured: tuple[str, ...]
    inputs: int
    most_bytes: int
    compares: bool = False

    def loaded(self) -> Loaded:
        """Import the module."""
        return Loaded(importlib.import_module(self.module))


class Loaded:
    """A target whose module is imported."""

    def __init__(self, module: object) -> None:
        self.one_input: Callable[[bytes], None] = module.one_input  # type: ignore[attr-defined]
        self.allowed: tuple[type[Exception], ...] = getattr(module, "ALLOWED", ())
        self.seeds: Callable[[], Sequence[bytes]] = getattr(module, "seeds", lambda: (b"",))
        self.mutated: Callable[[bytes, int, int], bytes] | None = getattr(module, "mutated", None)
        self.renewed: Callable[[], None] | None = getattr(module, "renewed", None)
        self.figures: Mapping[str, int] = getattr(module, "FIGURES", {})
