"""Producers and consumers close when their permission is revoked."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from broker.authorization.grants import KEY, OF_NAMESPACE, OF_SUBSCRIPTIONS
from broker.authorization.questions import Asked, CommandAuthorization
from broker.authorization.revocation import AT_ONCE, TRIED_AGAIN_SECONDS, Revocation, Use
from broker.authorization.service import AuthorizationService
from broker.authorization.tenant_admins import TenantAdmins
from broker.policies.effective import DEFAULTS
from broker.policies.service import PolicyService
from broker.stores.changes import StoreError
from broker.stores.memory import MemoryStore
from broker.stores.store import TenantInfo
from proto.names import NamespaceName, TopicName
from server.authentication.refused import RefusedOperations
from server.configuration.authorization import AuthorizationSettings
from server.connection.request_errors import RequestError
from tests.support.clocks.manual_clock import ManualClock
from tests.support.security.peers import StandInSession, session

SHOP, OTHER = NamespaceName.parse("acme/shop"), NamespaceName.parse("acme/other")


@dataclass
class User:
    """A connection with producers and consumers."""

    session: StandInSession | None
    open: list[tuple[TopicName, str | None]] = field(default_factory=list)

    def uses(self) -> Iterator[Use]:
        for one in self.open:
            yield Use(*one, lambda one=one: self.open.remove(one))


class FailingStore(MemoryStore):
    failures: tuple[Exception, ...] = ()

    async def tenant(self, name: str) -> TenantInfo | None:
        if self.failures:
            failure, *rest = self.failures
            self.failures = tuple(rest)
            raise failure
        return await super().tenant(name)


class World:
    def __init__(self) -> None:
        self.clock, self.store = ManualClock(), FailingStore()
        self.policies = PolicyService(self.store, lambda: DEFAULTS, self.clock)
        settings = AuthorizationSettings(frozenset({"super"}), frozenset({"gate"}))
        admins = TenantAdmins(self.store, self.clock)
        self.users: list[User] = []
        self.service = AuthorizationService(
            lambda: settings, admins, self.policies, RefusedOperations(self.clock)
        )
        self.revocation = Revocation(self.service, self.users, self.clock)
        self.policies.on_change(self.revocation.policies_changed)

    def user(self, role: str, *uses: tuple[str, str | None], original: str = "") -> User:
        found = User(session(role, original), [(TopicName.parse(one), of) for one, of in uses])
        self.users.append(found)
        return found

    async def grant(self, namespace: NamespaceName = SHOP, **of: list[str]) -> None:
        subscriptions = {"kept": of.pop("kept")} if "kept" in of else {}
        value = {OF_NAMESPACE: of, OF_SUBSCRIPTIONS: subscriptions}
        await self.policies.set(namespace, KEY, value)
        await self.looked()

    async def looked(self) -> None:
        for _ in range(20):
            await asyncio.sleep(0)


@pytest.fixture
async def world() -> World:
    found = World()
    await found.store.create_tenant("acme", TenantInfo(("admin",), ("standalone",)))
    for namespace in (SHOP, OTHER):
        await found.store.create_namespace(namespace)
    await found.grant(one=["produce", "consume"], two=["produce", "consume"])
    return found


ORDERS = "persistent://acme/shop/orders"
PRODUCER, CONSUMER = (ORDERS, None), (ORDERS, "sub")


async def test_only_clients_of_the_role_that_lost_its_grant_are_closed(world: World) -> None:
    users = {role: world.user(role, PRODUCER, CONSUMER) for role in ("one", "two", "admin")}
    await world.grant(one=["consume"], two=["produce", "consume"])
    assert [of for _, of in users["one"].open] == ["sub"]
    assert len(users["two"].open) == len(users["admin"].open) == 2


async def test_a_client_behind_a_proxy_is_closed_when_the_proxy_role_loses_its_grant(
    world: World,
) -> None:
    await world.grant(one=["produce"], gate=["produce"])
    user = world.user("gate", PRODUCER, original="one")
    await world.grant(one=["produce"])
    assert not user.open


async def test_a_consumer_is_closed_when_its_subscription_is_restricted_to_another_role(
    world: World,
) -> None:
    user = world.user("one", (ORDERS, "kept"), CONSUMER)
    await world.grant(one=["consume"], kept=["two"])
    assert [of for _, of in user.open] == ["sub"]


async def test_a_change_of_grants_checks_only_clients_of_its_namespace(world: World) -> None:
    user = world.user("nobody", PRODUCER)  # role whose clients would be closed
    await world.grant(OTHER, one=["produce"])
    assert user.open


async def test_more_clients_than_a_turn_checks_are_all_closed(world: World) -> None:
    users = [world.user("one", *[PRODUCER] * 10) for _ in range(AT_ONCE // 5)]
    await world.grant()
    assert not any(user.open for user in users)


async def test_a_client_that_fails_to_close_does_not_keep_another_client_open(
    world: World, monkeypatch
) -> None:
    broken, user = world.user("one", PRODUCER), world.user("one", PRODUCER)
    monkeypatch.setattr(broken, "uses", lambda: iter([Use(*broken.open[0], lambda: 1 // 0)]))
    await world.grant()
    assert not user.open
    user.open.append(broken.open[0])
    await world.grant(two=["produce"])
    assert not user.open


@pytest.mark.parametrize("failure", [StoreError("away"), KeyError("what nobody expects")])
async def test_a_revocation_check_is_retried_after_a_failure_of_the_store(
    world: World, failure: Exception
) -> None:
    user = world.user("one", PRODUCER)
    world.store.failures = (failure,)
    await world.grant()
    assert user.open
    world.clock.advance(TRIED_AGAIN_SECONDS)
    await world.looked()
    assert not user.open


async def test_a_producer_opened_during_a_revocation_is_closed(world: World) -> None:
    commands = CommandAuthorization(world.service, world.revocation, pulsar_compatible=True)
    topic = TopicName.parse(ORDERS)
    async with commands.opening(session("one"), topic, Asked.PRODUCE):
        await world.grant()
        user = world.user("one", PRODUCER)
    await world.looked()
    assert not user.open


async def test_an_unauthorized_producer_is_not_opened(world: World) -> None:
    commands = CommandAuthorization(world.service, world.revocation, pulsar_compatible=True)
    topic, opened = TopicName.parse(ORDERS), False
    with pytest.raises(RequestError, match="not authorized to Produce"):
        async with commands.opening(session("nobody"), topic, Asked.PRODUCE):
            opened = True
    assert not opened
