"""Statistics of producers and consumers, as JSON in the form of Pulsar's admin.

Source: upstream PublisherStatsImpl, ConsumerStatsImpl.
"""

from __future__ import annotations

from datetime import UTC, datetime
from math import floor
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from broker.messages.subscriptions.dispatchers.key_shared import KeySharedDispatcher
from server.tasks.cooperative import in_parts

if TYPE_CHECKING:
    from collections.abc import Generator

    from broker.messages.producer import Producer
    from broker.messages.subscriptions.consumer import Consumer
    from broker.messages.subscriptions.dispatchers.dispatcher import Dispatcher


NOTHING_DRAINS = {
    "drainingHashesCount": 0,
    "drainingHashesClearedTotal": 0,
    "drainingHashesUnackedMessages": 0,
}


def moment(milliseconds: int) -> str:
    """Return a time in ms since 1970 as text like Java's ``Instant``: without a zero fraction."""
    seconds, rest = divmod(milliseconds, 1000)
    fraction = f".{rest:03d}" if rest else ""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}{fraction}Z"


def date(milliseconds: int) -> str:
    """Return a time in ms since 1970 as upstream's DateFormatter: without zeros at its end."""
    text = moment(milliseconds)
    return f"{text[:-1].rstrip('0')}Z" if "." in text else text


def producer_stats(producer: Producer) -> dict[str, object]:
    """Return the statistics of a producer."""
    figures = producer.statistics
    return {
        "accessMode": pb.ProducerAccessMode.Name(
            pb.ProducerAccessMode.ValueType(producer.access_mode)
        ),
        "msgRateIn": figures.message_rate,
        "msgThroughputIn": figures.byte_rate,
        "averageMsgSize": figures.average_size,
        "chunkedMessageRate": figures.chunked_message_rate,
        "producerId": producer.producer_id,
        "supportsPartialProducer": False,
        "producerName": producer.name,
        "address": f"/{producer.cnx.peer}",
        "connectedSince": moment(producer.connected_at),
        "clientVersion": producer.cnx.client_version,
        "metadata": dict(producer.metadata),
    }


def consumer_stats(
    consumer: Consumer, dispatcher: Dispatcher | None = None
) -> Generator[None, None, dict[str, object]]:
    """Return the statistics of a consumer; for a Key_Shared consumer, pass its dispatcher."""
    draining = yield from _draining(consumer, dispatcher)
    rates, role = consumer.rates.current, consumer.cnx.role
    return {
        **({} if role is None else {"appId": role}),
        "msgRateOut": float(rates.messages_out),
        "msgThroughputOut": float(rates.bytes_out),
        "bytesOutCounter": consumer.bytes_out,
        "msgOutCounter": consumer.messages_out,
        "msgRateRedeliver": float(rates.redelivered),
        "messageAckRate": float(rates.acknowledged),
        "chunkedMessageRate": 0.0,
        "consumerName": consumer.name,
        "availablePermits": consumer.permits,
        "unackedMessages": consumer.unacked,
        "avgMessagesPerEntry": floor(consumer.mean_batch + 0.5),
        "blockedConsumerOnUnackedMsgs": consumer.blocked,
        **draining,
        "address": f"/{consumer.cnx.peer}",
        "connectedSince": consumer.connected_text,
        "clientVersion": consumer.cnx.client_version,
        "lastAckedTimestamp": consumer.last_acked_at,
        "lastConsumedTimestamp": consumer.last_consumed_at,
        "firstMessagesSentTimestamp": consumer.first_sent_at,
        "lastConsumedFlowTimestamp": consumer.last_flow_at,
        "firstConsumedFlowTimestamp": consumer.first_flow_at,
        "metadata": dict(consumer.options.metadata),
        "lastAckedTime": moment(consumer.last_acked_at),
        "lastConsumedTime": moment(consumer.last_consumed_at),
        **_waits(consumer, dispatcher),
    }


def _waits(consumer: Consumer, dispatcher: Dispatcher | None) -> dict[str, object]:
    if dispatcher is None or not dispatcher.tells_waits:
        return {}
    waits = dispatcher.waits(consumer)
    return {} if waits is None else {"waitsFor": waits.value}


def _draining(
    consumer: Consumer, dispatcher: Dispatcher | None
) -> Generator[None, None, dict[str, object]]:
    if not isinstance(dispatcher, KeySharedDispatcher):
        return dict(NOTHING_DRAINS)
    ranges = {"keyHashRangeArrays": [list(one) for one in dispatcher.ring.ranges(consumer)]}
    if not dispatcher.drains:
        yield
        return {**NOTHING_DRAINS, **ranges}
    hashes = yield from dispatcher.draining.of(consumer)
    shown: list[dict[str, int]] = []
    for some in in_parts(hashes):
        shown += [
            {"hash": at, "unackMsgs": unacked, "blockedAttempts": attempts}
            for at, unacked, attempts in some
        ]
        yield
    return {
        "drainingHashesCount": len(hashes),
        "drainingHashesClearedTotal": dispatcher.draining.cleared_total(consumer),
        "drainingHashesUnackedMessages": sum(one.unacked for one in hashes),
        "drainingHashes": shown,
        **ranges,
    }
