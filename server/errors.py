"""Exceptions that prevent the start of a server process, with messages for the operator.

StartError
    ConfigError     the configuration is wrong; lists every problem
    ListenError     an address cannot be listened on
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class StartError(Exception):
    """The process cannot start; ``str()`` is the message for the operator."""


class ConfigError(StartError):
    """The configuration is invalid; the error lists every problem.

    Attributes:
        problems: A sentence for each problem, in order of discovery.
    """

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__(*self.problems)

    def __str__(self) -> str:
        return "\n".join(self.problems)


class ListenError(StartError):
    """An address cannot be listened on: it is in use, another machine's, or not permitted."""
