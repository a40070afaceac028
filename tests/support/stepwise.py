"""Incremental work, run to its end."""

from collections.abc import Generator
from typing import TypeVar

T = TypeVar("T")


def finished(work: Generator[None, None, T]) -> T:
    """Run all steps and return the result."""
    while True:
        try:
            next(work)
        except StopIteration as done:
            result: T = done.value
            return result
