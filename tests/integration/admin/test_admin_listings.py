"""Listings over HTTP: whole, filtered, at the client's pace, and in every ending."""

import asyncio
import gc
import json
import socket
import tracemalloc
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress

import pytest

from broker.admin.listing_response import MAX_LISTINGS, WRITE_SECONDS, json_names
from broker.admin.negotiation import METADATA_TYPE
from broker.admin.requests import parse_properties
from broker.configuration.plugin_keys import UNBOUNDED
from broker.stores.changes import TopicChanges
from proto.names import NamespaceName
from tests.support.clocks.manual_clock import ManualClock
from tests.support.peers.rest_client import rest_client
from tests.support.processes.cluster import Cluster, cluster, fill, topic_names, until

NAMESPACE = "public/big"
PATH = f"/admin/v2/persistent/{NAMESPACE}"
NAMES = topic_names(NAMESPACE, 20_000, 100)
INDEX = "broker.property_index:PropertyIndex"


@asynccontextmanager
async def listing_of(names: list[str], **keys: str) -> AsyncIterator[Cluster]:
    async with cluster(broker=keys) as parts:
        await fill(parts.broker, {NAMESPACE: names})
        yield parts


async def test_a_listing_of_many_blocks_is_complete() -> None:
    async with listing_of(NAMES) as parts, rest_client(parts.broker) as rest:
        listed = await rest.ask("GET", PATH)
        by_mode = await rest.ask("GET", f"/admin/v2/namespaces/{NAMESPACE}/topics?mode=ALL")
        assert listed.value == NAMES
        assert by_mode.value == NAMES
        assert parts.broker._admin_listings.active == 0


async def test_the_topics_of_all_bundles_together_are_the_whole_namespace() -> None:
    async with listing_of(NAMES) as parts, rest_client(parts.broker) as rest:
        edges = (await rest.ask("GET", f"/admin/v2/namespaces/{NAMESPACE}/bundles")).value
        found = []
        for low, high in zip(edges["boundaries"], edges["boundaries"][1:], strict=False):
            answer = await rest.ask("GET", f"{PATH}?bundle={low}_{high}")
            found += answer.value
        assert sorted(found) == NAMES


async def test_with_profile_pulsar_an_unknown_bundle_lists_no_topics() -> None:
    async with cluster(profile="pulsar") as parts, rest_client(parts.broker) as rest:
        await fill(parts.broker, {NAMESPACE: NAMES})
        answer = await rest.ask("GET", f"{PATH}?bundle=bogus")
        assert (answer.status, answer.value) == (200, [])


async def test_an_unknown_bundle_is_refused_with_its_name() -> None:
    async with listing_of(NAMES[:3]) as parts, rest_client(parts.broker) as rest:
        answer = await rest.ask("GET", f"{PATH}?bundle=bogus")
        assert answer.status == 412
        assert answer.reason == (
            "bundle='bogus' is none of the 4 bundles of public/big: they are at "
            "/admin/v2/namespaces/public/big/bundles"
        )


async def test_system_topics_are_listed_in_order_only_if_requested() -> None:
    start = f"persistent://{NAMESPACE}/"
    names = [f"{start}A", f"{start}__change_events", f"{start}a"]
    async with listing_of(names) as parts, rest_client(parts.broker) as rest:
        hidden = await rest.ask("GET", PATH)
        shown = await rest.ask("GET", f"{PATH}?includeSystemTopic=true")
        everything = await rest.ask(
            "GET", f"/admin/v2/namespaces/{NAMESPACE}/topics?mode=ALL&includeSystemTopic=true"
        )
        assert hidden.value == [f"{start}A", f"{start}a"]
        assert shown.value == everything.value == names


@pytest.mark.parametrize("local", ['quo"te', "back\\slash", "tab\there", "umläut", "😀", "a,b"])
def test_names_with_special_characters_are_escaped_as_json(local: str) -> None:
    names = [f"persistent://a/b/{one}" for one in ("x", local, "y")]
    written = json_names([name.encode() for name in names])
    assert json.loads(b"[" + written + b"]") == names


# -- properties -----------------------------------------------------------------------------------


async def test_properties_filter_a_listing_only_with_the_property_index() -> None:
    for keys, expected in (({}, 3), ({"pulsarResourcesExtendedClassName": INDEX}, 1)):
        async with listing_of([], **keys) as parts, rest_client(parts.broker) as rest:
            await rest.done("PUT", f"{PATH}/a", '{"team":"red","odd":"a,b=c"}')
            await rest.done("PUT", f"{PATH}/b", '{"team":"blue"}')
            await rest.done("PUT", f"{PATH}/c")
            # Once encoded for HTTP, and once more for the comma and the equals sign
            red = await rest.ask("GET", f"{PATH}?properties=team%3Dred")
            odd = await rest.ask("GET", f"{PATH}?properties=,team%3Dred,odd%3Da%252Cb%253Dc,")
            assert len(red.value) == len(odd.value) == expected
            assert red.value[0] == f"persistent://{NAMESPACE}/a"


@pytest.mark.parametrize(
    "query", ["noequals", "a%3Db,noequals", "%3Dvalue", ",".join(f"k{n}%3Dv" for n in range(101))]
)
async def test_unreadable_properties_are_refused_only_with_the_property_index(query: str) -> None:
    for keys, status in (({}, 200), ({"pulsarResourcesExtendedClassName": INDEX}, 412)):
        async with listing_of(NAMES[:1], **keys) as parts, rest_client(parts.broker) as rest:
            answer = await rest.ask("GET", f"{PATH}?properties={query}")
            assert answer.status == status


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("team=red", {"team": "red"}),
        (" team = red ,,", {"team": "red"}),
        ("a=b=c", {"a": "b=c"}),
        ("a=", {"a": ""}),
        ("a%2Cb%3D=c%2Bd+e", {"a,b=": "c+d e"}),
        ("a=1,a=2", {"a": "2"}),
        ("%C3%A9=%F0%9F%98%80", {"\xe9": "\U0001f600"}),
    ],
)
def test_keys_and_values_of_the_properties_filter_are_decoded_separately(text, expected) -> None:
    assert parse_properties(text, UNBOUNDED, skip_unreadable=False) == expected


def test_unreadable_properties_are_omitted_with_skip_unreadable() -> None:
    properties = parse_properties("noequals,=x,a=b", UNBOUNDED, skip_unreadable=True)
    assert properties == {"a": "b"}


async def test_partitions_are_selected_by_the_properties_of_their_topic() -> None:
    keys = {"pulsarResourcesExtendedClassName": INDEX}
    async with listing_of([], **keys) as parts, rest_client(parts.broker) as rest:
        body = '{"partitions":2,"properties":{"team":"red"}}'
        await rest.ask("PUT", f"{PATH}/p/partitions", body, METADATA_TYPE)
        await rest.done("PUT", f"{PATH}/other")
        await rest.done("POST", f"{PATH}/p/partitions", "3")
        answer = await rest.ask("GET", f"{PATH}?properties=team%3Dred")
        assert len(answer.value) == 3


# -- clients --------------------------------------------------------------------------------------


class SlowReader:
    """A client with a requested, unread listing."""

    def __init__(self, parts: Cluster, path: str = PATH) -> None:
        host, _, port = parts.broker.web_service_url.removeprefix("http://").rpartition(":")
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        self.socket.connect((host, int(port)))
        request = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        self.socket.sendall(request.encode())

    async def read_all(self) -> bytearray:
        """Read until the broker closes or resets."""
        self.socket.setblocking(False)
        loop, received = asyncio.get_running_loop(), bytearray()
        with suppress(ConnectionResetError):
            while data := await loop.sock_recv(self.socket, 65_536):
                received += data
        return received


async def test_a_client_that_disconnects_during_a_listing_logs_no_error() -> None:
    names = topic_names(NAMESPACE, 60_000, 200)
    async with listing_of(names) as parts:
        reader = SlowReader(parts)
        listings = parts.broker._admin_listings
        await until(lambda: listings.active == 1, "the listing began")
        reader.socket.close()
        # Then (the cluster fails if anything was logged as an error)
        await until(lambda: listings.active == 0, "the listing ended")


async def test_a_listing_whose_client_reads_nothing_ends_after_the_write_timeout() -> None:
    clock, names = ManualClock(), topic_names(NAMESPACE, 60_000, 200)
    async with cluster(clock=clock) as parts:
        await fill(parts.broker, {NAMESPACE: names})
        reader, listings = SlowReader(parts), parts.broker._admin_listings
        await until(lambda: listings.active == 1, "the listing began")
        for _ in range(200):
            await asyncio.sleep(0)
        clock.advance(WRITE_SECONDS - 1)
        await asyncio.sleep(0)
        still = listings.active
        clock.advance(2)
        await until(lambda: listings.active == 0, "the listing was given up")
        assert still == 1
        received = await reader.read_all()
        assert received.count(b"HTTP/1.1") <= 1
        assert not received.endswith(b"]\r\n0\r\n\r\n")
        reader.socket.close()


async def test_a_large_listing_above_the_limit_of_listings_is_answered_503() -> None:
    async with listing_of(NAMES) as parts, rest_client(parts.broker) as rest:
        listings = parts.broker._admin_listings
        listings.active = MAX_LISTINGS
        large = await rest.ask("GET", PATH)
        small = await rest.ask("GET", "/admin/v2/persistent/public/default")
        listings.active = 0
        assert (large.status, small.status) == (503, 200)
        assert large.reason == f"{MAX_LISTINGS} listings are being written: ask again later"


# -- partitioned topics ---------------------------------------------------------------------------


@asynccontextmanager
async def partitioned_topics(names: Iterable[str]) -> AsyncIterator[Cluster]:
    async with cluster() as parts:
        changes = TopicChanges(partitioned=dict.fromkeys(names, 1))
        await parts.broker.store.apply(NamespaceName.parse(NAMESPACE), changes)
        yield parts


@contextmanager
def measured() -> Iterator[Callable[[], int]]:
    """Yield a function for the most bytes simultaneously held since the block began."""
    gc.collect()
    tracemalloc.start()
    try:
        yield lambda: tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


async def test_a_listing_of_many_partitioned_topics_is_complete() -> None:
    async with partitioned_topics(NAMES) as parts, rest_client(parts.broker) as rest:
        assert (await rest.ask("GET", f"{PATH}/partitioned")).value == NAMES


async def test_slow_readers_of_partitioned_topics_keep_few_names_in_memory() -> None:
    async with partitioned_topics(NAMES) as parts:
        listings = parts.broker._admin_listings
        with measured() as most_bytes:
            readers = [SlowReader(parts, f"{PATH}/partitioned") for _ in range(8)]
            await until(lambda: listings.active == len(readers), "the listings began")
            # The names of each have 2 MB
            assert most_bytes() < 4_000_000
        for reader in readers:
            reader.socket.close()
        await until(lambda: listings.active == 0, "the listings ended")


async def test_a_refused_listing_of_partitioned_topics_copies_no_names() -> None:
    async with partitioned_topics(NAMES) as parts, rest_client(parts.broker) as rest:
        listings = parts.broker._admin_listings
        listings.active = MAX_LISTINGS
        with measured() as most_bytes:
            refused = await rest.ask("GET", f"{PATH}/partitioned")
            assert (refused.status, most_bytes() < 500_000) == (503, True)
        listings.active = 0


async def test_partitioned_system_topics_are_listed_only_if_requested() -> None:
    # In byte order
    locals_ = ("A", "__change_events", "a", "a-b", "ä", "\uff5e", "\U0001f600")
    names = [f"persistent://{NAMESPACE}/{local}" for local in locals_]
    other = f"non-persistent://{NAMESPACE}/n"
    async with partitioned_topics([*names, other]) as parts, rest_client(parts.broker) as rest:
        hidden = await rest.ask("GET", f"{PATH}/partitioned")
        shown = await rest.ask("GET", f"{PATH}/partitioned?includeSystemTopic=true")
        others = await rest.ask("GET", f"/admin/v2/non-persistent/{NAMESPACE}/partitioned")
        assert hidden.value == [name for name in names if "__" not in name]
        assert (shown.value, others.value) == (names, [other])


async def test_a_listing_in_progress_is_unaffected_by_deletions_in_its_namespace() -> None:
    names = topic_names(NAMESPACE, 60_000, 200)
    async with listing_of(names) as parts:
        # Given a listing that waits for its reader
        reader = SlowReader(parts)
        await until(lambda: parts.broker._admin_listings.active == 1, "the listing began")
        gone = TopicChanges((), [name.encode() for name in names])
        await parts.broker.store.apply(NamespaceName.parse(NAMESPACE), gone)
        received = await reader.read_all()
        assert received.count(b"persistent://") == len(names)
        assert received.endswith(b"]\r\n0\r\n\r\n")
        reader.socket.close()
