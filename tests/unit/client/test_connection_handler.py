"""A lost attachment is restored, except after final errors."""

import asyncio

import pytest

import proto.PulsarApi_pb2 as pb
from client.connection_handler import ConnectionHandler
from client.exceptions import (
    AlreadyClosed,
    ConnectError,
    ConsumerBusy,
    PulsarException,
    Timeout,
    TopicTerminated,
    server_response_error,
)
from client.patience import Patience
from limiter.backoff import Backoff
from tests.support.clocks.manual_clock import ManualClock
from tests.support.clocks.settle import settle, started

NOT_READY = server_response_error(pb.ServiceNotReady, "later")
BUSY = server_response_error(pb.ConsumerBusy, "taken")
TERMINATED = server_response_error(pb.TopicTerminatedError, "over")


class Cnx:
    """A connection, reduced to the handler's use."""

    def __init__(self) -> None:
        self.closed = False
        self.peer = "host:1"


class Cluster:
    """Gives connections, and attaches: fails with each error of a list first."""

    def __init__(self, *errors: Exception) -> None:
        self.clock = ManualClock()
        self.patience = Patience(self.clock)
        self.errors = list(errors)
        self.asked: list[str] = []
        self.given_up: list[PulsarException] = []
        self.hold: asyncio.Event | None = None
        self.cnx = Cnx()
        self.handler = ConnectionHandler(
            self,  # type: ignore[arg-type]
            "topic",
            self.attach,  # type: ignore[arg-type]
            on_given_up=self.given_up.append,
            final=(TopicTerminated,),
            backoff=Backoff(1.0, 4.0, jitter=lambda: 0.0),
        )

    async def connection_of(self, topic: str) -> Cnx:
        self.asked.append(topic)
        return self.cnx

    async def connection_by_url(self, url: str) -> Cnx:
        self.asked.append(url)
        return self.cnx

    async def attach(self, cnx: Cnx) -> None:
        if self.hold is not None:
            await self.hold.wait()
        if self.errors:
            raise self.errors.pop(0)

    async def after(self, seconds: float) -> None:
        """Advance time, and run all tasks."""
        await settle()
        self.clock.advance(seconds)
        await settle()


@pytest.fixture
async def cluster() -> Cluster:
    cluster = Cluster()
    await cluster.handler.open(30.0)
    return cluster


async def test_temporary_errors_are_retried_until_attached() -> None:
    cluster = Cluster(NOT_READY, ConnectError("no"))
    opening = await started(cluster.handler.open(30.0))
    await cluster.after(1.0)
    await cluster.after(2.0)
    await opening
    assert cluster.asked == ["topic"] * 3
    assert cluster.handler.cnx is cluster.cnx


async def test_a_lasting_error_at_the_first_attachment_is_raised_immediately() -> None:
    cluster = Cluster(BUSY)
    with pytest.raises(ConsumerBusy, match="taken"):
        await cluster.handler.open(30.0)


async def test_the_timeout_of_an_attachment_names_the_last_error() -> None:
    cluster = Cluster(NOT_READY, NOT_READY)
    opening = await started(cluster.handler.open(2.5))
    await cluster.after(2.5)
    with pytest.raises(Timeout, match=r"in 2.5 s: ServiceNotReady: later"):
        await opening


async def test_a_connection_closed_during_attachment_counts_as_no_attachment() -> None:
    cluster = Cluster()
    cluster.cnx.closed = True
    opening = await started(cluster.handler.open(0.1))
    await cluster.after(0.1)
    with pytest.raises(Timeout, match="closed the connection"):
        await opening
    assert cluster.handler.cnx is None


async def test_a_lost_attachment_is_restored_after_backoff(cluster: Cluster) -> None:
    cluster.errors = [BUSY, NOT_READY]
    cluster.handler.lost()
    for seconds in (1.0, 2.0, 4.0):
        assert cluster.handler.cnx is None
        await cluster.after(seconds)
    assert cluster.handler.cnx is cluster.cnx
    assert cluster.handler.reconnections == 1


async def test_a_lost_attachment_is_retried_after_an_unforeseen_error(cluster: Cluster) -> None:
    cluster.errors = [RuntimeError("unforeseen")]
    cluster.handler.lost()
    await cluster.after(1.0)
    await cluster.after(2.0)
    assert cluster.handler.cnx is cluster.cnx


async def test_expired_credentials_are_logged_once_as_a_warning(caplog) -> None:
    expired = server_response_error(pb.AuthenticationError, "expired")
    cluster = Cluster()
    await cluster.handler.open(30.0)
    cluster.errors = [NOT_READY, expired, expired]
    cluster.handler.lost()
    for _ in range(4):
        await cluster.after(4.0)
    (warning,) = (one for one in caplog.records if one.levelname == "WARNING")
    assert "AuthenticationError: expired" in warning.getMessage()


@pytest.mark.parametrize(("url", "seconds"), [(None, 0.1), ("pulsar://b:1", 0.0)])
async def test_an_attachment_closed_by_the_broker_reconnects_to_the_assigned_url_or_by_lookup(
    url: str | None, seconds: float
) -> None:
    cluster = Cluster()
    await cluster.handler.open(30.0)
    cluster.handler.closed_by_broker(url)
    await cluster.after(seconds)
    assert cluster.asked == ["topic", url or "topic"]
    assert cluster.handler.cnx is cluster.cnx


async def test_an_attachment_lost_while_being_made_is_made_again() -> None:
    cluster = Cluster()
    cluster.hold = asyncio.Event()
    opening = await started(cluster.handler.open(30.0))
    cluster.handler.closed_by_broker(None)
    cluster.hold.set()
    await cluster.after(1.0)
    await opening
    assert cluster.asked == ["topic"] * 2
    assert cluster.handler.cnx is cluster.cnx


async def test_a_final_error_is_reported_and_never_retried(cluster: Cluster) -> None:
    cluster.errors = [TERMINATED]
    cluster.handler.lost()
    await cluster.after(1.0)
    await cluster.after(100.0)
    assert cluster.given_up == [TERMINATED]
    assert len(cluster.asked) == 2


@pytest.mark.parametrize("lose", [ConnectionHandler.lost, ConnectionHandler.close])
async def test_after_close_nothing_is_retried(cluster, lose) -> None:
    cluster.handler.lost()
    await cluster.handler.close()
    await cluster.after(100.0)
    assert cluster.asked == ["topic"]
    with pytest.raises(AlreadyClosed):
        await cluster.handler.open(1.0)


async def test_closing_ends_an_attachment_attempt_in_flight(cluster: Cluster) -> None:
    cluster.hold = asyncio.Event()
    cluster.handler.lost()
    await cluster.after(1.0)
    await cluster.handler.close()
    cluster.hold.set()
    await settle()
    assert cluster.handler.cnx is None
    assert cluster.handler.reconnections == 0
