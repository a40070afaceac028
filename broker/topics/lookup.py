"""The handler of the requests which broker serves a topic, and how many partitions it has.

The commands are LOOKUP and PARTITIONED_METADATA. Outcomes and durations of lookups are counted.
"""

from __future__ import annotations

import ipaddress
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from broker.errors import Refusal, RefusedError
from broker.stores.changes import StoreError
from limiter.metrics.wait_times import WaitTimes
from proto.names import InvalidNameError, TopicName, is_blank, without_partition
from server.connection.request_errors import RequestError, UnansweredRequestError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from broker.ownership.ownership import Owner, Ownership
    from broker.stores.store import MetadataStore, NamespaceSnapshot
    from broker.topics.service import TopicService
    from limiter.clock import Clock

    _Error = Callable[[str], RequestError | UnansweredRequestError]

NAMESPACE_NOT_FOUND = "Namespace not found"


class LookupHandler:
    """Answers clients' requests for a topic's broker and for its number of partitions.

    Args:
        store: The topics.
        ownership: Finds or assigns a topic's broker.
        topics: Creates missing topics, if allowed.
        outcomes: Counts lookups.
        pulsar_compatible: Profile pulsar: for a name of only ``-partition-0``, lookups are refused
            with a different code, and partition queries are never answered. A partitioned topic
            over the limit is refused as if a retry could succeed.
    """

    def __init__(
        self,
        store: MetadataStore,
        ownership: Ownership,
        topics: TopicService,
        outcomes: LookupOutcomes,
        *,
        pulsar_compatible: bool = False,
    ) -> None:
        self._store = store
        self._ownership = ownership
        self._topics = topics
        self._outcomes = outcomes
        code = pb.ServiceNotReady if pulsar_compatible else pb.InvalidTopicName
        self._nameless_lookup: _Error = partial(RequestError, code)
        self._no_room = pb.ServiceNotReady if pulsar_compatible else pb.NotAllowedError
        self._nameless_partitions: _Error = (
            UnansweredRequestError
            if pulsar_compatible
            else partial(RequestError, pb.InvalidTopicName)
        )

    async def lookup(self, request: pb.CommandLookupTopic) -> pb.CommandLookupTopicResponse:
        """Return the answer to a LOOKUP: the URLs of the broker that serves a topic.

        The topic need not exist; its namespace must.

        Raises:
            RequestError: InvalidTopicName, TopicNotFound, an unknown listener, or no serving
                broker.
        """
        topic = topic_named(request.topic)
        if nameless := _partition_of_nothing(request.topic, topic):
            raise self._nameless_lookup(nameless)
        await self._namespace_of(topic)
        listener = request.advertised_listener_name
        finding = self._owner(topic, listener, authoritative=request.authoritative)
        owner = await self._outcomes.counted(finding)
        answers = pb.CommandLookupTopicResponse
        return pb.CommandLookupTopicResponse(
            request_id=request.request_id,
            response=answers.Connect if owner.decided else answers.Redirect,
            brokerServiceUrl=owner.urls.service or None,
            brokerServiceUrlTls=owner.urls.service_tls or None,
            authoritative=True,
            # Upstream sets the flag if a lone broker advertises a loopback address. A service URL
            # of several brokers leads to any of them.
            proxy_through_service_url=self._ownership.alone
            and owner.here
            and _is_loopback(owner.urls.any_service),
        )

    async def _owner(self, topic: TopicName, listener: str, *, authoritative: bool) -> Owner:
        if not is_blank(listener):
            text = f"the broker do not have {listener} listener"
            raise RequestError(pb.ServiceNotReady, text)
        try:
            return await self._ownership.acquire(topic, authoritative=authoritative)
        except StoreError as error:
            raise RequestError(pb.MetadataError, str(error)) from None

    async def partitions(
        self, request: pb.CommandPartitionedTopicMetadata
    ) -> pb.CommandPartitionedTopicMetadataResponse:
        """Return the answer to a PARTITIONED_METADATA: a topic's partitions, 0 if not partitioned.

        Raises:
            RequestError: InvalidTopicName, or TopicNotFound.
            UnansweredRequestError: Profile pulsar leaves the request unanswered.
        """
        topic, create = topic_named(request.topic), request.metadata_auto_creation_enabled
        if nameless := _partition_of_nothing(request.topic, topic):
            raise self._nameless_partitions(nameless)
        snapshot = await self._namespace_of(topic, reason=NAMESPACE_NOT_FOUND if create else "")
        count = snapshot.partitioned.get(str(topic), 0)
        if not count and not snapshot.contains(topic):
            count = await self._missing(topic, create=create)
        return pb.CommandPartitionedTopicMetadataResponse(
            request_id=request.request_id,
            response=pb.CommandPartitionedTopicMetadataResponse.Success,
            partitions=count,
        )

    async def _namespace_of(
        self, topic: TopicName, reason: str = NAMESPACE_NOT_FOUND
    ) -> NamespaceSnapshot:
        try:
            snapshot = await self._store.snapshot(topic.namespace)
        except StoreError as error:
            raise RequestError(pb.MetadataError, str(error)) from None
        if snapshot is None:
            raise RequestError(pb.TopicNotFound, reason)
        return snapshot

    async def _missing(self, topic: TopicName, *, create: bool) -> int:
        """Create a missing topic if it is to be partitioned; return its number of partitions.

        A topic without partitions is created later, by its first producer.
        """
        try:
            return await self._topics.partitions(topic, create=create)
        except RefusedError as error:
            if error.refusal is Refusal.NOT_FOUND:
                raise RequestError(pb.TopicNotFound, "") from None
            full = error.refusal is Refusal.CONFLICT
            code = self._no_room if full else pb.NotAllowedError
            raise RequestError(code, error.reason) from None
        except StoreError as error:
            raise RequestError(pb.MetadataError, str(error)) from None


def topic_named(text: str) -> TopicName:
    """Parse the topic's name in a client's request.

    Raises:
        RequestError: The name is malformed.
    """
    try:
        return TopicName.parse(text)
    except InvalidNameError as error:
        raise RequestError(pb.InvalidTopicName, f"Invalid topic name: {error}") from None


def _partition_of_nothing(text: str, topic: TopicName) -> str:
    """Return an error text if a topic name is only ``-partition-0``; empty for other names."""
    if not is_blank(topic.partitioned_name.local_name):
        return ""
    base = without_partition(text if "://" in text else str(topic))
    return f"Invalid topic name: {base}. Topic local name must not be blank."


def _is_loopback(url: str) -> bool:
    host = url.partition("://")[2].rsplit(":", 1)[0].strip("[]")
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class LookupOutcomes:
    """Counts and durations of lookups of topics, in namespaces that exist.

    Args:
        stopwatch: Seconds; an event loop's time may be in whole milliseconds.

    Attributes:
        answers: Lookups answered with the owner.
        redirects: Lookups redirected to the designated owner, before the owner's confirmation.
        failures: Failed lookups.
        times: Durations.
        since: Start of counting, in seconds since 1970.

    Source: upstream NamespaceService.getBrokerServiceUrlAsync.
    """

    def __init__(self, clock: Clock, stopwatch: Callable[[], float] = perf_counter) -> None:
        self.answers = self.redirects = self.failures = 0
        self.times = WaitTimes(clock, ticks_a_milli=1_000)
        self.since = clock.wall_ms() / 1000
        self._stopwatch = stopwatch

    async def counted(self, finding: Awaitable[Owner]) -> Owner:
        """Await the owner of a topic, and count the lookup's outcome and duration."""
        began = self._stopwatch()
        try:
            owner = await finding
        except Exception:
            self.failures += 1
            raise
        finally:
            self.times.record(self._stopwatch() - began)
        if owner.decided:
            self.answers += 1
        else:
            self.redirects += 1
        return owner
