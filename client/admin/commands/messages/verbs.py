"""All verbs about messages and subscriptions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from client.admin.commands.messages import (
    cursors,
    lifecycle,
    reading,
    statistics,
    subscriptions,
)
from client.admin.commands.options import verb

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import typer

_VERBS: Mapping[str, Callable[..., Any]] = {
    **statistics.VERBS,
    **subscriptions.VERBS,
    **cursors.VERBS,
    **reading.VERBS,
    **lifecycle.VERBS,
}


def add_message_verbs(group: typer.Typer) -> None:
    """Give a group the verbs about messages and subscriptions."""
    for name, function in _VERBS.items():
        verb(group, name)(function)
