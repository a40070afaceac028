"""A broker's lease, without a database: validity and times."""

from __future__ import annotations

import asyncio

import pytest

from broker.ownership import session as module
from broker.ownership.session import SAFE_PART, BrokerSession
from broker.ownership.tables import Registration
from broker.stores.changes import StoreError
from server.configuration.addresses import ServerUrls
from tests.support.clocks.manual_clock import ManualClock
from tests.support.clocks.settle import settle

LEASE = 30.0
BROKER = Registration(ServerUrls("pulsar://a:1", "http://a:2"), "memory-1")


class Database:
    """A database whose answers a test releases; records all sessions."""

    def __init__(self) -> None:
        self.registered: list[tuple[str, str]] = []
        self.renewed: list[str] = []
        self.left: list[str] = []
        self.renews = True
        self.answers = asyncio.Event()
        self.answers.set()
        self.reachable = True

    async def connect(self) -> Database:
        if not self.reachable:
            raise StoreError("out of reach")
        return self

    async def add_listener(self, *_: object) -> None:
        """No-op."""

    def terminate(self) -> None:
        """The connection ends."""


@pytest.fixture
def database(monkeypatch: pytest.MonkeyPatch) -> Database:
    async def make_tables(_: Database) -> None:
        """No-op."""

    async def register(to: Database, new: str, old: str, *_: object) -> None:
        await to.answers.wait()
        to.registered.append((new, old))

    async def renew(to: Database, broker: str, _: float) -> bool:
        await to.answers.wait()
        to.renewed.append(broker)
        return to.renews

    async def leave(to: Database, broker: str) -> None:
        to.left.append(broker)

    for function in (make_tables, register, renew, leave):
        monkeypatch.setattr(module, function.__name__, function)
    return Database()


class Session:
    """A session on a manual clock."""

    def __init__(self, database: Database) -> None:
        self.clock = ManualClock()
        self.over = 0
        self.session = BrokerSession(
            database.connect, (OSError,), LEASE, self.clock, self.clock.now
        )
        self.session.on_over = self._over
        self.session.open(BROKER)

    def _over(self) -> None:
        self.over += 1


async def test_a_lease_is_renewed_in_time_and_released_on_close(database: Database) -> None:
    one = Session(database)
    first = await one.session.ready()
    for _ in range(30):
        one.clock.advance(LEASE / 3)
        await settle()
    assert (one.session.id, one.over) == (first, 0)
    assert len(database.renewed) == 30
    await one.session.close()
    assert database.left == [first]


async def test_a_renewed_lease_counts_from_the_time_the_renewal_was_sent(
    database: Database,
) -> None:
    one = Session(database)
    await one.session.ready()
    database.answers.clear()
    one.clock.advance(LEASE / 3)
    await settle()
    # The answer is late
    one.clock.advance(5)
    database.answers.set()
    await settle()
    one.clock.advance(SAFE_PART * LEASE - 5.1)
    assert one.session.notice()
    database.answers.clear()
    one.clock.advance(0.2)
    assert (one.session.notice(), one.over) == (False, 1)
    await one.session.close()


async def test_a_session_without_renewals_ends_before_its_lease_expires(database: Database) -> None:
    one = Session(database)
    await one.session.ready()
    database.answers.clear()
    database.reachable = False
    one.clock.advance(SAFE_PART * LEASE)
    assert (one.session.id, one.over) == ("", 1)
    await one.session.close()
    assert database.left == []


async def test_a_late_renewal_answer_does_not_revive_an_expired_session(database: Database) -> None:
    one = Session(database)
    first = await one.session.ready()
    database.answers.clear()
    one.clock.advance(LEASE / 3)
    await settle()
    # The broker is stopped for a minute while the answer is under way
    one.clock._now += 60
    assert not one.session.notice()
    database.answers.set()
    await settle()
    # A new session names its predecessor
    assert database.registered[-1] == (one.session.id, first)
    assert one.session.id not in ("", first)
    await one.session.close()


async def test_a_broker_whose_renewal_is_refused_registers_a_new_session(
    database: Database,
) -> None:
    one = Session(database)
    first = await one.session.ready()
    database.renews = False
    one.clock.advance(LEASE / 3)
    await settle()
    assert one.over == 1
    assert database.registered[-1] == (one.session.id, first)
    await one.session.close()


async def test_a_lookup_without_a_session_fails_after_five_seconds(database: Database) -> None:
    database.reachable = False
    one = Session(database)
    asked = asyncio.create_task(one.session.ready())
    await settle()
    one.clock.advance(5.1)
    with pytest.raises(StoreError, match="lease"):
        await asked
    await one.session.close()
