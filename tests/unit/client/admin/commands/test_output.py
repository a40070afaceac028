"""Names are written while further names arrive."""

import asyncio
import sys
import threading
from collections.abc import AsyncIterator

import pytest

from client.admin.commands import output as admin_output
from client.admin.commands.output import Output
from client.admin.errors import AdminDisconnectedError


class Pager:
    """A standard output that blocks until released."""

    def __init__(self) -> None:
        self.turned = threading.Event()
        self.text = ""

    def write(self, text: str) -> None:
        assert self.turned.wait(10), "nobody turned the page"
        self.text += text

    def isatty(self) -> bool:
        return False


@pytest.fixture
def pager() -> Pager:
    return Pager()


async def test_names_are_received_while_a_write_to_standard_output_blocks(
    pager: Pager, monkeypatch
) -> None:
    async def batches() -> AsyncIterator[list[str]]:
        for number in range(10):
            yield [str(number)]
        pager.turned.set()

    monkeypatch.setattr(sys, "stdout", pager)
    await Output(as_json=False).stream(batches())
    assert pager.text == "".join(f"{number}\n" for number in range(10))


async def test_names_received_ahead_of_a_blocked_write_are_bounded(
    pager: Pager, monkeypatch
) -> None:
    taken: list[str] = []

    async def batches() -> AsyncIterator[list[str]]:
        for number in range(100):
            taken.append(str(number))
            yield [str(number)]

    monkeypatch.setattr(sys, "stdout", pager)
    monkeypatch.setattr(admin_output, "MAX_BATCHES_AHEAD", 5)
    streaming = asyncio.create_task(Output(as_json=False).stream(batches()))
    for _ in range(500):
        await asyncio.sleep(0)
    # One name is being written, one waits for a place.
    assert len(taken) == 5 + 2
    pager.turned.set()
    await streaming
    assert pager.text == "".join(f"{name}\n" for name in taken)


async def test_names_received_before_an_error_are_written_before_the_error_is_raised(
    pager: Pager, monkeypatch
) -> None:
    async def batches() -> AsyncIterator[list[str]]:
        yield ["one", "two"]
        raise AdminDisconnectedError("gone")

    monkeypatch.setattr(sys, "stdout", pager)
    pager.turned.set()
    with pytest.raises(AdminDisconnectedError):
        await Output(as_json=False).stream(batches())
    assert pager.text == "one\ntwo\n"


async def test_a_broken_pipe_ends_the_stream_of_names(monkeypatch: pytest.MonkeyPatch) -> None:
    class Closed:
        def write(self, text: str) -> None:
            raise BrokenPipeError

    async def batches() -> AsyncIterator[list[str]]:
        while True:
            yield ["name"]

    monkeypatch.setattr(sys, "stdout", Closed())
    with pytest.raises(BrokenPipeError):
        await Output(as_json=False).stream(batches())
