"""Imports of optional packages, with errors that name the pip extra to install."""

from __future__ import annotations

from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

CLIENT = "pulsar-floodgate-client"
SERVERS = "pulsar-floodgate"


class MissingExtraError(ImportError):
    """An optional package is missing or too old; the text has the ``pip install`` command."""


@contextmanager
def extra(name: str, distribution: str = CLIENT, needed_by: str = "") -> Iterator[None]:
    """Run the imports of an optional package in a ``with`` block, explaining a missing package.

    Args:
        name: Name of the pip extra.
        distribution: The distribution with the extra.
        needed_by: The setting or option that needs the extra, to begin the sentence.

    Raises:
        MissingExtraError: A package is not installed, or too old.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        subject = f"{needed_by}: the package {package}" if needed_by else f"the package {package}"
        fault, option = ("missing", "") if find_spec(package) is None else ("too old", "--upgrade ")
        raise MissingExtraError(
            f"{subject} is {fault}: pip install {option}'{distribution}[{name}]'",
            name=error.name,
        ) from None
