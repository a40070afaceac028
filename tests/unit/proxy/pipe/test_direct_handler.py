"""A client's wait for a pipe is bounded."""

import asyncio
import logging
from collections.abc import Callable

import pytest

import proto.PulsarApi_pb2 as pb
from proto.errors import RemoteProtocolError
from proto.transport.process_flow import ProcessFlow
from proxy.pipe.allowed_targets import BrokerTargets
from proxy.pipe.direct_handler import (
    INVALID_TARGET,
    UNAVAILABLE_TARGET,
    BrokerAccess,
    BrokerLeg,
    DirectProxyHandler,
)
from proxy.pipe.leg import PipeLeg
from server.connection.request_errors import RequestError
from tests.support.clocks.manual_clock import ManualClock
from tests.support.clocks.settle import settle, started
from tests.support.peers.memory_transport import MemoryTransport
from tests.support.processes.cluster import proxy_config

TARGET = "pulsar://127.0.0.1:6650"
TIMEOUT_SECONDS = 10.0


class Opening:
    """A pipe opening to a broker that accepts on command, without greeting."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.clock = ManualClock()
        self.accepts = asyncio.Event()
        self.legs: list[BrokerLeg] = []
        monkeypatch.setattr(asyncio.get_running_loop(), "create_connection", self._connect)
        targets = BrokerTargets(proxy_config({"brokerServiceURL": TARGET}))
        self._handler = DirectProxyHandler(
            targets, ProcessFlow(), self.clock, BrokerAccess(TIMEOUT_SECONDS), like_pulsar=False
        )

    async def _connect(
        self, make: Callable[[], BrokerLeg], *_: object
    ) -> tuple[MemoryTransport, BrokerLeg]:
        await self.accepts.wait()
        leg = make()
        self.legs.append(leg)
        return MemoryTransport(leg).connect(), leg

    async def open(self, client: PipeLeg, target: str = TARGET) -> None:
        target = target.removeprefix("pulsar://")
        await self._handler.open(client, pb.CommandConnect(proxy_to_broker_url=target))


async def test_connecting_and_the_handshake_share_a_single_timeout(monkeypatch) -> None:
    # Most of the time is used up when the broker accepts
    opening = Opening(monkeypatch)
    task = await started(opening.open(None))  # type: ignore[arg-type]
    opening.clock.advance(TIMEOUT_SECONDS - 1)
    opening.accepts.set()
    await settle()
    opening.clock.advance(1)
    await settle()
    assert task.done()
    with pytest.raises(RequestError, match=UNAVAILABLE_TARGET):
        task.result()
    assert opening.legs[0].closed


async def test_a_broker_whose_tls_handshake_fails_is_unavailable_and_logged(
    monkeypatch, caplog
) -> None:
    opening = Opening(monkeypatch)
    opening.accepts.set()
    task = await started(opening.open(None))  # type: ignore[arg-type]
    with caplog.at_level(logging.INFO):
        opening.legs[0].tls_failed(RemoteProtocolError("TLS handshake failed: so and so"))
        await settle()
    with pytest.raises(RequestError, match=UNAVAILABLE_TARGET):
        task.result()
    assert opening.legs[0].closed
    assert "cannot be reached for a pipe: TLS handshake failed: so and so" in caplog.text


async def test_a_broker_that_disconnects_right_after_its_greeting_is_unavailable(
    monkeypatch,
) -> None:
    opening = Opening(monkeypatch)
    opening.accepts.set()
    task = await started(opening.open(PipeLeg()))
    (leg,) = opening.legs
    # When both arrive in one chunk, as by TLS
    greeting = pb.CommandConnected(server_version="a broker", max_message_size=1)
    leg.greeting.set_result(pb.BaseCommand(type=pb.BaseCommand.CONNECTED, connected=greeting))
    leg.abort()
    await settle()
    with pytest.raises(RequestError, match=UNAVAILABLE_TARGET):
        await task


async def test_a_target_with_an_invalid_host_name_is_unavailable() -> None:
    # Allowed by the list of names
    keys = {"brokerServiceURL": TARGET, "brokerProxyAllowedHostNames": "*.example.com"}
    handler = DirectProxyHandler(
        BrokerTargets(proxy_config(keys)),
        ProcessFlow(),
        ManualClock(),
        BrokerAccess(TIMEOUT_SECONDS),
        like_pulsar=False,
    )
    asked = pb.CommandConnect(proxy_to_broker_url="a..example.com:6650")
    with pytest.raises(RequestError, match=UNAVAILABLE_TARGET):
        await handler.open(PipeLeg(), asked)


async def test_a_client_that_disconnects_during_the_handshake_closes_the_broker_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    opening = Opening(monkeypatch)
    opening.accepts.set()
    task = await started(opening.open(None))  # type: ignore[arg-type]
    task.cancel()
    await settle()
    assert opening.legs[0].closed


async def test_the_credentials_in_a_refused_target_are_not_logged(monkeypatch, caplog) -> None:
    opening, client = Opening(monkeypatch), PipeLeg()
    with pytest.raises(RequestError, match=INVALID_TARGET):
        await opening.open(client, "user:s3cret@127.0.0.1:6650")
    assert "s3cret" not in caplog.text
    assert "requested a pipe to '(hidden)@127.0.0.1:6650': not allowed" in caplog.text
