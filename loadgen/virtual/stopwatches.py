"""Stops the watches by which servers cut their own work into turns.

How long Python took must not decide what happens in virtual time: there a turn ends by what was
done, not by how long that took.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from importlib import import_module
from typing import TYPE_CHECKING
from unittest.mock import patch

from server.module_names import module_name

if TYPE_CHECKING:
    from collections.abc import Iterator

CUT_BY_TIME = (
    "broker.messages.stores.unneeded",
    "broker.watches.names.disposal",
    "proto.transport.connection",
    "server.tasks.cooperative",
    "server.tasks.shared_turns",
)
"""Modules that ask for ``perf_counter`` to end a turn."""


@contextmanager
def stopped_watches() -> Iterator[None]:
    """Let no turn end by the time it takes, while a block runs."""
    with ExitStack() as stack:
        for name in CUT_BY_TIME:
            module = import_module(module_name(name))
            stack.enter_context(patch.object(module, "perf_counter", lambda: 0.0))
        yield
