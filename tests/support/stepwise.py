"""Work in steps, done to its end."""

from collections.abc import Generator
from typing import TypeVar

T = TypeVar("T")


def finished(work: Generator[None, None, T]) -> T:
    """Take all steps of some work, and return what it returns."""
    while True:
        try:
            next(work)
        except StopIteration as done:
            result: T = done.value
            return result
