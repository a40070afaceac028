"""Choice of a partition for each message, as in the official clients."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import mmh3

import proto.PulsarApi_pb2 as pb
from client.exceptions import InvalidConfiguration
from client.messages.enums import HashingScheme, PartitionsRoutingMode
from client.messages.message import EntryHead, Message, PlainBytes
from client.messages.outgoing import SendingProducer, metadata_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from client.producers.options import ProducerOptions
    from client.producers.sending.pending_message import PendingMessage
    from limiter.clock import Clock

_31_BITS = 0x7FFFFFFF
_32_BITS = 0xFFFFFFFF
_64_BITS = 0xFFFFFFFFFFFFFFFF
_STEP = 0x9E3779B97F4A7C15
_FACTOR = 0xDF442D22CE4859B9
_BOOST_START = 0xE9B6294983B62ACE
_WORD_BYTES = 8


def key_hash(scheme: HashingScheme, key: str) -> int:
    """Return the hash of a key, from 0 to 2^31 - 1."""
    return _HASHES[scheme](key)


def boost_hash(key: str) -> int:
    """Return Boost's hash of a string, the default of the C++, Python and Node clients.

    The algorithm of Boost 1.81 and later, on 64-bit machines: eight-byte words, and the rest as a
    final word, are multiplied into the hash, folding the halves of each product by XOR.
    """
    data = key.encode(errors="surrogateescape")
    step = _BOOST_START
    value = step ^ len(data)
    for at in range(0, len(data) // _WORD_BYTES * _WORD_BYTES + 1, _WORD_BYTES):
        word = int.from_bytes(data[at : at + _WORD_BYTES], "little")
        step = (step + _STEP) & _64_BITS
        value ^= _folded_product((word + step) & _64_BITS)
    return _folded_product((value + step) & _64_BITS) & _31_BITS


def _folded_product(value: int) -> int:
    product = value * _FACTOR
    return product >> 64 ^ product & _64_BITS


def java_string_hash(key: str) -> int:
    """Return Java's hash of a string, the default of the Java and Go clients."""
    value = 0
    units = key.encode("utf-16-le", errors="surrogatepass")
    for at in range(0, len(units), 2):
        value = (31 * value + (units[at] | units[at + 1] << 8)) & _32_BITS
    return value & _31_BITS


def murmur3_32_hash(key: str) -> int:
    """Return the 32-bit Murmur3 hash of a string with seed 0, available in every client."""
    data = key.encode(errors="surrogateescape")
    return mmh3.hash(data, 0, signed=False) & _31_BITS


_HASHES: dict[HashingScheme, Callable[[str], int]] = {
    HashingScheme.Murmur3_32Hash: murmur3_32_hash,
    HashingScheme.BoostHash: boost_hash,
    HashingScheme.JavaStringHash: java_string_hash,
}


_NOWHERE = pb.MessageIdData(ledgerId=2**64 - 1, entryId=2**64 - 1)
_NOBODY = SendingProducer(0, "")


def unsent_message(message: PendingMessage, topic: str) -> Message[Any]:
    """Convert an unsent message into a Message without an id, to pass to a message router."""
    command = pb.CommandMessage(consumer_id=0, message_id=_NOWHERE)
    # The producer assigns the sequence id at sending.
    number, message.sequence_id = message.sequence_id, max(message.sequence_id, 0)
    metadata = metadata_of(message, _NOBODY, 0)
    message.sequence_id = number
    return Message(
        EntryHead(metadata, command, topic, PlainBytes()), None, message.payload or b"", -1
    )


class Router:
    """The chooser of a message's partition: by key, or without a key by the routing mode.

    With batching, messages without a key stay on a partition until a batch would be full or due,
    then move to the next partition: otherwise no batches would form.

    Args:
        options: Producer options.
        topic: Full name, without a partition's suffix.
        clock: The source of time.
        first: The first partition; random if None.

    Raises:
        InvalidConfiguration: CustomPartition without a message_router.

    Source: upstream RoundRobinMessageRouter and SinglePartitionMessageRouter of the C++ client.
    """

    def __init__(
        self, options: ProducerOptions, topic: str, clock: Clock, first: int | None = None
    ) -> None:
        custom = options.message_routing_mode is PartitionsRoutingMode.CustomPartition
        if custom and options.message_router is None:
            raise InvalidConfiguration("CustomPartition needs a message_router: give one")
        self._options = options
        self._topic = topic
        self._clock = clock
        self._at = random.randrange(2**31) if first is None else first
        self._count = self._bytes = 0
        self._since = clock.now()

    def partition(self, message: PendingMessage, partitions: int) -> int:
        """Return the index of the partition for a message.

        Raises:
            InvalidConfiguration: The program's router returned an invalid partition.
        """
        options = self._options
        if options.message_router is not None:
            return self._chosen(options.message_router, message, partitions)
        if message.partition_key is not None:
            return key_hash(options.hashing_scheme, message.partition_key) % partitions
        if options.message_routing_mode is PartitionsRoutingMode.UseSinglePartition:
            return self._at % partitions
        if not options.batching_enabled:
            self._at += 1
        elif self._batch_is_over(message.size_bytes):
            self._at += 1
            self._since = self._clock.now()
            self._count = self._bytes = 0
        self._count += 1
        self._bytes += message.size_bytes
        return self._at % partitions

    def _batch_is_over(self, size_bytes: int) -> bool:
        options = self._options
        return (
            self._count >= options.batching_max_messages
            or self._bytes + size_bytes >= options.batching_max_allowed_size_in_bytes
            or self._clock.now() - self._since > options.batching_max_publish_delay_ms / 1000
        )

    def _chosen(
        self, router: Callable[[Message[Any], int], int], message: PendingMessage, partitions: int
    ) -> int:
        index = router(unsent_message(message, self._topic), partitions)
        if not 0 <= index < partitions:
            raise InvalidConfiguration(
                f"the message_router named partition {index!r:.50}: there are 0 to {partitions - 1}"
            )
        return index
