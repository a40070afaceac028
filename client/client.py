"""The public class Client, which opens producers, consumers, readers and table views."""

from __future__ import annotations

import asyncio
import logging
import re
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from client.arguments import (
    check_arguments,
    connect_options,
    full_name,
    log_to,
    options_of,
    refuse_decryption,
)
from client.connection.connect_options import MAX_PENDING_REQUESTS
from client.connection.errors import ClientClosedError
from client.connection.service_url import ServiceInfo
from client.consumers.consumer import Consumer, open_consumer
from client.consumers.options import ConsumerOptions, ReaderOptions
from client.consumers.reader import Reader, open_reader
from client.context import ClientContext, Part
from client.discovery.pattern_consumer import open_pattern_consumer
from client.discovery.topics_pattern import TopicsPattern
from client.exceptions import InvalidConfiguration, PulsarException
from client.messages.enums import (
    BatchingType,
    CompressionType,
    ConsumerCryptoFailureAction,
    ConsumerType,
    HashingScheme,
    InitialPosition,
    PartitionsRoutingMode,
    ProducerAccessMode,
    RegexSubscriptionMode,
)
from client.messages.message_id import MessageId
from client.producers.options import ProducerOptions
from client.producers.producer import Producer, open_producer
from client.pulsar_client import LookupResult, PulsarClient
from client.statistics.statistics import ClientStatistics, StatisticsLog, client_statistics
from client.table_view import TableView, open_table_view
from limiter.client_memory.memory_limit_controller import (
    DEFAULT_LIMIT_BYTES,
    DEFAULT_PRODUCER_SHARE,
    MemoryLimitController,
)
from limiter.single_flight import SingleFlight

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping, Sequence

    from client.authentication.authentication import Authentication
    from client.consumers.options import (
        ConsumerBatchReceivePolicy,
        ConsumerDeadLetterPolicy,
        ConsumerKeySharedPolicy,
        NegativeAckBackoff,
    )
    from client.interceptors import ConsumerInterceptor, ProducerInterceptor
    from client.messages.message import Message, ValueT
    from client.schema.schema import Schema
    from limiter.clock import Clock

logger = logging.getLogger(__name__)
PartT = TypeVar("PartT", bound=Part)


class Client(PulsarClient):
    """A client of a Pulsar cluster, with the arguments of the official asyncio client.

    Example:
        async with Client("pulsar://127.0.0.1:6650") as client:
            async with await client.create_producer("greetings") as producer:
                await producer.send(b"hello")

    Args:
        service_url: ``pulsar://host:port`` of a broker or proxy, or ``pulsar+ssl://``; several
            comma-separated hosts are tried one after another.
        authentication: Credentials for every connection and every challenge.
        operation_timeout_seconds: Timeout of a request, and of opening a producer or consumer.
        io_threads: Must be 1: the client runs on the event loop, without threads.
        message_listener_threads: Must be 1: the client runs on the event loop, without threads.
        concurrent_lookup_requests: Maximum number of concurrent lookups and partition queries;
            further ones wait. Identical concurrent requests are sent once.
        log_conf_file_path: Without effect, as in the official client.
        stats_interval_in_seconds: Interval of logged statistics, at level INFO; 0 for never.
        use_tls: Without effect, as in the official client: the service URL decides.
        tls_trust_certs_file_path: File of trusted CA certificates (PEM); None for those of the
            package certifi.
        tls_allow_insecure_connection: Whether to accept any server certificate.
        tls_validate_hostname: Whether the server's certificate must be valid for its host. It is
            off, as in the official client; turn it on.
        logger: Logger that receives all log records of this package, for the whole process.
        connection_timeout_ms: Timeout in milliseconds for establishing a connection.
        listener_name: Name of the brokers' advertised listener whose addresses lookups should
            return.
        tls_private_key_file_path: File of the client's private key (PEM); requires the certificate.
        tls_certificate_file_path: File of the client's certificate (PEM).
        memory_limit_bytes: Maximum memory in bytes for the messages of all producers and consumers;
            0 for no limit.
        memory_limit_controller: A memory limit that several clients share; closing the client does
            not close it.
        producer_share: The fraction of the memory limit that consumers' queues must leave to
            producers.
        clock: The source of time.

    Attributes:
        memory: The client's memory limit.

    Raises:
        InvalidUrl: The service URL is invalid.
        InvalidConfiguration: An argument has the wrong type or is out of range, or a certificate
            file is unusable.
        OperationNotSupported: An argument requests an unsupported feature.
    """

    def __init__(  # noqa: PLR0913 - the official client's arguments, and ours by name
        self,
        service_url: str,
        authentication: Authentication | None = None,
        operation_timeout_seconds: float = 30,
        io_threads: int = 1,
        message_listener_threads: int = 1,
        concurrent_lookup_requests: int = MAX_PENDING_REQUESTS,
        log_conf_file_path: str | None = None,
        stats_interval_in_seconds: int = 600,
        use_tls: bool = False,
        tls_trust_certs_file_path: str | None = None,
        tls_allow_insecure_connection: bool = False,
        tls_validate_hostname: bool = False,
        logger: logging.Logger | None = None,
        connection_timeout_ms: int = 10_000,
        listener_name: str | None = None,
        tls_private_key_file_path: str | None = None,
        tls_certificate_file_path: str | None = None,
        *,
        memory_limit_bytes: int = DEFAULT_LIMIT_BYTES,
        memory_limit_controller: MemoryLimitController | None = None,
        producer_share: float = DEFAULT_PRODUCER_SHARE,
        clock: Clock | None = None,
    ) -> None:
        given = locals()
        self._service_info = ServiceInfo(service_url, authentication, tls_trust_certs_file_path)
        options = connect_options(given, tls=self._service_info.use_tls)
        super().__init__(service_url, clock=clock, options=options, listener_name=listener_name)
        if logger is not None:
            log_to(logger)
        places = asyncio.Semaphore(concurrent_lookup_requests)
        self._lookups = SingleFlight[LookupResult](places)
        self._partition_counts = SingleFlight[int](places)
        self._shares_memory = memory_limit_controller is not None
        self.memory = memory_limit_controller or MemoryLimitController(
            memory_limit_bytes, clock=self.clock, producer_share=producer_share
        )
        self._context = ClientContext(self, self.memory, operation_timeout_seconds)
        self._statistics_log = StatisticsLog(
            self.clock, stats_interval_in_seconds, self._context.parts, self.memory
        )
        self._closing: asyncio.Task[None] | None = None

    async def create_producer(  # noqa: PLR0913 - as above
        self,
        topic: str,
        producer_name: str | None = None,
        schema: Schema[ValueT] | None = None,
        initial_sequence_id: int | None = None,
        send_timeout_millis: int = 30_000,
        compression_type: CompressionType = CompressionType.NONE,
        max_pending_messages: int = 1_000,
        max_pending_messages_across_partitions: int = 50_000,
        block_if_queue_full: bool | None = None,
        batching_enabled: bool = True,
        batching_max_messages: int = 1_000,
        batching_max_allowed_size_in_bytes: int = 128 * 1024,
        batching_max_publish_delay_ms: int = 10,
        chunking_enabled: bool = False,
        message_routing_mode: PartitionsRoutingMode = PartitionsRoutingMode.RoundRobinDistribution,
        lazy_start_partitioned_producers: bool = False,
        properties: Mapping[str, str] | None = None,
        batching_type: BatchingType = BatchingType.Default,
        encryption_key: str | None = None,
        crypto_key_reader: object | None = None,
        access_mode: ProducerAccessMode = ProducerAccessMode.Shared,
        message_router: Callable[[Message[Any], int], int] | None = None,
        *,
        hashing_scheme: HashingScheme = HashingScheme.BoostHash,
        initial_subscription_name: str | None = None,
        interceptors: Sequence[ProducerInterceptor] = (),
    ) -> Producer[ValueT]:
        """Return a producer that is attached to a topic, or to all its partitions.

        The topic may have its full name or a short form. For the other arguments see
        client.producers.options.ProducerOptions.

        Raises:
            InvalidTopicName: The topic's name is invalid.
            AlreadyClosed: The client was closed.
            PulsarException: Attaching failed, or an argument is invalid.
        """
        self._check_open()
        options = options_of(ProducerOptions, locals())
        return await self._kept(open_producer(self._context, topic, options))

    async def subscribe(  # noqa: PLR0913 - as above
        self,
        topic: str | list[str] | re.Pattern[str],
        subscription_name: str,
        consumer_type: ConsumerType = ConsumerType.Exclusive,
        schema: Schema[ValueT] | None = None,
        receiver_queue_size: int = 1_000,
        max_total_receiver_queue_size_across_partitions: int = 50_000,
        consumer_name: str | None = None,
        unacked_messages_timeout_ms: int | None = None,
        broker_consumer_stats_cache_time_ms: int = 30_000,
        negative_ack_redelivery_delay_ms: int = 60_000,
        is_read_compacted: bool = False,
        properties: Mapping[str, str] | None = None,
        initial_position: InitialPosition = InitialPosition.Latest,
        crypto_key_reader: object | None = None,
        replicate_subscription_state_enabled: bool = False,
        max_pending_chunked_message: int = 10,
        auto_ack_oldest_chunked_message_on_queue_full: bool = False,
        start_message_id_inclusive: bool = False,
        batch_receive_policy: ConsumerBatchReceivePolicy | None = None,
        key_shared_policy: ConsumerKeySharedPolicy | None = None,
        batch_index_ack_enabled: bool = False,
        regex_subscription_mode: RegexSubscriptionMode = RegexSubscriptionMode.PersistentOnly,
        dead_letter_policy: ConsumerDeadLetterPolicy | None = None,
        crypto_failure_action: ConsumerCryptoFailureAction = ConsumerCryptoFailureAction.FAIL,
        is_pattern_topic: bool = False,
        *,
        message_listener: Callable[[Consumer[ValueT], Message[ValueT]], object] | None = None,
        pattern_auto_discovery_period: float = 60,
        negative_ack_backoff: NegativeAckBackoff | None = None,
        retry_enabled: bool = False,
        ack_group_time_ms: int = 100,
        ack_group_size: int = 1_000,
        ack_receipt_enabled: bool = False,
        receiver_queue_policy: str = "bytes",
        memory_until_acknowledged: bool = False,
        priority_level: int = 0,
        subscription_properties: Mapping[str, str] | None = None,
        force_topic_creation: bool = True,
        auto_update_partitions_seconds: float = 60,
        expire_incomplete_chunks_seconds: float = 60,
        discovery_schedule: str = "polite",
        interceptors: Sequence[ConsumerInterceptor] = (),
    ) -> Consumer[ValueT]:
        """Return a consumer of one topic, several topics, or all topics that match a pattern.

        Topics may have full names or short forms; a pattern is compiled, or marked by
        ``is_pattern_topic``. A missing subscription is created. For the other arguments see
        client.consumers.options.ConsumerOptions.

        Raises:
            InvalidTopicName: A topic's name is invalid.
            AlreadyClosed: The client was closed.
            PulsarException: Subscribing failed, or an argument is invalid.
        """
        self._check_open()
        refuse_decryption(crypto_key_reader)
        check_arguments({"subscription_name": subscription_name}, "subscription_name")
        is_pattern_topic = is_pattern_topic or isinstance(topic, re.Pattern)
        interceptors = tuple(interceptors)
        options = options_of(ConsumerOptions, locals())
        if is_pattern_topic or isinstance(topic, re.Pattern):
            opening = open_pattern_consumer(
                self._context, TopicsPattern.of(topic), subscription_name, options
            )
            return await self._kept(opening)
        names = [full_name(one) for one in topic] if isinstance(topic, list) else full_name(topic)
        return await self._kept(open_consumer(self._context, names, subscription_name, options))

    async def create_reader(  # noqa: PLR0913 - as above
        self,
        topic: str,
        start_message_id: MessageId,
        schema: Schema[ValueT] | None = None,
        receiver_queue_size: int = 1_000,
        reader_name: str | None = None,
        subscription_role_prefix: str | None = None,
        is_read_compacted: bool = False,
        crypto_key_reader: object | None = None,
        start_message_id_inclusive: bool = False,
        crypto_failure_action: ConsumerCryptoFailureAction = ConsumerCryptoFailureAction.FAIL,
        *,
        reader_listener: Callable[[Reader[ValueT], Message[ValueT]], object] | None = None,
        receiver_queue_policy: str = "bytes",
        auto_update_partitions_seconds: float = 60,
        subscription_name: str | None = None,
    ) -> Reader[ValueT]:
        """Return a reader of a topic's messages, starting at a given message.

        Reading starts after ``start_message_id``; ``MessageId.earliest`` and ``latest`` are the
        topic's ends. For the other arguments see client.consumers.options.ReaderOptions.

        Raises:
            InvalidTopicName: The topic's name is invalid.
            AlreadyClosed: The client was closed.
            PulsarException: Attaching failed, or an argument is invalid.
        """
        self._check_open()
        refuse_decryption(crypto_key_reader)
        if not isinstance(start_message_id, MessageId):
            raise InvalidConfiguration(
                f"start_message_id is a MessageId, not {type(start_message_id).__name__}"
            )
        options = options_of(ReaderOptions, locals())
        return await self._kept(
            open_reader(self._context, full_name(topic), start_message_id, options)
        )

    async def create_table_view(
        self, topic: str, subscription_name: str | None = None, schema: Schema[ValueT] | None = None
    ) -> TableView[ValueT]:
        """Return a continuously updated table with the latest value of each key of a topic.

        Args:
            topic: Full name, or a short form.
            subscription_name: Name of the reader's subscription; None for a random name.
            schema: Schema that decodes the values; with None, values are bytes.

        Raises:
            InvalidTopicName: The topic's name is invalid.
            AlreadyClosed: The client was closed.
            PulsarException: The topic cannot be read.
        """
        self._check_open()
        given = {"schema": schema, "subscription_name": subscription_name}
        check_arguments(given, *given)
        return await self._kept(
            open_table_view(self._context, full_name(topic), subscription_name, schema)
        )

    async def get_topic_partitions(self, topic: str) -> list[str]:
        """Return the full names of a topic's partitions.

        For an unpartitioned topic, return its own full name.

        Raises:
            InvalidTopicName: The topic's name is invalid.
            PulsarException: The broker refused, or did not answer within the operation timeout.
        """
        self._check_open()
        name = full_name(topic)
        count = await self._context.partitions(name)
        return [f"{name}-partition-{index}" for index in range(count)] or [name]

    def get_service_info(self) -> ServiceInfo:
        """Return the service URL of the cluster, and the client's credentials."""
        return self._service_info

    def statistics(self) -> ClientStatistics:
        """Return the current statistics of the client's memory, producers and consumers."""
        return client_statistics(self._context.parts, self.memory)

    async def lookup(self, topic: str) -> LookupResult:
        """Return the broker that serves a topic.

        Identical concurrent lookups send a single request.
        """
        return await self._lookups.join(topic, partial(super().lookup, topic))

    async def partitions(self, topic: str, *, auto_create: bool = True) -> int:
        """Return the number of a topic's partitions; 0 for an unpartitioned topic.

        Identical concurrent calls send a single request.
        """
        ask = partial(super().partitions, topic, auto_create=auto_create)
        return await self._partition_counts.join((topic, auto_create), ask)

    def shutdown(self) -> None:
        """Start closing the client in the background; ``close`` waits for the end."""
        if self._closing is None:
            self._closing = asyncio.get_running_loop().create_task(self._close())

    async def close(self) -> None:
        """Close all producers, consumers, readers and connections; further calls do nothing."""
        self.shutdown()
        if self._closing is not None:
            await asyncio.shield(self._closing)

    async def _close(self) -> None:
        await self._statistics_log.close()
        parts = list(self._context.parts)
        for outcome in await asyncio.gather(*(p.close() for p in parts), return_exceptions=True):
            if isinstance(outcome, Exception):
                logger.warning("closing the client: %s", outcome)
        self._context.parts.clear()
        await self._context.receiver_queues.close()
        await super().close()
        if not self._shares_memory:
            self.memory.close()

    def _check_open(self) -> None:
        if self._closing is not None:
            raise ClientClosedError("the client is closed")

    async def _kept(self, opening: Coroutine[object, object, PartT]) -> PartT:
        """Open and register a part of the client, or close it if the client was closed."""
        try:
            part = await opening
        except PulsarException:
            self._check_open()
            raise
        if self._closing is not None:
            await part.close()
        self._check_open()
        self._context.parts.add(part)
        self._statistics_log.start()
        return part
