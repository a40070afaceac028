"""From the ready line to the last signal."""

import asyncio
import io
import os
import signal
import sys

import pytest

from server.errors import StartError
from server.lifecycle import SignalSwitch, drain_on_signals, ready_line
from server.loop import run


async def test_the_first_signal_drains_and_the_second_ends_the_process() -> None:
    statuses: list[int] = []
    switch = SignalSwitch(statuses.append)
    switch.on_signal(signal.SIGTERM)
    assert switch.drain.is_set()
    assert statuses == []
    switch.on_signal(signal.SIGINT)
    switch.on_signal(signal.SIGTERM)
    assert statuses == [130, 143]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_real_signal_reaches_the_drain_event(number: signal.Signals) -> None:
    async def until_drained() -> bool:
        with drain_on_signals(SignalSwitch(lambda _: None)) as drain:
            os.kill(os.getpid(), number)
            return await drain.wait()

    assert run(until_drained())


async def test_signal_handlers_are_restored_when_the_block_ends() -> None:
    with drain_on_signals():
        pass
    assert not asyncio.get_running_loop().remove_signal_handler(signal.SIGTERM)


def test_the_ready_line_is_a_single_line_on_standard_output(capsys) -> None:
    ready_line("broker", "pulsar://127.0.0.1:6650", "http://127.0.0.1:8080")
    captured = capsys.readouterr()
    assert captured.out == "READY broker pulsar://127.0.0.1:6650 http://127.0.0.1:8080\n"
    assert captured.err == ""


def test_an_unwritable_ready_line_stops_the_start() -> None:
    class Closed(io.StringIO):
        def flush(self) -> None:
            raise BrokenPipeError(32, "Broken pipe")

    with pytest.raises(StartError, match="the ready line cannot be written: Broken pipe"):
        ready_line("broker", output=Closed())


def test_the_event_loop_is_uvloop_or_asyncio_without_uvloop(monkeypatch) -> None:
    async def loop_module() -> str:
        return type(asyncio.get_running_loop()).__module__

    assert run(loop_module()) == "uvloop"
    monkeypatch.setitem(sys.modules, "uvloop", None)
    assert run(loop_module()).startswith("asyncio")
