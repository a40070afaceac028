"""Endpoints of the admin REST: each method and path, with a likely call."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from urllib.parse import quote

from tests.differential.rest.calls import JSON_TYPE, METADATA_TYPE, NAMESPACE

DOMAINS = ("persistent", "non-persistent")
TOPIC_WORDS = ("a", "beta-1", "gamma.x", "delta_7", "Eps", "zeta=1", "eta:2", "theta-partition")
HARMLESS_KEYS = ("loadBalancerSheddingGracePeriodMinutes", "subscribeRatePeriodPerConsumerInSecond")
"""Keys of dynamic configuration that are harmless on a shared broker."""
_LIKELY = 0.94


@dataclass
class World:
    """Objects that an exchange has probably created so far.

    Attributes:
        tenant: The exchange's own tenant.
        namespaces: Local names, by tenant.
        topics: Local names of unpartitioned topics in ``ns``, by domain.
        partitioned: Local names with their numbers of partitions, by domain.
    """

    tenant: str
    namespaces: dict[str, list[str]]
    topics: dict[str, list[str]] = field(default_factory=lambda: {one: [] for one in DOMAINS})
    partitioned: dict[str, dict[str, int]] = field(
        default_factory=lambda: {one: {} for one in DOMAINS}
    )


@dataclass
class Draft:
    """Call under construction.

    Attributes:
        method: The verb.
        segments: Of the path, each encoded for the wire.
        query: Pairs, encoded for the wire.
        body: None without a body.
        headers: By name.
        names: Number of trailing segments that hold names.
    """

    method: str
    segments: list[str]
    query: list[tuple[str, str]] = field(default_factory=list)
    body: str | None = None
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def path(self) -> str:
        """Return path and query."""
        query = "&".join(f"{name}={value}" for name, value in self.query)
        return "/" + "/".join(self.segments) + (f"?{query}" if query else "")


@dataclass(frozen=True)
class Endpoint:
    """Method and path with variables.

    Attributes:
        method: The verb.
        template: The path; ``{tenant}`` and so on are variables, ``{domain}`` was filled in.
        names: Returns likely values of the variables, by name.
        body: Returns a likely body; None for calls without a body.
        query: Returns likely parameters.
        media_type: Of the body.
        happened: Records an unmodified call in the world.
    """

    method: str
    template: str
    names: Callable[[Random, World], dict[str, str]]
    body: Callable[[Random, World], str | None] | None = None
    query: Callable[[Random, World], list[tuple[str, str]]] | None = None
    media_type: str = JSON_TYPE
    happened: Callable[[World, Draft], None] | None = None

    @property
    def kind(self) -> str:
        """Return the class in a report."""
        return f"{self.method} {self.template}"

    def draft(self, random: Random, world: World) -> Draft:
        """Return a likely call."""
        names = self.names(random, world)
        segments = [
            quote(names[part[1:-1]], safe="=:") if part.startswith("{") else part
            for part in self.template.strip("/").split("/")
        ]
        draft = Draft(self.method, segments)
        if self.query is not None:
            draft.query = self.query(random, world)
        draft.body = self.body(random, world) if self.body is not None else None
        if draft.body is not None:
            draft.headers["Content-Type"] = self.media_type
        return draft


# -- names ----------------------------------------------------------------------------------------


def _nothing(_: Random, __: World) -> dict[str, str]:
    return {}


def _tenant(random: Random, world: World) -> dict[str, str]:
    own = random.choice(list(world.namespaces))
    return {"tenant": own if random.random() < _LIKELY else f"{world.tenant}-none"}


def _new_tenant(random: Random, world: World) -> dict[str, str]:
    return {"tenant": f"{world.tenant}-{random.choice(('b', 'c.d', 'e_f', 'G', 'h=i:j'))}"}


def _namespace(random: Random, world: World) -> dict[str, str]:
    tenant = world.tenant if random.random() < 0.96 else f"{world.tenant}-none"
    local = random.choice(world.namespaces[world.tenant] or [NAMESPACE])
    return {
        "tenant": tenant,
        "namespace": local if random.random() < _LIKELY else random.choice(("none", "ns-2")),
    }


def _new_namespace(random: Random, world: World) -> dict[str, str]:
    local = random.choice(("ns-2", "ns.3", "NS", "n_4", "n=5", "n:6", NAMESPACE))
    return {"tenant": world.tenant, "namespace": local}


def _own_namespace(random: Random, world: World) -> dict[str, str]:
    if random.random() < 0.04:
        return _namespace(random, world)
    return {"tenant": world.tenant, "namespace": NAMESPACE}


def _new_topic(random: Random, world: World) -> dict[str, str]:
    return _own_namespace(random, world) | {"topic": random.choice(TOPIC_WORDS)}


def _existing(
    domain: str, *, partitioned: bool, both: bool = False
) -> Callable[[Random, World], dict[str, str]]:
    def names(random: Random, world: World) -> dict[str, str]:
        known = list(world.partitioned[domain]) if partitioned or both else []
        if not partitioned or both:
            known += world.topics[domain]
            known += [f"{name}-partition-0" for name in world.partitioned[domain]]
        if not known or random.random() < 0.06:
            every = [*world.topics[domain], *world.partitioned[domain], *TOPIC_WORDS]
            every += [f"{name}-partition-1" for name in world.partitioned[domain]]
            return _own_namespace(random, world) | {"topic": random.choice(every)}
        return {
            "tenant": world.tenant,
            "namespace": NAMESPACE,
            "topic": random.choice(known),
        }

    return names


# -- bodies and parameters ------------------------------------------------------------------------


def _properties(random: Random, _: World) -> str:
    pairs = [("team", "red"), ("tier", "1"), ("owner", "ünï"), ("a b", "c=d,e"), ("x", "")]
    return json.dumps(dict(random.sample(pairs, random.randint(1, 3))), ensure_ascii=False)


def _maybe_properties(random: Random, world: World) -> str | None:
    return _properties(random, world) if random.random() < 0.5 else None


def _count(random: Random, _: World) -> str:
    return random.choice(("1", "2", "3", "4"))


def _more(random: Random, _: World) -> str:
    return random.choice(("4", "5", "6", "7", "2"))


def _metadata(random: Random, world: World) -> str:
    body: dict[str, object] = {"partitions": random.randint(1, 4)}
    if random.random() < 0.7:
        body["properties"] = json.loads(_properties(random, world))
    return json.dumps(body, ensure_ascii=False)


def _tenant_info(random: Random, _: World) -> str:
    roles = random.choice(([], ["one"], ["one", "two"], None))
    body: dict[str, object] = {"allowedClusters": ["standalone"]}
    return json.dumps(body if roles is None else body | {"adminRoles": roles})


def _policies(random: Random, _: World) -> str | None:
    bundles = {"bundles": {"numBundles": random.choice((1, 4, 7, 16))}}
    clusters = {"replication_clusters": ["standalone"]}
    body = random.choice((None, {}, {}, bundles, clusters, bundles | clusters))
    return None if body is None else json.dumps(body)


def _listed(random: Random, _: World) -> list[tuple[str, str]]:
    return random.choice(
        (
            [],
            [],
            [("bundle", "0x00000000_0x40000000")],
            [("bundle", "0xc0000000_0xffffffff")],
            [("includeSystemTopic", "false")],
            [("includeSystemTopic", "true")],
            [("properties", "team%3Dred")],
        )
    )


def _modes(random: Random, _: World) -> list[tuple[str, str]]:
    mode = random.choice(("PERSISTENT", "NON_PERSISTENT", "ALL", None))
    system = random.choice(("true", "false", None))
    pairs = (("mode", mode), ("includeSystemTopic", system))
    return [(name, value) for name, value in pairs if value is not None]


def _key(random: Random, _: World) -> list[tuple[str, str]]:
    return [("key", random.choice(("team", "tier", "a%20b", "none")))]


def _force(random: Random, _: World) -> list[tuple[str, str]]:
    return random.choice(([], [], [], [("force", "false")], [("force", "true")]))


def _topic_force(random: Random, _: World) -> list[tuple[str, str]]:
    return random.choice(([], [("force", "true")], [("authoritative", "false")]))


def _creation(random: Random, _: World) -> list[tuple[str, str]]:
    return random.choice(([], [], [("createLocalTopicOnly", "false")]))


def _checked(random: Random, _: World) -> list[tuple[str, str]]:
    return random.choice(([], [], [("checkAllowAutoCreation", "false")]))


# -- what a call changes --------------------------------------------------------------------------


def _made_topic(domain: str) -> Callable[[World, Draft], None]:
    def happened(world: World, draft: Draft) -> None:
        namespace, topic = draft.segments[4:6]
        if namespace == NAMESPACE:
            world.topics[domain].append(topic)

    return happened


def _made_partitioned(domain: str) -> Callable[[World, Draft], None]:
    def happened(world: World, draft: Draft) -> None:
        namespace, topic = draft.segments[4:6]
        if namespace == NAMESPACE:
            world.partitioned[domain][topic] = 1

    return happened


def _removed(domain: str) -> Callable[[World, Draft], None]:
    def happened(world: World, draft: Draft) -> None:
        name = draft.segments[5]
        if draft.segments[-1] == "partitions":
            world.partitioned[domain].pop(name, None)
        elif name in world.topics[domain]:
            world.topics[domain].remove(name)

    return happened


def _made_namespace(world: World, draft: Draft) -> None:
    world.namespaces[world.tenant].append(draft.segments[4])


def _made_tenant(world: World, draft: Draft) -> None:
    world.namespaces.setdefault(draft.segments[3], [])


# -- the endpoints --------------------------------------------------------------------------------


def _of_topics(domain: str) -> list[Endpoint]:
    namespace = f"/admin/v2/{domain}/{{tenant}}/{{namespace}}"
    topic = f"{namespace}/{{topic}}"
    partitions, properties = f"{topic}/partitions", f"{topic}/properties"
    one, parted = _existing(domain, partitioned=False), _existing(domain, partitioned=True)
    some = _existing(domain, partitioned=False, both=True)
    return [
        Endpoint("GET", namespace, _own_namespace, query=_listed),
        Endpoint("GET", f"{namespace}/partitioned", _own_namespace),
        Endpoint("DELETE", topic, one, query=_topic_force, happened=_removed(domain)),
        Endpoint("GET", partitions, some, query=_checked),
        Endpoint("POST", partitions, parted, _more),
        Endpoint("DELETE", partitions, parted, query=_topic_force, happened=_removed(domain)),
        Endpoint("GET", properties, some),
        Endpoint("PUT", properties, some, _properties),
        Endpoint("DELETE", properties, some, query=_key),
        Endpoint("GET", f"{topic}/subscriptions", some),
        Endpoint("GET", f"/lookup/v2/topic/{domain}/{{tenant}}/{{namespace}}/{{topic}}", some),
        Endpoint(
            "GET", f"/lookup/v2/topic/{domain}/{{tenant}}/{{namespace}}/{{topic}}/bundle", some
        ),
        *_creations(domain),
    ]


def _creations(domain: str) -> list[Endpoint]:
    topic = f"/admin/v2/{domain}/{{tenant}}/{{namespace}}/{{topic}}"
    made = _made_partitioned(domain)
    partitions = f"{topic}/partitions"
    return [
        Endpoint("PUT", topic, _new_topic, _maybe_properties, happened=_made_topic(domain)),
        Endpoint("PUT", partitions, _new_topic, _count, _creation, happened=made),
        Endpoint("PUT", partitions, _new_topic, _metadata, None, METADATA_TYPE, made),
    ]


_NAMESPACE = "/admin/v2/namespaces/{tenant}/{namespace}"
_TENANT = "/admin/v2/tenants/{tenant}"
_BROKERS = "/admin/v2/brokers"
_CONFIGURATION = f"{_BROKERS}/configuration"


def _configured(random: Random, _: World) -> dict[str, str]:
    key = random.choice((*HARMLESS_KEYS, "maxTenantsNone"))
    return {"key": key, "value": random.choice(("7", "11", "many"))}


def _cluster(random: Random, _: World) -> dict[str, str]:
    return {"cluster": random.choice(("standalone", "standalone", "none"))}


CREATIONS = {domain: _creations(domain) for domain in DOMAINS}
"""Usual first calls of an exchange, by domain."""
ENDPOINTS = (
    *_of_topics("persistent"),
    *_of_topics("non-persistent"),
    Endpoint("GET", "/admin/v2/namespaces/{tenant}", _tenant),
    Endpoint("GET", _NAMESPACE, _namespace),
    Endpoint("PUT", _NAMESPACE, _new_namespace, _policies, happened=_made_namespace),
    Endpoint("DELETE", _NAMESPACE, _namespace, query=_force),
    Endpoint("GET", f"{_NAMESPACE}/topics", _own_namespace, query=_modes),
    Endpoint("GET", f"{_NAMESPACE}/bundles", _namespace),
    Endpoint("GET", "/admin/v2/tenants", _nothing),
    Endpoint("GET", _TENANT, _tenant),
    Endpoint("PUT", _TENANT, _new_tenant, _tenant_info, happened=_made_tenant),
    Endpoint("POST", _TENANT, _tenant, _tenant_info),
    Endpoint("DELETE", _TENANT, _tenant, query=_force),
    Endpoint("GET", "/admin/v2/clusters", _nothing),
    Endpoint("GET", "/admin/v2/clusters/{cluster}", _cluster),
    Endpoint("GET", _BROKERS, _nothing),
    Endpoint("GET", f"{_BROKERS}/{{cluster}}", _cluster),
    Endpoint("GET", f"{_BROKERS}/leaderBroker", _nothing),
    Endpoint("GET", f"{_BROKERS}/version", _nothing),
    Endpoint("GET", f"{_BROKERS}/health", _nothing),
    Endpoint("GET", f"{_BROKERS}/ready", _nothing),
    Endpoint("GET", _CONFIGURATION, _nothing),
    Endpoint("GET", f"{_CONFIGURATION}/values", _nothing),
    Endpoint("GET", f"{_CONFIGURATION}/runtime", _nothing),
    Endpoint("POST", f"{_CONFIGURATION}/{{key}}/{{value}}", _configured),
    Endpoint("DELETE", f"{_CONFIGURATION}/{{key}}", _configured),
)
