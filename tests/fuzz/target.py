"""Target, as described by its module."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """Module with ``one_input(data)``.

    Optional names: ``ALLOWED`` (errors that answer bad inputs), ``seeds()`` (initial inputs),
    ``mutated(data, most_bytes, seed)``, ``renewed()`` (renews state shared by inputs), ``FIGURES``
    (counts for the table).

    Attributes:
        title: The subject, for the table.
        module: Module of ``one_input``.
        instrumented: Packages whose branches guide the search.
        measured: Files whose lines are counted, as patterns relative to the repository.
        inputs: The full amount.
        most_bytes: The longest input.
        compares: Comparisons also guide the search, at twice the cost: for byte parsers.
    """

    title: str
    module: str
    instrumented: tuple[str, ...]
    measured: tuple[str, ...]
    inputs: int
    most_bytes: int
    compares: bool = False

    def loaded(self) -> Loaded:
        return Loaded(importlib.import_module(self.module))


class Loaded:
    def __init__(self, module: object) -> None:
        self.one_input: Callable[[bytes], None] = module.one_input  # type: ignore[attr-defined]
        self.allowed: tuple[type[Exception], ...] = getattr(module, "ALLOWED", ())
        self.seeds: Callable[[], Sequence[bytes]] = getattr(module, "seeds", lambda: (b"",))
        self.mutated: Callable[[bytes, int, int], bytes] | None = getattr(module, "mutated", None)
        self.renewed: Callable[[], None] | None = getattr(module, "renewed", None)
        self.figures: Mapping[str, int] = getattr(module, "FIGURES", {})
