"""Connections made once and shared by all callers."""

import asyncio
import gc
import socket
import threading
from types import SimpleNamespace
from unittest.mock import AsyncMock

import pytest

from client.authentication.authentication import AuthenticationToken
from client.connection import pool as module
from client.connection.connect_options import ConnectOptions, current_auth_data
from client.connection.errors import ClientClosedError
from client.connection.pool import ConnectionPool, open_connection
from client.connection.service_url import server_address
from client.exceptions import ConnectError, ErrorGettingAuthenticationData
from limiter.clock import LoopClock
from tests.support.clocks.manual_clock import ManualClock
from tests.support.clocks.settle import settle, started
from tests.support.peers.byte_broker import ByteBroker, connected_command
from tests.support.peers.frames import frame
from tests.support.processes.cluster import until


def address(broker: ByteBroker) -> tuple[str, int]:
    return server_address(broker.url)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("pulsar://host:1234", ("host", 1234)),
        ("pulsar://host", ("host", 6650)),
        ("pulsar://host/", ("host", 6650)),
        ("pulsar://[::1]:99", ("::1", 99)),
    ],
)
def test_a_service_url_is_a_host_and_a_port(url: str, expected: tuple[str, int]) -> None:
    assert server_address(url) == expected


@pytest.mark.parametrize(
    "url",
    [
        "",
        "host:6650",
        "http://host:6650",
        "pulsar+ssl://host:6651",
        "pulsar://",
        "pulsar://:6650",
        "pulsar://host:none",
        "pulsar://host:99999",
        "pulsar://[::1:6650",
        "pulsar://user@host:6650",
        "pulsar://host:6650/path",
        "pulsar://host:6650?a=b",
    ],
)
def test_an_invalid_service_url_is_refused(url: str) -> None:
    with pytest.raises(ConnectError, match="is not a service URL"):
        server_address(url)


async def test_concurrent_callers_share_a_single_connection() -> None:
    async with ByteBroker(connected_command()) as broker:
        pool = ConnectionPool()
        found = await asyncio.gather(*(pool.get(address(broker)) for _ in range(10)))
        assert len(set(found)) == 1
        await pool.close()


async def test_a_cancelled_caller_does_not_cancel_the_shared_connection_attempt() -> None:
    async with ByteBroker(None) as broker:
        pool = ConnectionPool()
        first = await started(pool.get(address(broker)))
        second = await started(pool.get(address(broker)))
        far = await broker.connection()
        first.cancel()
        await settle()
        far.writer.write(frame(connected_command()))
        assert not (await second).closed
        await pool.close()


async def test_a_lost_connection_is_replaced() -> None:
    async with ByteBroker(connected_command()) as broker:
        pool = ConnectionPool()
        first = await pool.get(address(broker))
        (await broker.connection()).writer.transport.abort()
        await until(lambda: first.closed)
        second = await pool.get(address(broker))
        assert second is not first
        assert not second.closed
        await pool.close()


async def test_a_failed_attempt_is_reported_to_all_waiters_and_retried_by_the_next_caller() -> None:
    broker = ByteBroker(connected_command())
    async with broker:
        pass
    pool = ConnectionPool()
    for _ in range(2):
        found = await asyncio.gather(
            *(pool.get(address(broker)) for _ in range(3)), return_exceptions=True
        )
        assert [type(one) for one in found] == [ConnectError] * 3
        assert not pool._connections


async def test_a_failed_attempt_without_a_waiter_logs_nothing(caplog) -> None:
    async with ByteBroker(None) as broker:
        pool = ConnectionPool()
        left = await started(pool.get(address(broker)))
        far = await broker.connection()
        left.cancel()
        await settle()
        far.writer.transport.abort()
        await until(lambda: not pool._connections)
        del left
        gc.collect()
    assert caplog.messages == []


async def test_an_unreachable_server_creates_no_connection_object(monkeypatch) -> None:
    made = []
    monkeypatch.setattr(module, "ClientCnx", lambda *_: made.append(1))
    async with ByteBroker(connected_command()) as broker:
        pass
    with pytest.raises(ConnectError, match="cannot be reached"):
        await open_connection(address(broker))
    assert not made


async def test_a_connection_closed_right_after_opening_is_reported_immediately(monkeypatch) -> None:
    async def closed(*_: object) -> tuple[object, None]:
        return SimpleNamespace(is_closing=lambda: True), None

    monkeypatch.setattr(asyncio.get_running_loop(), "create_connection", closed)
    with pytest.raises(ConnectError, match="closed the connection"):
        await open_connection(("127.0.0.1", 1), clock=ManualClock())


async def test_a_server_that_accepts_no_connection_times_out_after_ten_seconds(monkeypatch) -> None:
    clock = ManualClock()

    async def never(*_: object) -> None:
        await asyncio.get_running_loop().create_future()

    monkeypatch.setattr(asyncio.get_running_loop(), "create_connection", never)
    waiting = await started(open_connection(("127.0.0.1", 1), clock=clock))
    clock.advance(10)
    with pytest.raises(ConnectError, match=r"127\.0\.0\.1:1 does not accept connections"):
        await waiting


async def test_an_invalid_host_name_raises_a_connect_error() -> None:
    with pytest.raises(ConnectError, match="cannot be reached"):
        await open_connection(("a" * 70, 6650))


async def test_a_connection_to_more_than_max_servers_is_refused() -> None:
    async with ByteBroker(connected_command()) as one, ByteBroker(connected_command()) as two:
        pool = ConnectionPool(ConnectOptions(max_servers=1))
        await pool.get(address(one))
        with pytest.raises(ConnectError, match="1 servers are open already"):
            await pool.get(address(two))
        await pool.close()
    assert ConnectOptions().max_servers == 1_000


async def test_a_closed_pool_refuses_callers_and_closes_its_connections() -> None:
    async with ByteBroker(connected_command()) as broker:
        pool = ConnectionPool()
        cnx = await pool.get(address(broker))
        await pool.close()
        await pool.close()
        with pytest.raises(ClientClosedError):
            await pool.get(address(broker))
        await cnx.wait_closed()


async def test_closing_the_pool_aborts_a_connection_attempt_in_flight() -> None:
    async with ByteBroker(None) as broker:
        pool = ConnectionPool()
        waiting = await started(pool.get(address(broker)))
        far = await broker.connection()
        await pool.close()
        await settle()
        with pytest.raises(ClientClosedError, match="the client is closed"):
            await waiting
        assert await far.reader.read() == b""


async def test_a_host_with_a_dead_first_address_is_reached_at_its_second_address(
    monkeypatch,
) -> None:
    async with ByteBroker(connected_command()) as broker:
        host, port = address(broker)
        with socket.socket() as dead:
            dead.bind(("127.0.0.9", port))
            dead.listen(0)
            with socket.create_connection(("127.0.0.9", port)):  # The backlog is full.
                found = [
                    (socket.AF_INET, socket.SOCK_STREAM, 6, "", (one, port))
                    for one in ("127.0.0.9", host)
                ]
                resolved = AsyncMock(return_value=found)
                monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", resolved)
                cnx = await open_connection(("broker.example", port))
        assert cnx.peer == f"{host}:{port}"
        cnx.abort()


class Failing:
    """Credentials failing with an unspecified error."""

    method_name = "token"

    def auth_data(self) -> bytes:
        raise KeyError("vault")


class Nameless(Failing):
    """Credentials without a method name."""

    @property
    def method_name(self) -> str:
        raise NotImplementedError

    def auth_data(self) -> bytes:
        return b""


@pytest.mark.parametrize(
    ("credentials", "sentence"),
    [(Failing(), r"of Failing failed: KeyError\('vault'\)"), (Nameless(), "of Nameless failed")],
    ids=["failing", "without a method name"],
)
async def test_unusable_credentials_raise_a_client_error_and_open_no_connection(
    credentials, sentence
) -> None:
    options = ConnectOptions(credentials=credentials)
    with pytest.raises(ErrorGettingAuthenticationData, match=sentence):
        await open_connection(("127.0.0.1", 1), options)


class Blocking:
    """Credentials that block until released."""

    method_name = "token"

    def __init__(self) -> None:
        self.go = threading.Event()

    def auth_data(self) -> bytes:
        assert self.go.wait(10)
        return b"late"


async def test_blocking_credentials_do_not_block_the_event_loop() -> None:
    blocking = Blocking()
    asking = await started(current_auth_data(blocking, LoopClock(), 10.0))
    blocking.go.set()  # Never reached if this turn had to wait.
    assert await asking == b"late"


async def test_credentials_that_never_arrive_time_out() -> None:
    clock = ManualClock()

    async def never() -> str:
        return await asyncio.Future()

    asking = await started(current_auth_data(AuthenticationToken(never), clock, 30.0))
    await settle()
    clock.advance(30.0)
    with pytest.raises(ErrorGettingAuthenticationData, match="did not arrive in 30 s"):
        await asking


async def test_a_coroutine_function_may_supply_the_credentials() -> None:
    async def token() -> str:
        await asyncio.sleep(0)
        return "fresh"

    assert await current_auth_data(AuthenticationToken(token), LoopClock(), 10.0) == b"fresh"
