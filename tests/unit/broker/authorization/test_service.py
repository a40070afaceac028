"""Superusers, admins, grants and proxies, and decisions made without reading the store."""

import asyncio

import pytest

from broker.authorization.operations import NamespaceOperation, TopicOperation
from broker.authorization.service import AuthorizationService
from broker.authorization.tenant_admins import (
    TRUSTED_SECONDS,
    TenantAdmins,
    TenantMissingError,
)
from broker.policies.effective import DEFAULTS
from broker.policies.service import PolicyService
from broker.stores.memory import MemoryStore
from broker.stores.store import TenantInfo
from proto.names import NamespaceName, TopicName
from server.authentication.refused import RefusedOperations
from server.configuration.authorization import AuthorizationSettings
from tests.support.clocks.manual_clock import ManualClock
from tests.support.security.peers import session

SHOP = NamespaceName.parse("acme/shop")
ORDERS = TopicName.parse("persistent://acme/shop/orders")
GET_TOPICS, CREATE = NamespaceOperation.GET_TOPICS, NamespaceOperation.CREATE_TOPIC


class CountingStore(MemoryStore):
    """A store counting reads of tenants, whose answers a test holds back."""

    def __init__(self) -> None:
        super().__init__()
        self.reads, self.holds, self.reading = 0, asyncio.Event(), asyncio.Event()
        self.holds.set()

    async def tenant(self, name: str) -> TenantInfo | None:
        self.reads += 1
        found = await super().tenant(name)
        self.reading.set()
        await self.holds.wait()
        return found


class World:
    def __init__(self) -> None:
        self.clock = ManualClock()
        self.store = CountingStore()
        self.policies = PolicyService(self.store, lambda: DEFAULTS, self.clock)
        self.tenants = TenantAdmins(self.store, self.clock)
        self.settings = AuthorizationSettings(
            superusers=frozenset({"super", "gate"}), proxy_roles=frozenset({"gate", "relay"})
        )
        self.service = AuthorizationService(
            lambda: self.settings, self.tenants, self.policies, RefusedOperations(self.clock)
        )

    async def grant(self, role: str, *actions: str) -> None:
        kept = {"namespace_auth": {role: list(actions)}}
        await self.policies.set(SHOP, "auth_policies", kept)


@pytest.fixture
async def world() -> World:
    found = World()
    await found.store.create_tenant("acme", TenantInfo(("admin",), ("standalone",)))
    await found.store.create_namespace(SHOP)
    return found


async def test_a_superuser_is_allowed_everything_without_a_read_of_the_store(world: World) -> None:
    missing = NamespaceName.parse("missing/shop")
    assert world.service.surely_allows(session("super"), missing, CREATE) is True
    assert await world.service.allows_tenant(session("super"), "missing")
    assert world.store.reads == 0


async def test_a_tenant_admin_is_allowed_everything_only_in_its_tenant(world: World) -> None:
    await world.store.create_tenant("rival", TenantInfo(("other",), ("standalone",)))
    assert await world.service.allows(session("admin"), SHOP, CREATE)
    assert await world.service.allows_tenant(session("admin"), "acme")
    assert not await world.service.allows_tenant(session("admin"), "rival")
    assert not world.service.is_superuser(session("admin"))


async def test_a_grant_and_its_removal_take_effect_immediately(world: World) -> None:
    await world.grant("reader", "consume")
    assert world.service.surely_allows(session("reader"), SHOP, GET_TOPICS) is True
    assert await world.service.allows(session("reader"), ORDERS, TopicOperation.CONSUME)
    await world.grant("reader", "functions")
    assert world.service.surely_allows(session("reader"), SHOP, GET_TOPICS) is False
    assert not await world.service.allows(session("reader"), SHOP, GET_TOPICS)


async def test_parsed_grants_of_deleted_namespaces_do_not_stay_in_memory(world: World) -> None:
    kept = {"namespace_auth": {"reader": ["consume"]}}
    for number in range(9):
        namespace = NamespaceName.parse(f"acme/gone-{number}")
        await world.policies.set(namespace, "auth_policies", kept)
        assert world.service.surely_allows(session("reader"), namespace, GET_TOPICS)
        await world.policies.forget_namespaces([namespace])
    assert len(world.service._read) <= 2


async def test_a_proxied_request_needs_permission_of_the_proxy_and_the_original_role(
    world: World,
) -> None:
    both = {"namespace_auth": {"reader": ["consume"], "relay": ["consume"]}}
    await world.policies.set(SHOP, "auth_policies", both)

    async def lists(role: str, original: str) -> bool:
        asked = session(role, original)
        return await world.service.allows(asked, SHOP, GET_TOPICS)

    assert await lists("gate", "reader")
    assert await lists("relay", "admin")
    assert not await lists("relay", "nobody")
    assert not await lists("gate", "nobody")
    assert world.service.is_superuser(session("gate", "super"))
    assert not world.service.is_superuser(session("gate", "admin"))


async def test_with_multiple_roles_enabled_any_role_of_a_token_is_sufficient(world: World) -> None:
    several = session("nobody", more=("nobody", "admin"))
    assert not await world.service.allows(several, SHOP, CREATE)
    world.settings = world.settings._replace(multi_roles=True)
    assert await world.service.allows(several, SHOP, CREATE)


@pytest.mark.parametrize("multi_roles", [False, True])
async def test_a_session_with_an_empty_role_is_refused_despite_matching_grants(
    world, *, multi_roles
) -> None:
    world.settings = world.settings._replace(
        multi_roles=multi_roles, wildcards=True, superusers=frozenset({""})
    )
    await world.store.change_tenant("acme", TenantInfo(("",), ("standalone",)))
    await world.grant("*", "consume")
    assert await world.service.allows(session("anybody"), SHOP, GET_TOPICS)
    assert not await world.service.allows(session(""), SHOP, GET_TOPICS)
    assert not await world.service.allows_tenant(session(""), "acme")


@pytest.mark.parametrize(
    ("role", "original", "believed"),
    [
        ("gate", "", False),
        ("gate", "relay", False),
        ("gate", "gate", False),
        ("gate", "admin", True),
        ("admin", "", True),
        ("admin", "admin", True),
        ("admin", "super", False),
        ("super", "admin", False),
    ],
)
async def test_a_proxy_must_name_a_non_proxy_original_and_a_client_only_its_own_role(
    world: World, role: str, original: str, *, believed: bool
) -> None:
    asked = session(role, original)
    assert world.service.is_believed(asked) is believed
    allowed = {
        await world.service.allows_tenant(asked, "acme"),
        await world.service.allows(asked, SHOP, CREATE),
        await world.service.allows(asked, ORDERS, TopicOperation.CONSUME),
        bool(world.service.surely_allows(asked, SHOP, CREATE)),
    }
    assert allowed == {believed}
    assert believed or not world.service.is_superuser(asked)
    assert await world.service.administers(asked, "acme") is (believed and role == "admin")


async def test_a_change_of_the_superusers_takes_effect_immediately(world: World) -> None:
    world.settings = world.settings._replace(superusers=frozenset({"admin"}))
    assert world.service.is_superuser(session("admin"))
    assert not world.service.is_superuser(session("super"))


async def test_an_admin_missing_in_the_cache_is_read_from_the_store_before_a_refusal(
    world: World,
) -> None:
    asked = session("late")
    assert not await world.service.allows_tenant(asked, "acme")
    await world.store.change_tenant("acme", TenantInfo(("late",), ("standalone",)))
    assert world.service.surely_allows(asked, SHOP, CREATE) is False
    assert await world.service.allows_tenant(asked, "acme")


async def test_a_tenant_admin_read_from_the_store_is_trusted_for_a_limited_time(
    world: World,
) -> None:
    asked = session("admin")
    assert world.service.surely_allows(asked, SHOP, CREATE) is False
    assert await world.service.allows_tenant(asked, "acme")
    assert world.service.surely_allows(asked, SHOP, CREATE) is True
    world.clock.advance(TRUSTED_SECONDS + 0.001)
    assert world.service.surely_allows(asked, SHOP, CREATE) is False


async def test_a_tenant_admin_removed_by_this_broker_is_refused_immediately(world: World) -> None:
    assert await world.service.allows_tenant(session("admin"), "acme")
    await world.store.change_tenant("acme", TenantInfo((), ("standalone",)))
    world.tenants.forget()
    assert not await world.service.allows_tenant(session("admin"), "acme")


async def test_a_read_in_flight_while_an_admin_is_removed_is_not_cached(world: World) -> None:
    world.store.holds.clear()
    asked = asyncio.create_task(world.service.allows_tenant(session("admin"), "acme"))
    await world.store.reading.wait()  # and returns the earlier state
    await world.store.change_tenant("acme", TenantInfo((), ("standalone",)))
    world.tenants.forget()
    world.store.holds.set()
    assert await asked
    assert world.service.surely_allows(session("admin"), SHOP, CREATE) is False
    assert not await world.service.allows_tenant(session("admin"), "acme")


async def test_a_missing_tenant_raises_an_error_instead_of_a_refusal(world: World) -> None:
    with pytest.raises(TenantMissingError):
        await world.service.allows_tenant(session("admin"), "missing")


async def test_a_consumer_may_not_use_a_subscription_restricted_to_another_role(
    world: World,
) -> None:
    kept = {
        "namespace_auth": {"reader": ["consume"]},
        "subscription_auth_roles": {"owned": ["owner"], "\x85": ["owner"]},
    }
    await world.policies.set(SHOP, "auth_policies", kept)
    subscribe = TopicOperation.SUBSCRIBE
    assert await world.service.allows(session("reader"), ORDERS, subscribe, "free")
    assert not await world.service.allows(session("reader"), ORDERS, subscribe, "owned")
    assert not await world.service.allows(session("reader"), ORDERS, subscribe, "\x85")


async def test_in_prefix_mode_a_subscription_name_must_begin_with_the_role(world) -> None:
    await world.grant("reader", "consume")
    await world.policies.set(SHOP, "subscription_auth_mode", "Prefix")

    async def subscribes(role: str, name: str) -> bool:
        return await world.service.allows(session(role), ORDERS, TopicOperation.SUBSCRIBE, name)

    assert await subscribes("reader", "reader-1")
    assert not await subscribes("reader", "1-reader")
    # Java does not count a no-break space as whitespace.
    assert not await subscribes("reader", "\xa0")
    assert await subscribes("admin", "any")
    assert await world.service.lacks_prefix(session("reader"), ORDERS, "any") == "reader"
    assert await world.service.lacks_prefix(session("gate", "reader"), ORDERS, "any") == "reader"
    assert await world.service.lacks_prefix(session("admin"), ORDERS, "any") is None
    assert await world.service.lacks_prefix(session(""), ORDERS, "any") is None
    await world.policies.set(SHOP, "subscription_auth_mode", "None")
    assert await subscribes("reader", "1-reader")
