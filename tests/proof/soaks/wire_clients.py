"""A topic's producer and consumers on connections, checked against the truth."""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random

import proto.PulsarApi_pb2 as pb
from broker.messages.position import Position
from limiter.clock import LoopClock, deadline
from proto.frames import encode_payload_command
from tests.proof.soaks.wire_peer import RefusedError, Type, WirePeer
from tests.support.messages.model import SubType, places_of
from tests.support.messages.truth import KEYS, Message, Truth

ROOM = 100
ANSWER_SECONDS = 60.0
POLL_SECONDS = 0.03
LARGEST_FILLER = 1_500
SUBSCRIPTION = "s"


@dataclass(eq=False)
class Member:
    """A connected consumer.

    Attributes:
        had: Received entries neither acknowledged nor released, by number.
        asked: Unanswered acknowledgements, by request id.
    """

    peer: WirePeer
    epoch: int
    had: dict[int, pb.MessageIdData] = field(default_factory=dict)
    asked: dict[int, list[Message]] = field(default_factory=dict)
    used: int = 0


class WireClients:
    """A topic's clients.

    Args:
        truth: Facts over all lives of the broker.
        random: Source of choices.
        connect: Makes a connection.

    Attributes:
        counts: Numbers of actions.
        heard_at: Time of the last received command.
        under_way: This producer's entries without receipt.
        is_lost: Connection loss without a close: the broker is gone.
        is_closed: The broker has closed a producer or consumer.
    """

    def __init__(
        self, truth: Truth, random: Random, connect: Callable[[], Awaitable[WirePeer]]
    ) -> None:
        self.truth = truth
        self.counts: Counter[str] = Counter()
        self.heard_at = 0.0
        self.is_lost = False
        self.is_closed = False
        self.members: list[Member] = []
        self.producer: WirePeer | None = None
        self.under_way: set[int] = set()
        self.random = random
        self._connect = connect

    # -- connections --------------------------------------------------------------------------

    async def open(self, members: int) -> None:
        """Begin an epoch: connect a producer and some consumers."""
        self.truth.begin_epoch()
        self.is_closed = False
        await self.open_producer()
        for _ in range(1 if self.truth.kind == SubType.Exclusive else members):
            await self.join()

    async def open_producer(self) -> None:
        peer = await self._connected()
        peer.on_command = self._of_producer
        topic = self.truth.topic
        await peer.ask(Type.LOOKUP, "lookupTopic", topic=topic)
        await self._patiently(
            lambda: peer.ask(Type.PRODUCER, "producer", topic=topic, producer_id=0)
        )
        self.producer = peer
        self.under_way.clear()

    async def join(self) -> None:
        peer = await self._connected()
        member = Member(peer, self.truth.epoch)
        peer.on_command = lambda command, rest: self._of_member(member, command, rest)
        topic, kind = self.truth.topic, self.truth.kind
        await peer.ask(Type.LOOKUP, "lookupTopic", topic=topic)
        asked = {"topic": topic, "subscription": SUBSCRIPTION, "subType": kind, "consumer_id": 0}
        asked["initialPosition"] = pb.CommandSubscribe.Earliest
        asked["consumer_name"] = f"c{self.random.randrange(1_000_000)}"
        await self._patiently(lambda: peer.ask(Type.SUBSCRIBE, "subscribe", **asked))
        self.members.append(member)
        self._flow(member, ROOM)
        self.counts["joined"] += 1

    async def _connected(self) -> WirePeer:
        peer = await self._connect()
        peer.on_lost = lambda: self._lost(peer)
        return peer

    async def _patiently(self, ask: Callable[[], Awaitable[object]]) -> None:
        """Retry while the predecessor is still connected."""
        end = time.monotonic() + ANSWER_SECONDS
        while True:
            try:
                await ask()
            except RefusedError:
                if time.monotonic() > end:
                    raise
                await asyncio.sleep(POLL_SECONDS)
            else:
                return

    def _lost(self, peer: WirePeer) -> None:
        if peer is self.producer or any(peer is one.peer for one in self.members):
            self.is_lost = True

    def let_producer_go(self) -> None:
        """Disconnect the producer, with entries in flight."""
        if not self.is_lost:
            self.truth.producer_left(self.under_way)
        producer, self.producer = self.producer, None
        if producer is not None:
            producer.close()

    def close(self) -> None:
        self.let_producer_go()
        for member in list(self.members):
            self.let_go(member)

    def let_go(self, member: Member) -> None:
        """Disconnect a consumer; its requests may or may not have arrived."""
        self.members.remove(member)
        member.peer.on_command = lambda *_: None
        member.peer.close()
        for messages in member.asked.values():
            self.truth.unanswered(messages)
        member.asked.clear()

    async def begin_again(self) -> None:
        """Disconnect all consumers and reconnect: unacknowledged messages are redelivered."""
        members = max(1, len(self.members))
        self.close()
        await self.open(members)

    # -- deliveries ---------------------------------------------------------------------------

    def _of_producer(self, command: pb.BaseCommand, _: bytes) -> None:
        self.heard_at = time.monotonic()
        if command.type == Type.SEND_RECEIPT:
            receipt = command.send_receipt
            place = Position(receipt.message_id.ledgerId, receipt.message_id.entryId)
            self.truth.receipted(receipt.sequence_id, place)
            self.under_way.discard(receipt.sequence_id)
            self.counts["receipts"] += 1
        elif command.type in (Type.CLOSE_PRODUCER, Type.SEND_ERROR):
            self.is_closed = True

    def _of_member(self, member: Member, command: pb.BaseCommand, rest: bytes) -> None:
        self.heard_at = time.monotonic()
        if command.type == Type.MESSAGE:
            if member.epoch == self.truth.epoch:
                self._message(member, command.message, rest)
        elif command.type == Type.ACK_RESPONSE:
            messages = member.asked.pop(command.ackResponse.request_id)
            self.truth.answered(messages, self.heard_at)
        elif command.type == Type.CLOSE_CONSUMER:
            self.is_closed = True

    def _message(self, member: Member, message: pb.CommandMessage, rest: bytes) -> None:
        number = int(rest[rest.rindex(b"#") + 1 :])
        size = self.truth.sizes[number]
        if not rest.endswith(content_of(number)):
            self.truth.wrong.damaged.append(f"{self.truth.name} {number}")
        left = places_of(message.ack_set, size) if message.ack_set else set(range(size))
        self.counts["deliveries"] += len(left)
        again = self.truth.delivered(number, left)
        self.counts["redeliveries"] += len(left) if message.redelivery_count else again
        member.had[number] = message.message_id
        member.used += len(left)
        if member.used >= ROOM // 2:
            self._flow(member, member.used)
            member.used = 0

    def _flow(self, member: Member, permits: int) -> None:
        asked = pb.CommandFlow(consumer_id=0, messagePermits=permits)
        member.peer.tell(Type(type=Type.FLOW, flow=asked))

    # -- waiting for answers -------------------------------------------------------------------

    def acknowledge(
        self, member: Member, how: int, ids: list[pb.MessageIdData], messages: list[Message]
    ) -> None:
        """Send an acknowledgement and note its answer later."""
        request_id = member.peer.next_id()
        member.asked[request_id] = self.truth.asked(messages)
        asked = pb.CommandAck(consumer_id=0, message_id=ids, request_id=request_id)
        asked.ack_type = how  # type: ignore[assignment]
        member.peer.tell(Type(type=Type.ACK, ack=asked))

    async def quiet(self, *, receipts: bool) -> None:
        """Wait until everything is answered."""
        await self.until(
            lambda: (
                not any(one.asked for one in self.members) and not (receipts and self.under_way)
            ),
            ANSWER_SECONDS,
        )

    async def until(self, holds: Callable[[], bool], seconds: float) -> None:
        """Wait for a condition, within a limit and while the broker lives."""
        with suppress(TimeoutError):
            async with deadline(LoopClock(), seconds):
                while not holds() and not self.is_lost:  # noqa: ASYNC110 - of many conditions
                    await asyncio.sleep(POLL_SECONDS)

    # -- the rest -----------------------------------------------------------------------------

    async def all_came(self, quiet_seconds: float) -> None:
        """Wait for all due messages and note the missing ones."""
        await self.until(lambda: not self.truth.awaited(), ANSWER_SECONDS)
        await asyncio.sleep(quiet_seconds)
        self.truth.check_all_came()

    async def acknowledge_all(self) -> None:
        for member in self.members:
            numbers = list(member.had)
            messages = [one for number in numbers for one in self.truth.messages(number)]
            if numbers:
                self.acknowledge(
                    member, pb.CommandAck.Individual, list(member.had.values()), messages
                )
            member.had.clear()
        await self.quiet(receipts=False)


def content_of(number: int) -> bytes:
    filler = bytes((number % 200 + 50,)) * (number * 7919 % LARGEST_FILLER)
    return b"%s#%d" % (filler.replace(b"#", b"-"), number)


def send_frame(number: int, size: int, *, is_batch: bool) -> bytes:
    """Return the SEND of an entry."""
    metadata = pb.MessageMetadata(producer_name="p", sequence_id=number, publish_time=1)
    metadata.partition_key = str(number % KEYS)
    if is_batch:
        metadata.num_messages_in_batch = size
    send = pb.CommandSend(producer_id=0, sequence_id=number, num_messages=size)
    command = Type(type=Type.SEND, send=send)
    return encode_payload_command(command, metadata.SerializeToString(), content_of(number))
