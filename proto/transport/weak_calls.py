"""Callbacks that do not keep their owner alive, so that lost connections are freed at once.

A connection owns its parts, and the parts notify the connection. If the references formed a cycle,
thousands of lost connections would wait for a full collection, which blocks the event loop in
proportion to the number of objects: 0.3 s for 5,000 connections.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import ref

if TYPE_CHECKING:
    from collections.abc import Callable


def weakly(method: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a bound method in a function that does nothing once the method's object is freed."""
    owner, name = ref(method.__self__), method.__name__  # type: ignore[attr-defined]

    def call(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401 - as the method takes and returns
        there = owner()
        return None if there is None else getattr(there, name)(*arguments, **named)

    return call
