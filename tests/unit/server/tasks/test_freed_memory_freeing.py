"""Freed lists: long lists in a thread, and in steps."""

import asyncio
import threading

import pytest

from server.tasks import freed_memory
from server.tasks.freed_memory import free


class Freed:
    """Records the thread of the deletion."""

    threads: list[threading.Thread]

    def __del__(self) -> None:
        self.threads.append(threading.current_thread())


async def test_a_long_list_is_freed_in_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(freed_memory, "FREED_AT_ONCE", 3)
    Freed.threads = []
    values = [Freed() for _ in range(10)]
    await free(values)
    assert (values, len(Freed.threads)) == ([], 10)
    assert threading.current_thread() not in Freed.threads


async def test_a_short_list_or_another_type_is_not_freed_in_a_thread(monkeypatch) -> None:
    monkeypatch.setattr(freed_memory, "FREED_AT_ONCE", 3)
    monkeypatch.setattr(asyncio, "to_thread", None)
    values = [1, 2, 3]
    await free(values)
    await free((1, 2, 3, 4, 5))
    assert values == [1, 2, 3]
