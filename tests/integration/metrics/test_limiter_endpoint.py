"""GET /admin/v2/floodgate/limiter of broker and proxy: memory holders and waiters."""

import aiohttp
import pytest

from broker.service import BrokerService
from limiter.memory.dual_limiter import LimitType
from limiter.permits.permit import AcquireOutcome
from proxy.service import ProxyService
from server.limiter_report.routes import LIMITER_PATH
from tests.support.peers.raw_peer import topics_command
from tests.support.processes.cluster import cluster, topic_names, until

NS = "public/default"
# Below the frame limit, and above the kernel's capacity for a non-reading peer.
TOPICS = {NS: topic_names(NS, 20_000, 240)}
ROLES = pytest.mark.parametrize("role", ["broker", "proxy"])
PROFILES = pytest.mark.parametrize("profile", ["floodgate", "pulsar"])
DIRECT = LimitType.DIRECT_MEMORY


async def ask(part: BrokerService | ProxyService, query: str = "") -> tuple[int, str]:
    url = f"{part.web_service_url}{LIMITER_PATH}{query}"
    async with aiohttp.ClientSession() as session, session.get(url) as answer:
        return answer.status, await answer.text()


async def budgets(part: BrokerService | ProxyService, query: str = "") -> dict[str, dict]:
    url = f"{part.web_service_url}{LIMITER_PATH}{query}"
    async with aiohttp.ClientSession() as session, session.get(url) as answer:
        assert (answer.status, answer.content_type) == (200, "application/json")
        return await answer.json()


@PROFILES
@ROLES
async def test_a_peer_that_does_not_read_is_shown_as_a_holder(role: str, profile: str) -> None:
    async with cluster(TOPICS, profile) as parts:
        part, peer = parts.part(role), await parts.peer(role)
        await peer.send(topics_command(1, NS))
        await until(lambda: part.totals.pending_bytes)
        held = part.limiter.acquired_permits(DIRECT)
        report, address = await budgets(part), peer.address
        peer.close()
        await until(lambda: not part.connections)
        after = await budgets(part)
        (holder,) = report["direct"]["holders"]
        age = holder.pop("oldestPermitSeconds")
        assert holder == {
            "connection": address,
            "namespace": NS,
            "bytes": held,
            "permits": 1,
            "sharedBytes": 0,
            "sharers": 1,
            "waitingRequests": 0,
            "waitingBytes": 0,
        }
        assert age >= 0
        assert report["direct"]["acquiredBytes"] == held > 20_000 * 240
        assert (after["direct"]["holders"], after["direct"]["holdersTotal"]) == ([], 0)
        assert after["direct"]["acquiredBytes"] == 0


@ROLES
async def test_shared_bytes_are_divided_between_the_clients_that_hold_a_permit(role: str) -> None:
    async with cluster(TOPICS) as parts:
        part = parts.part(role)
        first, second = await parts.peer(role), await parts.peer(role)
        await first.send(topics_command(1, NS))
        await second.send(topics_command(1, NS))
        await until(lambda: all(one.outbound.pending_bytes for one in part.connections))
        report = await budgets(part)
        held = report["direct"]["acquiredBytes"]
        holders = report["direct"]["holders"]
        assert {one["connection"] for one in holders} == {first.address, second.address}
        assert [one["bytes"] for one in holders] == [held // 2] * 2
        assert {(one["sharedBytes"], one["sharers"]) for one in holders} == {(held, 2)}


@ROLES
async def test_a_waiter_is_shown_with_its_connection_namespace_and_lacking_bytes(role: str) -> None:
    async with cluster(TOPICS) as parts:
        part, peer = parts.part(role), await parts.peer(role)
        limit = part.limiter.semaphore(DIRECT).max_permits
        permit = await part.limiter.acquire(DIRECT, limit, None, "somebody", "public/other")
        await peer.send(topics_command(1, NS))
        await until(lambda: part.limiter.queue_size(DIRECT))
        direct = (await budgets(part))["direct"]
        oldest, (somebody, waiting) = direct["oldestWaiter"], direct["holders"]
        assert (oldest["connection"], oldest["namespace"]) == (peer.address, NS)
        assert oldest["bytes"] == oldest["lackingBytes"] == waiting["waitingBytes"] > 0
        assert (waiting["connection"], waiting["waitingRequests"]) == (peer.address, 1)
        assert (somebody["connection"], somebody["bytes"]) == ("'somebody'", limit)
        assert direct["queueSize"] == direct["waitingNamespaces"] == 1
        assert direct["waiting"] == [
            {
                "namespace": NS,
                "requests": 1,
                "lackingBytes": waiting["waitingBytes"],
                "oldestSeconds": 0.0,
            }
        ]
        assert set(direct["outcomes"]) == {outcome.name.lower() for outcome in AcquireOutcome}
        history = await budgets(part, "/history")
        assert history["atMs"] == sorted(history["atMs"])
        assert [history["direct"][name][-1] for name in ("heldBytes", "waiting")] == [limit, 1]
        assert history["eachSeconds"] * history["kept"] == 600
        part.limiter.release(permit)
        await until(lambda: part.totals.pending_bytes)


@ROLES
async def test_a_budget_is_shown_with_its_limit_usage_and_ledger(role: str) -> None:
    limits = {"heap_queue_size": 7, "heap_timeout_seconds": 1.5, "direct_max_bytes": 0}
    async with cluster(broker_limits=limits, proxy_limits=limits) as parts:
        part = parts.part(role)
        part.limiter.release(await part.limiter.acquire(LimitType.HEAP_MEMORY, 600, None, "one"))
        report = await budgets(part)
        ledger, outcomes = (report["heap"].pop(part) for part in ("ledger", "outcomes"))
        assert {name: n for name, n in outcomes.items() if n} == {"granted": 1}
        assert report["heap"] == {
            "limitBytes": 100 * 1024 * 1024,
            "acquiredBytes": 0,
            "availableBytes": 100 * 1024 * 1024,
            "highWaterBytes": 600,
            "overdraftBytes": 0,
            "overdraftsTotal": 0,
            "queueSize": 0,
            "maxQueueSize": 7,
            "timeoutSeconds": 1.5,
            "policy": "fair",
            "oldestWaiter": None,
            "waitingNamespaces": 0,
            "waiting": [],
            "holdersTotal": 0,
            "holders": [],
        }
        assert ledger == {
            "livePermits": 0,
            "acquired": {"events": 1, "bytes": 600},
            "updated": {"events": 0, "bytes": 0},
            "released": {"events": 1, "bytes": 600},
            "recent": [],
        }
        assert (report["direct"]["limitBytes"], report["direct"]["availableBytes"]) == (0, None)


async def test_limit_and_recent_set_the_number_of_shown_holders_and_events() -> None:
    async with cluster() as parts:
        heap = LimitType.HEAP_MEMORY
        permits = [
            await parts.broker.limiter.acquire(heap, 1000 + number, None, number, NS)
            for number in range(120)
        ]
        as_asked = (await budgets(parts.broker, "?limit=2&recent=3"))["heap"]
        by_default = (await budgets(parts.broker))["heap"]
        assert [one["bytes"] for one in as_asked["holders"]] == [1119, 1118]
        assert as_asked["holdersTotal"] == by_default["holdersTotal"] == 120
        assert [one["bytes"] for one in as_asked["ledger"]["recent"]] == [1119, 1118, 1117]
        assert {one["event"] for one in as_asked["ledger"]["recent"]} == {"acquired"}
        assert len(by_default["holders"]) == 100
        for permit in permits:
            parts.broker.limiter.release(permit)


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("?limit=501", "limit='501' should be a whole number from 0 to 500"),
        ("?limit=-1", "limit='-1' should be a whole number from 0 to 500"),
        ("?limit=", "limit='' should be a whole number from 0 to 500"),
        ("?limit=%D9%A3", "limit='\u0663' should be a whole number from 0 to 500"),
        (f"?limit={'9' * 5_000}", f"limit='{'9' * 20}' should be a whole number from 0 to 500"),
        ("?recent=257", "recent='257' should be a whole number from 0 to 256"),
        ("?format=xml", "format='xml' should be one of: json, table"),
    ],
)
async def test_an_invalid_query_is_answered_412_with_a_reason(query: str, reason: str) -> None:
    async with cluster() as parts:
        url = f"{parts.broker.web_service_url}{LIMITER_PATH}{query}"
        async with aiohttp.ClientSession() as session, session.get(url) as answer:
            assert answer.status == 412
            assert await answer.json() == {"reason": reason}


@ROLES
async def test_format_table_is_answered_in_plain_text(role: str) -> None:
    async with cluster() as parts:
        status, table = await ask(parts.part(role), "?format=table")
        assert status == 200
        assert table.startswith("HEAP MEMORY, bytes; policy fair\n")
