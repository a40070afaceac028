"""Listening on an address, on both event loops."""

import asyncio
import resource
import socket
from collections.abc import Callable
from itertools import count
from typing import cast

import pytest
import uvloop

from server.connection.listener import ACCEPTED_A_TURN, listen, raise_open_files_limit
from server.errors import ListenError

KEY = "webServicePort"
LOOPS = pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])


class Accepted(asyncio.Protocol):
    """Reports the single accepted connection to the test."""

    def __init__(self, transport: asyncio.Future[asyncio.BaseTransport]) -> None:
        self._transport = transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport.set_result(transport)


class Greets(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        greeted = cast("asyncio.Transport", transport)
        greeted.write(b"hello")
        greeted.close()


async def said_to_clients(failing: int) -> list[bytes]:
    """Return the bytes sent to clients, the first of which have a failing factory."""
    made = count(1)

    def factory() -> Greets:
        if next(made) <= failing:
            raise MemoryError
        return Greets()

    listener = await listen(factory, "127.0.0.1", 0, port_key=KEY)
    said = []
    for _ in range(failing + 1):
        reader, writer = await asyncio.open_connection(listener.host, listener.port)
        try:
            said.append(await reader.read())
        except ConnectionResetError:
            said.append(b"")
        writer.close()
    listener.close()
    return said


@LOOPS
def test_a_failing_connection_factory_does_not_end_the_listener(new_loop, caplog) -> None:
    # Uvloop ends one client at each error, and closes none gracefully
    with asyncio.Runner(loop_factory=new_loop) as runner:
        said = runner.run(said_to_clients(ACCEPTED_A_TURN))
    assert said == [b""] * ACCEPTED_A_TURN + [b"hello"]
    assert len(caplog.records) == ACCEPTED_A_TURN


async def accepted_send_buffer_bytes(asked_bytes: int) -> int:
    accepted: asyncio.Future[asyncio.BaseTransport] = asyncio.get_running_loop().create_future()
    listener = await listen(
        lambda: Accepted(accepted), "127.0.0.1", 0, port_key=KEY, send_buffer_bytes=asked_bytes
    )
    _, writer = await asyncio.open_connection(listener.host, listener.port)
    transport = await accepted
    size: int = transport.get_extra_info("socket").getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)
    transport.close()
    writer.close()
    listener.close()
    return size


@LOOPS
def test_accepted_connections_have_the_configured_send_buffer(new_loop) -> None:
    with asyncio.Runner(loop_factory=new_loop) as runner:
        asked = runner.run(accepted_send_buffer_bytes(65_536))
        kernels_own = runner.run(accepted_send_buffer_bytes(0))
    # Linux keeps twice the requested size
    assert asked == 2 * 65_536
    assert kernels_own != asked


@LOOPS
def test_a_port_in_use_is_reported_in_a_single_sentence(
    new_loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    async def listen_twice() -> None:
        first = await listen(asyncio.Protocol, "127.0.0.1", 0, port_key=KEY)
        try:
            with pytest.raises(ListenError) as caught:
                await listen(asyncio.Protocol, "127.0.0.1", first.port, port_key=KEY)
        finally:
            first.close()
        assert str(caught.value) == (
            f"cannot listen on 127.0.0.1:{first.port}: the port is in use; stop the other process, "
            "or set webServicePort to another one (0 for any free one)"
        )

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(listen_twice())


@pytest.mark.parametrize(
    ("host", "sentence"),
    [
        ("192.0.2.1", "cannot listen on 192.0.2.1:0: this address is not one of this machine's"),
        ("not a name", "cannot listen on not a name:0: 'not a name' is not an address"),
        ("x" * 300, "is not an address or a known name"),
    ],
)
async def test_an_unusable_address_is_reported_in_a_single_sentence(
    host: str, sentence: str
) -> None:
    with pytest.raises(ListenError) as caught:
        await listen(asyncio.Protocol, host, 0, port_key=KEY)
    assert sentence in str(caught.value)


async def test_a_port_without_permission_is_reported_in_a_single_sentence(monkeypatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(socket.socket, "bind", refuse)
    with pytest.raises(ListenError) as caught:
        await listen(asyncio.Protocol, "::1", 80, port_key=KEY)
    assert str(caught.value) == (
        "cannot listen on [::1]:80: permission denied; set webServicePort to one above 1023"
    )


async def test_a_closed_listener_frees_its_port() -> None:
    first = await listen(asyncio.Protocol, "127.0.0.1", 0, port_key=KEY)
    first.close()
    first.close()
    await asyncio.sleep(0)
    second = await listen(asyncio.Protocol, "127.0.0.1", first.port, port_key=KEY)
    assert second.port == first.port
    second.close()


def test_the_limit_of_open_files_is_raised_to_the_maximum() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 512), hard))
    try:
        granted = raise_open_files_limit()
        assert granted == hard == resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


class Noted(asyncio.Protocol):
    """Adds accepted connections to a list."""

    def __init__(self, made: list[asyncio.BaseTransport]) -> None:
        self._made = made

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._made.append(transport)


async def most_accepted_in_a_turn(count: int) -> int:
    made: list[asyncio.BaseTransport] = []
    listener = await listen(lambda: Noted(made), "127.0.0.1", 0, port_key=KEY)
    # All are connected before the loop has a turn
    peers = [socket.create_connection((listener.host, listener.port)) for _ in range(count)]
    most = 0
    while len(made) < count:
        before = len(made)
        await asyncio.sleep(0)
        most = max(most, len(made) - before)
    for transport in made:
        transport.close()  # type: ignore[attr-defined]
    for peer in peers:
        peer.close()
    listener.close()
    await asyncio.sleep(0)
    return most


@LOOPS
def test_several_connections_are_accepted_per_turn(new_loop) -> None:
    with asyncio.Runner(loop_factory=new_loop) as runner:
        assert runner.run(most_accepted_in_a_turn(3 * ACCEPTED_A_TURN)) >= ACCEPTED_A_TURN
