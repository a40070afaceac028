"""Tasks and driver over the control channel: one start by several clocks, totals, early end."""

import asyncio
import json
import queue
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

import pytest

from loadgen.engine import control, control_server
from loadgen.engine.control import (
    LARGEST_LINE_BYTES,
    ControlAddress,
    ControlClient,
    Start,
    line,
    proof,
)
from loadgen.engine.control_server import MOST_SKEW_SECONDS, ControlServer
from loadgen.engine.rows import Outcome, RequestRow
from loadgen.engine.totals import BUCKETS, Totals
from loadgen.errors import LoadgenError


def nobody() -> None:
    """No-op."""


def ahead(seconds: float) -> Callable[[], float]:
    return lambda: time.time() + seconds


@asynccontextmanager
async def tasks(
    address: ControlAddress, count: int, stop: Callable[[], None] = nobody
) -> AsyncIterator[list[ControlClient]]:
    made = [ControlClient(number, address) for number in range(count)]
    try:
        for each in made:
            await each.connect()
            each.listen(stop)
        yield made
    finally:
        for each in made:
            await each.close()


async def test_tasks_with_differing_clocks_start_at_the_same_time() -> None:
    # Given a host whose clock is three seconds ahead
    agreed: queue.Queue[float] = queue.Queue()
    server = ControlServer(2, lambda _: None, agreed.put)
    with server.listening() as address:
        async with tasks(address, 2) as (right, fast):
            starts = await asyncio.gather(right.start(time.time), fast.start(ahead(3.0)))
    t0 = agreed.get(timeout=60)
    assert server.agreed
    assert [each.epoch_seconds for each in starts] == [t0, t0]
    for start, skew in zip(starts, (0.0, 3.0), strict=True):
        assert start.ahead_seconds == pytest.approx(skew, abs=start.doubt_seconds + 0.001)
        assert start.own_epoch_seconds == pytest.approx(t0 + start.ahead_seconds)


async def test_a_host_clock_that_is_minutes_off_fails_the_start_of_all_tasks() -> None:
    with ControlServer(2, lambda _: None).listening() as address:
        async with tasks(address, 2) as (right, wrong):
            starts = right.start(time.time), wrong.start(ahead(-2 * MOST_SKEW_SECONDS))
            said = await asyncio.gather(*starts, return_exceptions=True)
    assert all(isinstance(each, LoadgenError) for each in said)
    assert {str(each) for each in said} == {
        "the clock of task 1's host is 120 s behind the driver's: set it (NTP), and run again"
    }


async def test_hundreds_of_tasks_ready_simultaneously_agree_on_a_single_start() -> None:
    count = 400
    with ControlServer(count, lambda _: None).listening() as address:
        async with tasks(address, count) as made:
            starts = await asyncio.gather(*(each.start(time.time) for each in made))
    assert len({each.epoch_seconds for each in starts}) == 1


async def test_no_task_starts_before_the_last_task_is_ready() -> None:
    with ControlServer(2, lambda _: None).listening() as address:
        async with tasks(address, 2) as (early, late):
            waiting = asyncio.ensure_future(early.start(time.time))
            early.report(Totals(connected=1))
            assert not waiting.done()
            start = await late.start(time.time)
            assert (await waiting).epoch_seconds == start.epoch_seconds


async def test_after_the_loss_of_a_task_the_remaining_tasks_end_and_report() -> None:
    # Given a load of two tasks
    failed = LoadgenError("killed")
    told = asyncio.Event()
    server = ControlServer(2, lambda _: None)
    with server.listening() as address:
        async with tasks(address, 2, told.set) as (left, gone):
            with pytest.raises(LoadgenError, match="killed"):
                server.rest(failed)  # The load has not begun.
            told.clear()
            await asyncio.gather(left.start(time.time), gone.start(time.time))
            # When a task disconnects and reconnects
            await gone.close()
            rest = asyncio.create_task(asyncio.to_thread(server.rest, failed))
            await told.wait()
            again = ControlClient(1, address)
            with pytest.raises(LoadgenError, match="task 1 has connected before"):
                await again.connect()
            await again.close()
            left.end({"task": 0})
            await left.close()
            facts, lost = await rest
    assert facts == [{"task": 0}]
    assert lost == "lost are tasks 1 on 127.0.0.1, of 2: killed"


async def test_totals_of_all_tasks_are_summed() -> None:
    seen: queue.Queue[Totals] = queue.Queue()
    with ControlServer(2, seen.put).listening() as address:
        async with tasks(address, 2) as (one, other):
            one.report(Totals(connected=10, started=1))
            await asyncio.to_thread(seen.get, timeout=60)
            other.report(Totals(connected=10, started=1))
            await asyncio.to_thread(seen.get, timeout=60)
            one.report(Totals(connected=10, started=5))
            last = await asyncio.to_thread(seen.get, timeout=60)
    assert (last.connected, last.started) == (20, 6)


async def test_totals_of_a_hundred_groups_fit_into_a_control_line() -> None:
    totals = Totals(phase="warm-up")
    for number in range(100):
        name = f"group-{number:034}"
        totals.latencies[name] = [10**7] * BUCKETS
        totals.ended.update({f"{name} list {each}": 10**9 for each in Outcome})
        totals.clients.update({f"{name} {what}": 10**6 for what in ("started", "back")})
    seen: queue.Queue[Totals] = queue.Queue()
    with ControlServer(1, seen.put).listening() as address:
        async with tasks(address, 1) as (task,):
            task.report(totals)
            assert await asyncio.to_thread(seen.get, timeout=60) == totals


async def test_tasks_are_stopped_early_now_or_as_soon_as_they_connect() -> None:
    told: asyncio.Queue[None] = asyncio.Queue()
    server = ControlServer(2, lambda _: None)
    with server.listening() as address:
        stop = lambda: told.put_nowait(None)  # noqa: E731
        one, late = ControlClient(0, address), ControlClient(1, address)
        await one.connect()
        one.listen(stop)
        one.report(Totals())
        server.stop()
        await told.get()
        await late.connect()
        late.listen(stop)
        await told.get()
        await one.close()
        await late.close()


async def test_a_peer_without_the_secret_is_closed_and_changes_no_totals() -> None:
    seen: queue.Queue[Totals] = queue.Queue()
    with ControlServer(1, seen.put).listening() as address:
        # Given peers without the secret, and peers with another protocol
        wrong = address.model_copy(update={"key": "guessed"})
        for hello in (
            b'{"task": 0}\n',
            b"GET / HTTP/1.1\r\n",
            b"[]\n",
            b"\xff\n",
            b"[" * 100_000 + b"\n",
            b'{"task": 0, "proof": {}}\n',
            b"9" * 4_000_000,
        ):
            reader, writer = await asyncio.open_connection(address.host, address.port)
            writer.write(hello)
            assert json.loads(await reader.readline()).keys() == {"nonce"}
            with suppress(ConnectionResetError):  # The line was not read to the end.
                assert not await reader.read()
            writer.close()
        stranger = ControlClient(0, wrong)
        with pytest.raises(LoadgenError, match="does not admit task 0: it has another run"):
            await stranger.connect()
        await stranger.close()
        async with tasks(address, 1) as (task,):
            task.report(Totals(started=1))
            assert (await asyncio.to_thread(seen.get, timeout=60)).started == 1
            assert isinstance(await task.start(time.time), Start)
    assert seen.empty()


async def test_an_unreachable_driver_is_reported_with_the_setting_to_change(monkeypatch) -> None:
    monkeypatch.setattr(control, "HELLO_SECONDS", 0.2)
    with ControlServer(1, lambda _: None).listening() as address:
        pass
    with pytest.raises(LoadgenError, match=r"task 3 on .*failed.*spark\.driver\.host"):
        await ControlClient(3, address).connect()


async def test_a_task_retries_if_the_driver_closes_its_first_connection() -> None:
    # A peer closing the first connection stands for a driver under load.
    asked: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if asked:
            writer.write(line(nonce="n"))
            told = json.loads(await reader.readline())
            assert told["proof"] == proof("k", "n", 0)
            writer.write(line(welcome={"access": {"secret": "s"}}))
        asked.append(b"")
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1") as server:
        port = server.sockets[0].getsockname()[1]
        task = ControlClient(0, ControlAddress(host="127.0.0.1", port=port, key="k"))
        assert await task.connect() == {"access": {"secret": "s"}}
        assert len(asked) == 2
        await task.close()


async def test_a_task_does_not_retry_after_a_truncated_welcome() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(line(nonce="n"))
        await reader.readline()
        writer.write(b'{"welcome": {')
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1") as server:
        port = server.sockets[0].getsockname()[1]
        task = ControlClient(0, ControlAddress(host="127.0.0.1", port=port, key="k"))
        with pytest.raises(LoadgenError, match="or the connection broke"):
            await task.connect()
        await task.close()


async def test_unauthenticated_connections_do_not_block_tasks() -> None:
    with ControlServer(1, lambda _: None).listening() as address:
        strangers = []
        for _ in range(40):
            strangers.append(await asyncio.open_connection(address.host, address.port))
            await strangers[-1][0].readline()
        async with tasks(address, 1) as (task,):
            assert isinstance(await task.start(time.time), Start)
        for _, writer in strangers:
            writer.close()


def test_credentials_too_large_for_a_control_line_are_refused_before_the_run() -> None:
    carried = {"access": {"trust": "x" * LARGEST_LINE_BYTES}}
    server = ControlServer(1, lambda _: None)
    with (
        pytest.raises(LoadgenError, match="name a smaller file"),
        server.listening(carried=carried),
    ):
        pass


async def test_a_driver_clock_that_is_set_back_yields_no_negative_uncertainty(monkeypatch) -> None:
    readings = iter([1000.0])
    monkeypatch.setattr(control_server.time, "time", lambda: next(readings, 995.0))
    with ControlServer(1, lambda _: None).listening() as address:
        async with tasks(address, 1) as (task,):
            start = await task.start(lambda: 1000.0)
    assert start.doubt_seconds >= 0


async def test_credentials_are_sent_to_tasks_and_are_not_in_the_address() -> None:
    carried = {"access": {"secret": "token"}, "store": {"AWS_REGION": "x"}}
    with ControlServer(1, lambda _: None).listening(carried=carried) as address:
        assert "token" not in address.model_dump_json()
        task = ControlClient(0, address)
        assert await task.connect() == carried
        await task.close()


async def test_a_failure_after_all_tasks_have_reported_loses_no_facts() -> None:
    server = ControlServer(2, lambda _: None)
    with server.listening() as address:
        async with tasks(address, 2) as (one, other):
            await asyncio.gather(one.start(time.time), other.start(time.time))
            other.end({"task": 1})
            one.end({"task": 0})
            await asyncio.gather(one.close(), other.close())
            facts, lost = await asyncio.to_thread(server.rest, LoadgenError("disk full"))
    assert facts == [{"task": 0}, {"task": 1}]
    assert lost == "the run failed at its end: disk full"


async def test_a_task_fails_if_the_driver_disconnects_before_the_start() -> None:
    with ControlServer(2, lambda _: None).listening() as address:
        task = ControlClient(0, address)
        await task.connect()
        task.listen(nobody)
        waiting = asyncio.ensure_future(task.start(time.time))
    with pytest.raises(LoadgenError, match="the driver is gone"):
        await waiting
    task.report(Totals())  # without a listener
    await task.close()


def row(operation: str, outcome: Outcome, seconds: float = 0.2) -> RequestRow:
    return RequestRow(0, "g", "go", operation, "t/n", due=1.0, done=1.0 + seconds, outcome=outcome)


def test_totals_of_two_tasks_add_up_and_keep_the_later_phase() -> None:
    one, other = Totals(phase="warm-up"), Totals(phase="measure")
    one.end(row("list", Outcome.ANSWERED))
    other.end(row("list", Outcome.ANSWERED))
    other.end(row("watch", Outcome.REFUSED))
    total = one + other
    assert sum(total.all_latencies) == max(total.latencies["g"]) == 2
    assert total.ended == {"g list answered": 2, "g watch refused": 1}
    assert total.of(Outcome.ANSWERED, Outcome.REFUSED) == 3
    assert total.phase == "measure"
