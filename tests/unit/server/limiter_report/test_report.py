"""Operators' reports of a limiter: collected in many turns, and formatted as a table."""

import asyncio

import pytest

from limiter.admission.rules import AdmissionPolicy, AdmissionRules
from limiter.memory.dual_limiter import AsyncDualMemoryLimiter, LimitType, MemoryLimit
from limiter.metrics.outcome_counts import OutcomeCounts
from limiter.permits.ledger import Ledger
from limiter.permits.permit import UNBOUNDED_PERMITS, AcquireOutcome
from proto.transport.connection import Connection
from server.limiter_report.report import (
    ACCOUNTS_A_TURN,
    COLUMNS,
    MAX_NAME_LENGTH,
    LimiterReporter,
    NamespaceWaiters,
    OldestWaiter,
    StoredMessages,
    limiter_table,
    owner_name,
)
from tests.support.clocks.manual_clock import ManualClock

HEAP, DIRECT = LimitType
NS = "public/default"


class Server:
    """A limiter of 1,000 bytes per budget with ledgers, and the reporter."""

    def __init__(self, max_bytes: int = 1000, *, ledger: bool = True) -> None:
        self.clock = ManualClock()
        limit = MemoryLimit(max_bytes, 10, 25.0)
        rules = AdmissionRules(AdmissionPolicy.FAIR)
        self.limiter = AsyncDualMemoryLimiter(limit, limit, self.clock, rules=rules)
        ledgers = {one: Ledger(self.clock, owner_name) for one in LimitType} if ledger else {}
        for limit_type, one in ledgers.items():
            self.limiter.semaphore(limit_type).record_with(one)
        self.tally = OutcomeCounts(self.clock)
        self.limiter.observe_with(self.tally.observe)
        self.reporter = LimiterReporter(self.limiter, ledgers, self.clock, self.tally)

    async def table(self) -> str:
        return limiter_table(await self.reporter.report(100, 0))


async def connection(peer: str) -> Connection:
    cnx = Connection()
    cnx.peer = peer
    return cnx


async def test_the_oldest_waiter_is_reported_with_its_age() -> None:
    server, cnx = Server(), await connection("10.0.0.1:5000")
    permit = await server.limiter.acquire(HEAP, 300, None, cnx, NS)
    await server.limiter.acquire(HEAP, 600, None, "another", NS)
    asyncio.get_running_loop().create_task(server.limiter.update(permit, 500))
    await asyncio.sleep(0)
    server.clock.advance(3.0)
    server.limiter.request(HEAP, 700, "later", NS)
    report = await server.reporter.report(100, 0)
    assert report[HEAP].oldest_waiter == OldestWaiter(cnx.peer, NS, 500, 200, 3.0)
    assert report[DIRECT].oldest_waiter is None
    server.limiter.close()


async def test_waiters_are_grouped_by_namespace_longest_wait_first() -> None:
    server = Server()
    await server.limiter.acquire(HEAP, 900, None, "holder", NS)
    for namespace, size in (("t/b", 200), ("t/a", 300), ("t/b", 400)):
        server.limiter.request(HEAP, size, f"of {namespace} {size}", namespace)
        server.clock.advance(1.0)
    report = await server.reporter.report(100, 0)
    assert report[HEAP].waiting == [
        NamespaceWaiters("t/b", 2, 600, 3.0), NamespaceWaiters("t/a", 1, 300, 2.0)
    ]  # fmt: skip
    assert report[DIRECT].waiting == []
    server.clock.advance(25.0)
    report = await server.reporter.report(100, 0)
    assert report[HEAP].waiting == []
    assert report[HEAP].outcomes[AcquireOutcome.TIMED_OUT] == 3


async def test_ten_thousand_holders_are_counted_over_many_turns() -> None:
    server, turns = Server(10**9), 0
    for number in range(10_000):
        await server.limiter.acquire(HEAP, 10, None, number, NS)

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    running = asyncio.get_running_loop().create_task(others())
    report = await server.reporter.report(100, 0)
    running.cancel()
    assert (report[HEAP].holders_total, len(report[HEAP].holders)) == (10_000, 100)
    assert turns >= 10_000 // ACCOUNTS_A_TURN


async def test_a_holder_released_while_counting_is_not_counted() -> None:
    server = Server(10**9)
    for number in range(ACCOUNTS_A_TURN + 5):
        await server.limiter.acquire(HEAP, 10, None, number, NS)

    async def leave() -> None:
        for number in range(ACCOUNTS_A_TURN, ACCOUNTS_A_TURN + 5):
            server.limiter.cancel_owner(number)

    reporting = asyncio.ensure_future(server.reporter.report(1000, 0))
    leaving = asyncio.ensure_future(leave())
    report = await reporting
    await leaving
    assert report[HEAP].holders_total == ACCOUNTS_A_TURN


@pytest.mark.parametrize(
    ("owner", "name"),
    [(None, "unnamed"), ("flight", "'flight'"), ("x" * 1000, "'" + "x" * (MAX_NAME_LENGTH - 1))],
)
def test_an_owner_that_is_no_connection_is_named_by_its_repr(owner, name) -> None:
    assert owner_name(owner) == name


async def test_a_connection_is_named_by_its_peer_address() -> None:
    assert owner_name(await connection("[::1]:5000")) == "[::1]:5000"


async def test_the_table_has_a_line_for_each_holder() -> None:
    server, cnx = Server(10**9), await connection("10.0.0.1:5000")
    await server.limiter.acquire(DIRECT, 1_234_567, None, cnx, NS)
    server.clock.advance(2.5)
    heap, direct = (await server.table()).split("DIRECT MEMORY")
    assert "  no memory is held or requested\n" in heap
    assert "  1,234,567 of 1,000,000,000 held, at most 1,234,567 so far" in direct
    assert (
        "connection             namespace                    bytes permits     of shared sharers"
        " waits    age\n"
        "10.0.0.1:5000          public/default           1,234,567       1             -       -"
        "     -    2.5\n"
    ) in direct


async def test_the_table_never_exceeds_its_width() -> None:
    # The longest address, a long name with control characters, figures of terabytes
    server = Server(10**12)
    cnx = await connection("[2001:db8:1111:2222:3333:4444:5555:6666]:65535")
    namespace = "tenant/\x1b[31m" + "n" * 100
    holder = server.limiter.share(namespace)
    holder.join(cnx)
    await server.limiter.acquire(HEAP, 999_000_000_000, None, holder)
    for number in range(2_000):
        holder.join(number)
    server.limiter.request(HEAP, 999_000_000_000, cnx, namespace)
    server.clock.advance(9_000.0)
    server.limiter.request(HEAP, 999_000_000_000, cnx, namespace)
    server.clock.advance(20.0)
    lines = (await server.table()).split("\n")
    assert max(map(len, lines)) <= COLUMNS
    assert all(line.isprintable() for line in lines)
    assert (
        "…4444:5555:6666]:65535 tenant/?[31mnnnnnnn…   499,250,374       1       930 GiB   2,001"
        "     1 9020.0"
    ) in lines
    assert any("the oldest, 20.0 s, is of [2001:db8:1111:" in line for line in lines)
    assert "  and 1,901 more" in lines
    server.limiter.close()


async def test_the_table_shows_a_budget_without_a_limit_as_unlimited() -> None:
    server = Server(0, ledger=False)
    table = await server.table()
    assert "  0 of unlimited held" in table
    assert str(UNBOUNDED_PERMITS) not in table


async def test_bytes_of_stored_messages_are_shown_beside_the_budgets() -> None:
    server = Server()
    budgets = await server.reporter.report(100, 0)
    table = limiter_table(budgets, StoredMessages(1_234, 2_000, 3))
    unbounded = limiter_table(budgets, StoredMessages(0, 0, 0))
    assert "STORED MESSAGES, bytes\n  1,234 of 2,000 stored; 3 were refused\n" in table
    assert "  0 of unlimited stored; 0 were refused" in unbounded
    assert "MESSAGES" not in limiter_table(budgets)
