"""A random history of one topic and its subscription, played over the wire by real connections."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from broker.messages.position import Position
from limiter.clock import LoopClock, deadline
from proto.frames import encode_payload_command
from tests.support.messages.model import ALONE, SubType, places_of, position_of, words_without
from tests.support.messages.truth import KEYS, Message, Truth
from tests.support.messages.wire_peer import RefusedError, Type, WirePeer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable
    from random import Random

ROOM = 100
STEP_SECONDS = 0.012
"""The longest pause between two steps."""
ANSWER_SECONDS = 10.0
POLL_SECONDS = 0.03
BATCH = 0.3
LARGEST_FILLER = 1_500
SUBSCRIPTION = "s"
STEPS = {
    "publish": 40,
    "ack": 30,
    "part": 10,
    "cumulative": 8,
    "give_back": 8,
    "maybe_join": 3,
    "leave": 3,
    "change_producer": 1,
    "seek": 1.5,
    "unload": 0.5,
}
"""What a history is made of, and how often."""
ENDING = {"ack": 10, "part": 5, "cumulative": 1, "give_back": 4}
"""The steps when nothing is published any more."""


@dataclass(eq=False)
class Member:
    """A consumer that is connected.

    Attributes:
        had: Entries that came and were neither acknowledged nor given back, by number.
        asked: The acknowledgements that are not answered, by request id.
    """

    peer: WirePeer
    epoch: int
    had: dict[int, pb.MessageIdData] = field(default_factory=dict)
    asked: dict[int, list[Message]] = field(default_factory=dict)
    used: int = 0


class WireHistory:
    """Producer and consumers of one topic; every step checks what came against the truth.

    Args:
        truth: What is known of it, over all lives of the broker.
        random: Chooses.
        connect: Makes a connection.
        unload: Has the topic unloaded.

    Attributes:
        counts: What was done.
        heard_at: When something came last.
    """

    def __init__(
        self,
        truth: Truth,
        random: Random,
        connect: Callable[[], Awaitable[WirePeer]],
        unload: Callable[[str], Awaitable[None]],
    ) -> None:
        self.truth = truth
        self.counts: Counter[str] = Counter()
        self.heard_at = 0.0
        self.is_lost = False
        self._random = random
        self._connect = connect
        self._unload_topic = unload
        self._members: list[Member] = []
        self._producer: WirePeer | None = None
        self._is_closed = False

    # -- connections --------------------------------------------------------------------------

    async def open(self, members: int) -> None:
        """Begin an epoch: connect a producer and some consumers."""
        self.truth.begin_epoch()
        self._is_closed = False
        await self._open_producer()
        for _ in range(1 if self.truth.kind == SubType.Exclusive else members):
            await self._join()

    async def _open_producer(self) -> None:
        peer = await self._connected()
        peer.on_command = self._of_producer
        topic = self.truth.topic
        await peer.ask(Type.LOOKUP, "lookupTopic", topic=topic)
        await self._patiently(lambda: peer.ask(Type.PRODUCER, "producer", topic=topic, producer_id=0))
        self._producer = peer

    async def _join(self) -> None:
        peer = await self._connected()
        member = Member(peer, self.truth.epoch)
        peer.on_command = lambda command, rest: self._of_member(member, command, rest)
        topic, kind = self.truth.topic, self.truth.kind
        await peer.ask(Type.LOOKUP, "lookupTopic", topic=topic)
        asked = {"topic": topic, "subscription": SUBSCRIPTION, "subType": kind, "consumer_id": 0}
        asked["initialPosition"] = pb.CommandSubscribe.Earliest
        asked["consumer_name"] = f"c{self._random.randrange(1_000_000)}"
        await self._patiently(lambda: peer.ask(Type.SUBSCRIBE, "subscribe", **asked))
        self._members.append(member)
        self._flow(member, ROOM)
        self.counts["joined"] += 1

    async def _connected(self) -> WirePeer:
        peer = await self._connect()
        peer.on_lost = lambda: self._lost(peer)
        return peer

    async def _patiently(self, ask: Callable[[], Awaitable[object]]) -> None:
        """Ask again while who was before is still there."""
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
        if peer is self._producer or any(peer is one.peer for one in self._members):
            self.is_lost = True

    def close(self) -> None:
        """Leave with everything."""
        producer, self._producer = self._producer, None
        if producer is not None:
            producer.close()
        for member in list(self._members):
            self._let_go(member)

    def _let_go(self, member: Member) -> None:
        self._members.remove(member)
        member.peer.on_command = lambda *_: None
        member.peer.close()
        for messages in member.asked.values():
            self.truth.unanswered(messages)
        member.asked.clear()

    async def _begin_again(self) -> None:
        """Leave, and come back: what is not acknowledged comes again."""
        members = max(1, len(self._members))
        self.truth.producer_left()
        self.close()
        await self.open(members)

    # -- what comes ---------------------------------------------------------------------------

    def _of_producer(self, command: pb.BaseCommand, _: bytes) -> None:
        self.heard_at = time.monotonic()
        if command.type == Type.SEND_RECEIPT:
            receipt = command.send_receipt
            place = Position(receipt.message_id.ledgerId, receipt.message_id.entryId)
            self.truth.receipted(receipt.sequence_id, place)
            self.counts["receipts"] += 1
        elif command.type in (Type.CLOSE_PRODUCER, Type.SEND_ERROR):
            self._is_closed = True

    def _of_member(self, member: Member, command: pb.BaseCommand, rest: bytes) -> None:
        self.heard_at = time.monotonic()
        if command.type == Type.MESSAGE:
            if member.epoch == self.truth.epoch:
                self._message(member, command.message, rest)
        elif command.type == Type.ACK_RESPONSE:
            messages = member.asked.pop(command.ackResponse.request_id)
            self.truth.answered(messages, self.heard_at)
        elif command.type == Type.CLOSE_CONSUMER:
            self._is_closed = True

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

    # -- steps --------------------------------------------------------------------------------

    async def live(self) -> None:
        """Do one thing after the other until the broker is gone."""
        while not self.is_lost:
            await self._step(STEPS)
            await asyncio.sleep(self._random.random() * STEP_SECONDS)

    async def _step(self, steps: dict[str, float]) -> None:
        if self._is_closed:
            await self._begin_again()
        (what,) = self._random.choices(list(steps), list(steps.values()))
        done = getattr(self, f"_{what}")()
        if done is not None:
            await done

    def _publish(self) -> None:
        assert self._producer is not None
        for _ in range(self._random.randint(1, 4)):
            is_batch = self._random.random() < BATCH
            size = self._random.choice((2, 3, 7, 60)) if is_batch else 1
            number = self.truth.publish(size)
            self._producer.write(send_frame(number, size, is_batch=is_batch))
            self.counts["entries"] += 1
            self.counts["batches"] += is_batch

    def _any_member(self) -> Member | None:
        members = [one for one in self._members if one.had]
        return self._random.choice(members) if members else None

    def _ack(self) -> None:
        member = self._any_member()
        if member is not None:
            chosen = self._some(member.had, 6)
            ids = [member.had.pop(number) for number in chosen]
            messages = [one for number in chosen for one in self.truth.messages(number)]
            self._acknowledge(member, pb.CommandAck.Individual, ids, messages)
            self.counts["acknowledged"] += len(ids)

    def _some(self, numbers: Iterable[int], most: int) -> list[int]:
        numbers = list(numbers)
        return self._random.sample(numbers, self._random.randint(1, min(most, len(numbers))))

    def _part(self) -> None:
        """Acknowledge messages of a batch."""
        member = self._any_member()
        batches = [one for one in member.had if self.truth.sizes[one] > 1] if member else []
        if member is not None and batches:
            number = self._random.choice(batches)
            gone = self._some(range(self.truth.sizes[number]), 5)
            one = self._with_words(member.had[number], gone)
            messages = self.truth.messages(number, gone)
            self._acknowledge(member, pb.CommandAck.Individual, [one], messages)
            self.counts["acknowledged in part"] += 1

    def _cumulative(self) -> None:
        """Acknowledge everything up to an entry, or to the middle of one."""
        member, truth = self._any_member(), self.truth
        if member is None or truth.kind not in ALONE:
            return
        number = self._random.choice(list(member.had)[:12])
        if not truth.is_whole(number):
            return
        size, one = truth.sizes[number], member.had[number]
        gone: Iterable[int] = range(size)
        if size > 1 and self._random.random() < 0.5:
            gone = range(self._random.randint(1, size - 1))
            one = self._with_words(one, gone)
        messages = [each for before in range(number) for each in truth.messages(before)]
        messages += truth.messages(number, gone)
        self._acknowledge(member, pb.CommandAck.Cumulative, [one], messages)
        for before in [each for each in member.had if each < number]:
            del member.had[before]
        self.counts["acknowledged cumulatively"] += 1

    @staticmethod
    def _with_words(one: pb.MessageIdData, gone: Iterable[int]) -> pb.MessageIdData:
        with_words = pb.MessageIdData()
        with_words.CopyFrom(one)
        with_words.ClearField("ack_set")
        with_words.ack_set.extend(words_without(gone))
        return with_words

    def _acknowledge(
        self, member: Member, how: int, ids: list[pb.MessageIdData], messages: list[Message]
    ) -> None:
        request_id = member.peer.next_id()
        member.asked[request_id] = self.truth.asked(messages)
        asked = pb.CommandAck(consumer_id=0, message_id=ids, request_id=request_id)
        asked.ack_type = how  # type: ignore[assignment]
        member.peer.tell(Type(type=Type.ACK, ack=asked))

    def _give_back(self) -> None:
        """Have entries delivered again (a negative acknowledgement)."""
        member, truth = self._any_member(), self.truth
        if member is None:
            return
        asked = pb.CommandRedeliverUnacknowledgedMessages(consumer_id=0)
        if truth.kind in ALONE:
            # Everything comes again; of a consumer that is not active nothing does.
            if len(self._members) > 1:
                return
            truth.gave_back({number for number, _ in truth.seen if truth.is_whole(number)})
            member.had.clear()
        else:
            chosen = [one for one in self._some(member.had, 5) if truth.is_whole(one)]
            asked.message_ids.extend(position_only(member.had.pop(one)) for one in chosen)
            truth.gave_back(chosen)
            if not chosen:
                return
        kind = Type.REDELIVER_UNACKNOWLEDGED_MESSAGES
        member.peer.tell(Type(type=kind, redeliverUnacknowledgedMessages=asked))
        self.counts["given back"] += max(1, len(asked.message_ids))

    async def _maybe_join(self) -> None:
        if self.truth.kind != SubType.Exclusive and len(self._members) < 3:
            await self._join()

    async def _leave(self) -> None:
        member = self._random.choice(self._members)
        self._let_go(member)
        self.counts["left"] += 1
        if not self._members:
            await self._join()

    async def _change_producer(self) -> None:
        """Disconnect the producer, with what is under way."""
        producer = self._producer
        assert producer is not None
        await self._quiet(receipts=self._random.random() < 0.5)
        self.truth.producer_left()
        self._producer = None
        producer.close()
        await self._open_producer()
        self.counts["producers changed"] += 1

    async def _seek(self) -> None:
        target = self.truth.target(self._random.random())
        if target is None:
            return
        await self._quiet(receipts=True)
        place = self.truth.places[target]
        to = pb.MessageIdData(ledgerId=place.ledger_id, entryId=place.entry_id)
        peer = self._random.choice(self._members).peer
        try:
            await peer.ask(Type.SEEK, "seek", message_id=to, consumer_id=0)
        except ConnectionResetError:
            self.truth.seek_cut_short(target)
            raise
        self.truth.sought(target)
        self.counts["seeks"] += 1
        await self._begin_again()

    async def _unload(self) -> None:
        await self._quiet(receipts=True)
        await self._unload_topic(self.truth.topic)
        self.truth.saved()
        self.counts["unloads"] += 1
        await self._begin_again()

    async def _quiet(self, *, receipts: bool) -> None:
        """Wait until everything is answered."""
        truth = self.truth

        def is_quiet() -> bool:
            waits = any(one.asked for one in self._members)
            return not waits and (not receipts or len(truth.places) == len(truth.sizes))

        await self._until(is_quiet, 1.0)

    async def _until(self, holds: Callable[[], bool], seconds: float) -> None:
        with suppress(TimeoutError):
            async with deadline(LoopClock(), seconds):
                while not holds() and not self.is_lost:
                    await asyncio.sleep(POLL_SECONDS)

    # -- what is left -------------------------------------------------------------------------

    async def all_came(self, quiet_seconds: float) -> None:
        """Wait for all that must come, and note what does not."""
        await self._until(lambda: not self.truth.awaited(), ANSWER_SECONDS)
        await asyncio.sleep(quiet_seconds)
        self.truth.check_all_came()

    async def end_in_part(self, steps: int) -> None:
        """Acknowledge and give back some of it."""
        for _ in range(steps):
            await self._step(ENDING)
            await asyncio.sleep(self._random.random() * STEP_SECONDS)
        await self._quiet(receipts=False)

    async def acknowledge_all(self) -> None:
        """Acknowledge everything that came."""
        for member in self._members:
            numbers = list(member.had)
            messages = [one for number in numbers for one in self.truth.messages(number)]
            if numbers:
                self._acknowledge(
                    member, pb.CommandAck.Individual, list(member.had.values()), messages
                )
            member.had.clear()
        await self._quiet(receipts=False)


def content_of(number: int) -> bytes:
    """Return the payload of an entry."""
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


def position_only(one: pb.MessageIdData) -> pb.MessageIdData:
    """Return the place of an entry without more."""
    place = position_of(pb.CommandMessage(message_id=one))
    return pb.MessageIdData(ledgerId=place.ledger_id, entryId=place.entry_id)
