"""The tests' event loops: tests that depend on socket closing run on both."""

import asyncio
from collections.abc import Callable, Mapping

import pytest
import uvloop

BOTH_LOOPS = {
    "test_client_killed",
    "test_controlled_peer",
    "test_drain",
    "test_otlp_export",
    "test_pipe",
    "test_throttling",
}


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Return asyncio's loop and, for some modules, uvloop's, the processes' loop."""
    loops: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {"asyncio": asyncio.new_event_loop}
    if item.module.__name__.rpartition(".")[2] in BOTH_LOOPS:
        loops["uvloop"] = uvloop.new_event_loop
    return loops
