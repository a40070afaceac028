"""Packages that come with an extra of a distribution: a missing one is named with its remedy."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

CLIENT = "pulsar-floodgate-client"
SERVERS = "pulsar-floodgate"


class MissingExtraError(ImportError):
    """A package is not installed; a sentence with the extra that brings it."""


@contextmanager
def extra(name: str, distribution: str = CLIENT) -> Iterator[None]:
    """Import an extra's packages within this block.

    Raises:
        MissingExtraError: One is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"the package {error.name} is missing: pip install '{distribution}[{name}]'",
            name=error.name,
        ) from None
