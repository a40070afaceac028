"""Makes reproducible cases from a seed."""

import random as randomness
from collections.abc import Callable
from random import Random
from typing import Any
from urllib.parse import quote

from proto import PulsarApi_pb2 as pb
from tests.differential.cases import HASH_TOKEN, NAMESPACE, NO_HASH, Case, Step, World
from tests.differential.odd_names import (
    known_local,
    namespace,
    topic_name,
    world,
)
from tests.differential.odd_patterns import pattern
from tests.differential.raw_frames import raw_frame
from tests.support.golden.exchange import RECORDED_BROKER, Rest, Send

Type = pb.BaseCommand
Mode = pb.CommandGetTopicsOfNamespace
SHARED_WORLDS = 12
"""Namespaces shared by read-only cases."""
OF_ITS_OWN = 0.12
"""Share of cases that change their namespace."""
LEAST_STEPS, MOST_STEPS = 2, 6
PROPERTIES = (("k", "v"), ("", ""), ("ünï", "😀"), ("k", "w"), ("a|b", "c=d"))
VERSIONS = (-1, 0, 1, 5, 9, 10, 11, 12, 15, 19, 20, 21, 22, 100, 2**31 - 1)


def shared_worlds(seed: int) -> list[World]:
    """Return the contents of a seed's shared namespaces; the first is empty."""
    made = [World()]
    made += [world(_random(seed, f"world-{n}")) for n in range(1, SHARED_WORLDS)]
    return made


def cases(seed: int, count: int, *, through_proxy: bool = False) -> list[Case]:
    """Return the first ``count`` cases of a seed."""
    worlds = shared_worlds(seed)
    return [_case(seed, number, worlds, through_proxy=through_proxy) for number in range(count)]


def preparation(made: World) -> list[Rest]:
    """Return the calls that create a namespace and its contents."""
    calls = [Rest("PUT", f"/admin/v2/namespaces/{NAMESPACE}", None, 204)]
    calls += [_create("persistent", name) for name in made.topics]
    calls += [_create("persistent", name, count) for name, count in made.partitioned]
    calls += [_create("non-persistent", name) for name in made.non_persistent]
    return calls


def _create(domain: str, name: str, partitions: int = 0) -> Rest:
    path = f"/admin/v2/{domain}/{NAMESPACE}/{quote(name, safe='')}"
    if partitions:
        return Rest("PUT", f"{path}/partitions", str(partitions), 204)
    return Rest("PUT", path, None, 204)


def _random(seed: int, name: str) -> Random:
    return randomness.Random(f"{seed}/{name}")


def _case(seed: int, number: int, worlds: list[World], *, through_proxy: bool) -> Case:
    random = _random(seed, f"{'proxy' if through_proxy else 'broker'}-{number}")
    changes = random.random() < OF_ITS_OWN and not through_proxy
    shared = None if changes else random.randrange(len(worlds))
    known = world(random) if shared is None else worlds[shared]
    maker = _Maker(random, known, changes=changes, through_proxy=through_proxy)
    connects = random.random() >= 0.08
    steps = [] if connects else [maker.connect()]
    wanted = random.randint(LEAST_STEPS, MOST_STEPS)
    while len(steps) < wanted:
        steps += maker.steps()
    return Case(f"{seed}-{number}", known, shared, tuple(steps[:MOST_STEPS]), connects)


class _Maker:
    """Makes the steps of a case; remembers its requests, so ids repeat."""

    def __init__(self, random: Random, known: World, *, changes: bool, through_proxy: bool) -> None:
        self._random = random
        self._known = known
        self._changes = changes
        self._request_id = 0
        self._made = 0
        makers: list[tuple[Callable[[], list[Step]], float]] = [
            (self._lookup, 16),
            # A proxy closes the connection at an invalid name, so most steps end with an answer.
            (self._partitions, 11 if through_proxy else 22),
            (self._topics, 46 if through_proxy else 34),
            (self._ping, 3),
            (self._pong, 1.5),
            (self._raw, 6),
            (self._second_connect, 1.6),
        ]
        if not through_proxy:
            makers += [(self._watch, 16), (self._close_watch, 5)]
        if changes:
            makers += [(self._change, 45), (self._watch, 20)]
        self._makers = [maker for maker, _ in makers]
        self._weights = [weight for _, weight in makers]

    def steps(self) -> list[Step]:
        """Return the next step, or two related steps."""
        return self._random.choices(self._makers, self._weights)[0]()

    def _id(self) -> int:
        if self._random.random() < 0.03:
            return self._random.choice((0, 2**31, 2**63, 2**64 - 1))
        self._request_id += 1
        return self._request_id

    def connect(self) -> Step:
        """Return a CONNECT as a step: versions, methods, flags."""
        random = self._random
        connect = pb.CommandConnect(client_version=random.choice(("diff", "", "ünï", "v" * 400)))
        if random.random() < 0.85:
            connect.protocol_version = random.choice(VERSIONS)
        if random.random() < 0.4:
            connect.auth_method_name = random.choice(("none", "token", "tls", "", "odd"))
            connect.auth_data = b"odd"
        if random.random() < 0.2:
            connect.auth_method = random.choice(pb.AuthMethod.values())
        if random.random() < 0.3:
            connect.feature_flags.supports_auth_refresh = random.random() < 0.5
            connect.feature_flags.supports_topic_watchers = random.random() < 0.5
        if random.random() < 0.1:
            connect.proxy_version = "4.0.8"
        if random.random() < 0.12:
            connect.proxy_to_broker_url = random.choice(
                (RECORDED_BROKER, "", "x", "127.0.0.1:1", f"pulsar://{RECORDED_BROKER}")
            )
        if random.random() < 0.1:
            connect.original_principal = random.choice(("", "me"))
        command = pb.BaseCommand(type=Type.CONNECT, connect=connect)
        return Step("CONNECT", Send(command), answer_type=Type.CONNECTED)

    def _second_connect(self) -> list[Step]:
        step = self.connect()
        return [Step("CONNECT again", step.does, answer_type=step.answer_type)]

    def _lookup(self) -> list[Step]:
        random = self._random
        lookup = pb.CommandLookupTopic(topic=topic_name(random, self._known), request_id=self._id())
        if random.random() < 0.2:
            lookup.authoritative = random.random() < 0.5
        if random.random() < 0.1:
            lookup.advertised_listener_name = random.choice(("", " ", "odd", "internal", "ünï"))
        if random.random() < 0.1:
            lookup.original_principal = random.choice(("", "me"))
        if random.random() < 0.1:
            lookup.properties.add(key="k", value="v")
        return [_step("LOOKUP", Type.LOOKUP, lookupTopic=lookup)]

    def _partitions(self) -> list[Step]:
        random = self._random
        query = pb.CommandPartitionedTopicMetadata(
            topic=topic_name(random, self._known), request_id=self._id()
        )
        kind = "PARTITIONED_METADATA"
        if random.random() < 0.6:
            query.metadata_auto_creation_enabled = random.random() < 0.5
            kind += " auto" if query.metadata_auto_creation_enabled else " no auto"
        return [_step(kind, Type.PARTITIONED_METADATA, partitionMetadata=query)]

    def _topics(self) -> list[Step]:
        random = self._random
        request = pb.CommandGetTopicsOfNamespace(request_id=self._id(), namespace=namespace(random))
        chance, mode = random.random(), "default"
        if chance < 0.9:
            request.mode = random.choice(Mode.Mode.values())
            mode = Mode.Mode.Name(request.mode)
        if random.random() < 0.6:
            request.topics_pattern = pattern(random, self._known)
        if random.random() < 0.3:
            request.topics_hash = random.choice(
                (HASH_TOKEN, HASH_TOKEN, NO_HASH, "", "odd", "ffffffff")
            )
        if random.random() < 0.12:
            for key, value in random.sample(PROPERTIES, random.randrange(1, 4)):
                request.properties.add(key=key, value=value)
        made = [
            _step(f"GET_TOPICS {mode}", Type.GET_TOPICS_OF_NAMESPACE, getTopicsOfNamespace=request)
        ]
        if random.random() < 0.12:
            again = pb.CommandGetTopicsOfNamespace()
            again.CopyFrom(request)
            again.request_id, again.topics_hash = self._id(), HASH_TOKEN
            made.append(
                _step(
                    f"GET_TOPICS {mode}", Type.GET_TOPICS_OF_NAMESPACE, getTopicsOfNamespace=again
                )
            )
        return made

    def _watch(self) -> list[Step]:
        random = self._random
        text = pattern(random, self._known)
        if self._changes and random.random() < 0.7:
            text = random.choice((f"persistent://{NAMESPACE}/.*", f"{NAMESPACE}/new.*", ".*"))
        watch = pb.CommandWatchTopicList(
            request_id=self._id(),
            watcher_id=random.choice((1, 1, 1, 2, 3, 2**63)),
            namespace=NAMESPACE if self._changes else namespace(random),
            topics_pattern=text,
        )
        if random.random() < 0.3:
            watch.topics_hash = random.choice((HASH_TOKEN, NO_HASH, "", "odd"))
        return [_step("WATCH_TOPIC_LIST", Type.WATCH_TOPIC_LIST, watchTopicList=watch)]

    def _close_watch(self) -> list[Step]:
        close = pb.CommandWatchTopicListClose(
            request_id=self._id(), watcher_id=self._random.choice((1, 1, 2, 9, 2**64 - 1))
        )
        return [
            _step("WATCH_TOPIC_LIST_CLOSE", Type.WATCH_TOPIC_LIST_CLOSE, watchTopicListClose=close)
        ]

    def _change(self) -> list[Step]:
        """Create or delete a topic."""
        random = self._random
        self._made += 1
        chance, name = random.random(), f"new-{self._made}"
        if chance < 0.2:
            local = known_local(random, self._known)
            path = f"/admin/v2/persistent/{NAMESPACE}/{quote(local, safe='')}"
            return [Step("REST change", Rest("DELETE", path, None, 204))]
        count = random.choice((0, 0, 1, 2))
        return [Step("REST change", _create("persistent", name, count))]

    def _ping(self) -> list[Step]:
        command = pb.BaseCommand(type=Type.PING, ping=pb.CommandPing())
        return [Step("PING", Send(command), answer_type=Type.PONG)]

    def _pong(self) -> list[Step]:
        return [Step("PONG", Send(pb.BaseCommand(type=Type.PONG, pong=pb.CommandPong())))]

    def _raw(self) -> list[Step]:
        name, data = raw_frame(self._random)
        return [Step(f"raw {name}", Send(None, data))]


def _step(kind: str, type_: pb.BaseCommand.Type.ValueType, **body: Any) -> Step:
    """Return a request whose answer has its request id."""
    (request,) = body.values()
    return Step(kind, Send(pb.BaseCommand(type=type_, **body)), request.request_id)
