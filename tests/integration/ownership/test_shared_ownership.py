"""Bundles of brokers on one PostgreSQL always have at most one owner."""

import asyncio

import pytest

from broker.bundles import ALL_HASHES
from broker.ownership import handing_over
from broker.ownership.ownership import Bundle, NotServedError, bundle_of_topic
from broker.ownership.tables import claim, register, renew
from broker.stores.changes import StoreError
from broker.stores.store import DEFAULT_BUNDLES, NamespacePolicies
from proto.names import NamespaceName, TopicName
from tests.integration.ownership.owners import Party, party
from tests.support.processes.cluster import until
from tests.support.processes.postgresql import PostgresqlServer

SPACE = NamespaceName.parse("tenant/shared")
TOPIC = TopicName.parse("persistent://tenant/shared/x")
BUNDLE = bundle_of_topic(TOPIC, DEFAULT_BUNDLES)
BUNDLE_OF_8 = bundle_of_topic(TOPIC, 8)
SHORT = 1.5
UNTIL_THE_LEASE_IS_OVER = """
SELECT pg_sleep(greatest(0, extract(epoch FROM lease_until - clock_timestamp())))
FROM floodgate.brokers WHERE id = $1
"""
IS_WAITED_FOR = """
SELECT bool_or(pg_backend_pid() = ANY(pg_blocking_pids(pid))) FROM pg_stat_activity
"""


async def made(one: Party, bundles: int = DEFAULT_BUNDLES) -> None:
    await one.store.create_namespace(SPACE, NamespacePolicies(bundles))


async def owner_seen_by(one: Party, *, authoritative: bool = True) -> str:
    return (await one.ownership.acquire(TOPIC, authoritative=authoritative)).urls.service


async def end_all_leases_but(one: Party) -> None:
    """Move the database's clock past all other brokers' leases."""
    async with one.store.use() as connection:
        await connection.execute(
            "UPDATE floodgate.brokers SET lease_until = '2000-01-01' WHERE id <> $1", one.session.id
        )


async def test_a_second_broker_names_the_owner_of_a_bundle(postgresql_url: str) -> None:
    async with party(postgresql_url, 1) as one, party(postgresql_url, 3) as other:
        await made(one)
        owner = await one.ownership.acquire(TOPIC, authoritative=True)
        seen = await other.ownership.acquire(TOPIC, authoritative=True)
        assert (owner.here, seen.here, seen.decided) == (True, False, True)
        assert owner.urls.service == seen.urls.service == one.service_url
        assert seen.urls.web == "http://127.0.0.1:2"
        assert (one.ownership.owns(TOPIC), other.ownership.owns(TOPIC)) == (True, False)
        assert one.ownership.owned == 1
        assert not one.moved


async def test_simultaneous_acquisitions_have_a_single_owner(postgresql_url: str) -> None:
    async with party(postgresql_url, 1) as one, party(postgresql_url, 3) as other:
        await made(one)
        asked = [owner_seen_by(who) for _ in range(10) for who in (one, other)]
        found = set(await asyncio.gather(*asked))
        assert len(found) == 1
        assert [one.ownership.owns(TOPIC), other.ownership.owns(TOPIC)].count(True) == 1


async def test_bundles_are_balanced_between_two_brokers(postgresql_url: str) -> None:
    async with party(postgresql_url, 1) as one, party(postgresql_url, 3) as other:
        await made(one, 16)
        topics = [TopicName.parse(f"persistent://{SPACE}/{index}") for index in range(200)]
        # Each is looked up at the first broker, then at its target
        for topic in topics:
            owner = await one.ownership.acquire(topic)
            if not owner.decided:
                assert (await other.ownership.acquire(topic, authoritative=True)).here
        assert (one.ownership.owned, other.ownership.owned) == (8, 8)
        assert sum(map(one.ownership.owns, topics)) + sum(map(other.ownership.owns, topics)) == 200


async def test_a_stopping_broker_hands_over_its_bundle_immediately(postgresql_url: str) -> None:
    async with party(postgresql_url, 3) as other:
        await made(other)
        async with party(postgresql_url, 1) as one:
            assert await owner_seen_by(one) == one.service_url
        owner = await other.ownership.acquire(TOPIC)
        assert owner.here
        assert (other.moved, other.ownership.moved_total) == ([BUNDLE], 1)


async def test_a_bundle_of_a_killed_broker_moves_after_its_lease_expires(postgresql_url) -> None:
    async with party(postgresql_url, 3) as other:
        await made(other)
        async with party(postgresql_url, 1) as one:
            assert await owner_seen_by(one) == one.service_url
            await one.die()
            assert await owner_seen_by(other) == one.service_url
            await end_all_leases_but(other)
            assert await owner_seen_by(other) == other.service_url


async def test_a_suspended_broker_owns_nothing_once_its_lease_has_expired(postgresql_url) -> None:
    async with party(postgresql_url, 1) as one:
        await made(one)
        await owner_seen_by(one)
        one.closing.clear()
        # Stopped, and continued in mid-turn
        one.stopped_seconds = 55.0
        owns = one.ownership.owns(TOPIC)
        # In the same turn
        assert not owns
        assert one.lost == [BUNDLE]
        assert one.ownership.owned == 0
        # It may return, with a new lease
        one.closing.set()
        owner = await one.ownership.acquire(TOPIC, authoritative=True)
        assert owner.here
        assert one.ownership.sessions_ended == 1


async def test_an_expired_lease_is_noticed_without_a_request(
    postgresql_url: str, postgresql: PostgresqlServer
) -> None:
    async with party(postgresql_url, 1, lease_seconds=SHORT) as one:
        await made(one)
        await owner_seen_by(one)
        back = asyncio.Event()
        one.store.on_policies(lambda _: back.set())
        postgresql.stop()
        try:
            await one.has_lost.wait()
            with pytest.raises(StoreError):
                await one.ownership.acquire(TOPIC)
        finally:
            postgresql.start()
        await back.wait()
        await one.session.ready()
        assert await owner_seen_by(one) == one.service_url


async def test_a_broker_with_an_expired_lease_cannot_renew_or_claim(postgresql_url: str) -> None:
    async with party(postgresql_url, 1) as one, party(postgresql_url, 3) as other:
        await made(one)
        await owner_seen_by(one)
        ended = one.session.id
        async with other.store.use() as connection:
            await connection.execute("UPDATE floodgate.brokers SET lease_until = '2000-01-01'")
            assert not await renew(connection, ended, 60.0)
            assert await claim(connection, BUNDLE, ended) is None
            # An expired lease owns nothing
            assert await claim(connection, BUNDLE, other.session.id) is None


async def test_a_bundle_stays_with_the_broker_of_its_stored_messages(postgresql_url: str) -> None:
    async with party(postgresql_url, 3) as other:
        await made(other)
        async with party(postgresql_url, 1, store="disk-1") as one:
            assert await owner_seen_by(one) == one.service_url
        # Away for longer than any wait
        other.ownership.away_seconds = 0.0
        with pytest.raises(NotServedError, match="is not running"):
            await other.ownership.acquire(TOPIC)
        with pytest.raises(NotServedError, match="is not running"):
            await other.ownership.acquire(TOPIC, authoritative=True)
        # It is back under another address, and lookups are referred to it
        async with party(postgresql_url, 5, store="disk-1") as again:
            owner = await other.ownership.acquire(TOPIC, authoritative=True)
            assert (owner.urls, owner.decided) == (again.registration.urls, False)
            assert (await again.ownership.acquire(TOPIC, authoritative=True)).here
            assert not again.moved


async def test_a_lookup_waits_for_the_broker_that_stores_the_messages(postgresql_url: str) -> None:
    # Away
    async with party(postgresql_url, 3) as other:
        await made(other)
        async with party(postgresql_url, 1, store="disk-1") as one:
            await owner_seen_by(one)
        asking = asyncio.create_task(other.ownership.acquire(TOPIC, authoritative=True))
        async with party(postgresql_url, 5, store="disk-1") as again:
            owner = await asking
            assert (owner.urls, owner.decided) == (again.registration.urls, False)


async def test_a_waiting_lookup_is_refused_when_its_own_broker_stops(postgresql_url: str) -> None:
    # Another broker is away
    async with party(postgresql_url, 3) as other:
        await made(other)
        async with party(postgresql_url, 1, store="disk-1") as one:
            await owner_seen_by(one)
        asking = asyncio.create_task(other.ownership.acquire(TOPIC))
        await until(lambda: BUNDLE in other.ownership._locks)
        await other.ownership.close()
        with pytest.raises(NotServedError, match="ask another one"):
            await asking


async def test_a_broker_restarted_on_its_disk_waits_for_no_old_lease(postgresql_url) -> None:
    async with party(postgresql_url, 1, store="disk-1") as one:
        await made(one)
        await owner_seen_by(one)
        await one.die()
        async with party(postgresql_url, 1, store="disk-1") as again:
            assert (await again.ownership.acquire(TOPIC)).here


async def test_a_recreated_namespace_is_not_bound_to_the_broker_of_its_old_messages(
    postgresql_url: str,
) -> None:
    # A broker with its messages on disk is away
    async with party(postgresql_url, 3) as other:
        await made(other)
        async with party(postgresql_url, 1, store="disk-1") as one:
            await owner_seen_by(one)
        await other.store.delete_namespace(SPACE)
        await other.ownership.namespaces_deleted([SPACE])
        await made(other)
        assert (await other.ownership.acquire(TOPIC)).here


async def test_a_recreated_namespace_is_not_bound_to_a_dead_broker_of_its_old_messages(
    postgresql_url: str,
) -> None:
    async with party(postgresql_url, 3) as other:
        await made(other)
        async with party(postgresql_url, 1, store="disk-1") as one:
            await owner_seen_by(one)
            await one.die()
            await end_all_leases_but(other)
            await other.store.delete_namespace(SPACE)
            await other.ownership.namespaces_deleted([SPACE])
        await made(other)
        assert (await other.ownership.acquire(TOPIC)).here
        assert other.moved == [BUNDLE]


async def test_a_namespace_deletion_waits_for_the_owner_to_forget(postgresql_url: str) -> None:
    async with party(postgresql_url, 1) as one, party(postgresql_url, 3) as other:
        await made(one)
        await owner_seen_by(one)
        one.closing.clear()
        await other.store.delete_namespace(SPACE)
        deleting = asyncio.create_task(other.ownership.namespaces_deleted([SPACE]))
        await one.has_lost.wait()
        assert not deleting.done()
        one.closing.set()
        await deleting
        await one.has_moved.wait()
        assert one.moved == [Bundle(SPACE, ALL_HASHES)]
        await made(other)
        assert (await other.ownership.acquire(TOPIC, authoritative=True)).here
        assert other.moved == [BUNDLE]


async def test_a_broker_without_the_bundle_forgets_messages_of_a_deleted_namespace(
    postgresql_url: str,
) -> None:
    async with (
        party(postgresql_url, 1, store="disk-1") as one,
        party(postgresql_url, 3) as other,
    ):
        await made(one)
        await owner_seen_by(one)
        await one.ownership.release(BUNDLE)
        await other.store.delete_namespace(SPACE)
        await other.ownership.namespaces_deleted([SPACE])
        await one.has_moved.wait()
        assert one.moved == [Bundle(SPACE, ALL_HASHES)]


async def test_a_namespace_recreated_before_its_deletion_notice_stays(postgresql_url: str) -> None:
    async with party(postgresql_url, 1) as one, party(postgresql_url, 3) as other:
        await made(one)
        await owner_seen_by(one)
        await other.ownership.namespaces_deleted([SPACE])
        assert one.lost == one.moved == other.moved == []


async def test_a_namespace_deletion_times_out_if_a_broker_does_not_forget(
    postgresql_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(handing_over, "FORGET_SECONDS", 0.0)
    async with party(postgresql_url, 1) as one, party(postgresql_url, 3) as other:
        await made(one)
        await owner_seen_by(one)
        one.closing.clear()
        await other.store.delete_namespace(SPACE)
        await other.ownership.namespaces_deleted([SPACE])
        assert (
            f"{one.service_url} has not forgotten all of these deleted namespaces: {SPACE}"
            in caplog.text
        )
        one.closing.set()


async def test_a_bundle_is_not_served_until_old_messages_are_deleted(postgresql_url: str) -> None:
    async with party(postgresql_url, 1) as one:
        await made(one)
        async with party(postgresql_url, 3) as other:
            await owner_seen_by(other)
        one.forgets = False
        for _ in range(2):
            with pytest.raises(NotServedError, match="the disk is gone"):
                await one.ownership.acquire(TOPIC, authoritative=True)
            assert not one.ownership.owns(TOPIC)
        one.forgets = True
        assert (await one.ownership.acquire(TOPIC, authoritative=True)).here
        assert one.moved == [BUNDLE] * 3


@pytest.mark.parametrize("how", ["the broker is killed", "the answer is lost"])
async def test_old_messages_are_deleted_even_if_the_claim_was_cut_short(
    postgresql_url: str, how: str
) -> None:
    async with party(postgresql_url, 3) as other:
        await made(other)
        await owner_seen_by(other)
    async with party(postgresql_url, 1, store="disk-1") as one:
        async with one.store.use() as connection:
            assert await claim(connection, BUNDLE, one.session.id) == other.registration.store
        if how == "the broker is killed":
            await one.die()
        else:
            assert (await one.ownership.acquire(TOPIC)).here
            assert one.moved == [BUNDLE]
    async with party(postgresql_url, 1, store="disk-1") as again:
        assert (await again.ownership.acquire(TOPIC)).here
        # What is stored from now on stays
        await again.ownership.release(BUNDLE)
        assert (await again.ownership.acquire(TOPIC)).here
        assert again.moved == ([BUNDLE] if how == "the broker is killed" else [])


async def test_a_bundle_is_released_only_after_its_topics_are_closed(postgresql_url: str) -> None:
    async with party(postgresql_url, 1) as one, party(postgresql_url, 3) as other:
        await made(one)
        await owner_seen_by(one)
        one.closing.clear()
        releasing = asyncio.create_task(one.ownership.release(BUNDLE))
        await one.has_lost.wait()
        assert not one.ownership.owns(TOPIC)
        assert await owner_seen_by(other) == one.service_url
        one.closing.set()
        await releasing
        assert (await other.ownership.acquire(TOPIC, authoritative=True)).here


async def test_a_release_of_a_bundle_is_carried_out_by_its_owner(postgresql_url: str) -> None:
    async with party(postgresql_url, 1) as one, party(postgresql_url, 3) as other:
        await made(one)
        await owner_seen_by(one)
        await other.ownership.release(BUNDLE)
        assert one.lost == [BUNDLE]
        assert not one.ownership.owns(TOPIC)


async def test_a_broker_that_reacquires_its_bundle_keeps_its_messages(postgresql_url: str) -> None:
    async with party(postgresql_url, 1) as one:
        await made(one)
        await owner_seen_by(one)
        await one.ownership.release(BUNDLE)
        await owner_seen_by(one)
        assert not one.moved


async def test_bundles_of_a_recreated_namespace_do_not_overlap_old_bundles(postgresql_url) -> None:
    async with party(postgresql_url, 1) as one, party(postgresql_url, 3) as other:
        await made(one, 1)
        await owner_seen_by(one)
        await one.store.delete_namespace(SPACE)
        await made(one, 8)
        assert await owner_seen_by(other) == one.service_url
        assert one.ownership.owns(TOPIC)
        await other.ownership.release(BUNDLE_OF_8)
        assert one.lost == [bundle_of_topic(TOPIC, 1)]
        assert (await other.ownership.acquire(TOPIC, authoritative=True)).here
        assert not one.ownership.owns(TOPIC)


async def test_every_broker_lists_the_live_brokers(postgresql_url: str) -> None:
    async with party(postgresql_url, 1) as one:
        async with party(postgresql_url, 3) as other:
            assert await one.ownership.brokers() == ["127.0.0.1:2", "127.0.0.1:4"]
            assert await other.ownership.brokers() == ["127.0.0.1:2", "127.0.0.1:4"]
        assert await one.ownership.brokers() == ["127.0.0.1:2"]


async def test_a_claim_waits_for_a_lease_renewal_in_flight(postgresql_url: str) -> None:
    # An expired lease to other brokers, with an uncommitted renewal
    async with party(postgresql_url, 1) as one, party(postgresql_url, 3) as other:
        await made(one)
        async with one.store.use() as first, other.store.use() as second:
            await register(first, "late", "", one.registration, 0.3)
            await claim(first, BUNDLE, "late")
            async with first.transaction():
                assert await renew(first, "late", 60.0)
                await second.execute(UNTIL_THE_LEASE_IS_OVER, "late")
                claiming = asyncio.create_task(claim(second, BUNDLE, other.session.id))
                while not await first.fetchval(IS_WAITED_FOR):
                    assert not claiming.done()
            # The commit
            taken = await claiming
            assert taken is None
            assert await renew(first, "late", 60.0)
