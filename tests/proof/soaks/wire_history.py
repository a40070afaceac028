"""A random history of a topic and its subscription, over the wire."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping

import proto.PulsarApi_pb2 as pb
from tests.proof.soaks.wire_clients import (
    Member,
    WireClients,
    send_frame,
)
from tests.proof.soaks.wire_peer import Type
from tests.support.messages.model import ALONE, SubType, position_of, words_without

STEP_SECONDS = 0.012
"""The longest pause between two steps."""
BATCH = 0.3
STEPS = {
    "publish": 40,
    "ack": 30,
    "part": 10,
    "cumulative": 8,
    "give_back": 5,
    "maybe_join": 3,
    "leave": 3,
    "change_producer": 1,
    "seek": 0.4,
    "unload": 0.2,
}
"""The steps of a history, and how often each comes."""
ENDING = {"ack": 10, "part": 5, "cumulative": 1, "give_back": 4}
"""Steps without publishing."""


class WireHistory:
    """Random steps of a topic's clients.

    Args:
        clients: The connected clients.
        unload: Unloads the topic.
    """

    def __init__(self, clients: WireClients, unload: Callable[[str], Awaitable[None]]) -> None:
        self.clients = clients
        self.truth = clients.truth
        self._counts = clients.counts
        self._random = clients.random
        self._unload_topic = unload

    # -- steps --------------------------------------------------------------------------------

    async def live(self) -> None:
        while not self.clients.is_lost:
            await self._step(STEPS)
            await asyncio.sleep(self._random.random() * STEP_SECONDS)

    async def _step(self, steps: Mapping[str, float]) -> None:
        if self.clients.is_closed:
            await self.clients.begin_again()
        (what,) = self._random.choices(list(steps), list(steps.values()))
        done = getattr(self, f"_{what}")()
        if done is not None:
            await done

    def _publish(self) -> None:
        assert self.clients.producer is not None
        for _ in range(self._random.randint(1, 4)):
            is_batch = self._random.random() < BATCH
            size = self._random.choice((2, 3, 7, 60)) if is_batch else 1
            number = self.truth.publish(size)
            self.clients.under_way.add(number)
            self.clients.producer.write(send_frame(number, size, is_batch=is_batch))
            self._counts["entries"] += 1
            self._counts["batches"] += is_batch

    def _any_member(self) -> Member | None:
        members = [one for one in self.clients.members if one.had]
        return self._random.choice(members) if members else None

    def _ack(self) -> None:
        member = self._any_member()
        if member is not None:
            chosen = self._some(member.had, 6)
            ids = [member.had.pop(number) for number in chosen]
            messages = [one for number in chosen for one in self.truth.messages(number)]
            self.clients.acknowledge(member, pb.CommandAck.Individual, ids, messages)
            self._counts["acknowledged"] += len(ids)

    def _some(self, numbers: Iterable[int], most: int) -> list[int]:
        numbers = list(numbers)
        return self._random.sample(numbers, self._random.randint(1, min(most, len(numbers))))

    def _part(self) -> None:
        member = self._any_member()
        batches = [one for one in member.had if self.truth.sizes[one] > 1] if member else []
        if member is not None and batches:
            number = self._random.choice(batches)
            gone = self._some(range(self.truth.sizes[number]), 5)
            one = self._with_words(member.had[number], gone)
            messages = self.truth.messages(number, gone)
            self.clients.acknowledge(member, pb.CommandAck.Individual, [one], messages)
            self._counts["acknowledged in part"] += 1

    def _cumulative(self) -> None:
        """Acknowledge everything up to an entry or a place in its batch."""
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
        self.clients.acknowledge(member, pb.CommandAck.Cumulative, [one], messages)
        for before in [each for each in member.had if each < number]:
            del member.had[before]
        self._counts["acknowledged cumulatively"] += 1

    @staticmethod
    def _with_words(one: pb.MessageIdData, gone: Iterable[int]) -> pb.MessageIdData:
        with_words = pb.MessageIdData()
        with_words.CopyFrom(one)
        with_words.ClearField("ack_set")
        with_words.ack_set.extend(words_without(gone))
        return with_words

    def _give_back(self) -> None:
        """Have entries delivered again (a negative acknowledgement)."""
        member, truth = self._any_member(), self.truth
        if member is None:
            return
        asked = pb.CommandRedeliverUnacknowledgedMessages(consumer_id=0)
        if truth.kind in ALONE:
            # Everything is redelivered, except to an inactive consumer.
            if len(self.clients.members) > 1:
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
        self._counts["given back"] += max(1, len(asked.message_ids))

    async def _maybe_join(self) -> None:
        if self.truth.kind != SubType.Exclusive and len(self.clients.members) < 3:
            await self.clients.join()

    async def _leave(self) -> None:
        member = self._random.choice(self.clients.members)
        self.clients.let_go(member)
        self._counts["left"] += 1
        if not self.clients.members:
            await self.clients.join()

    async def _change_producer(self) -> None:
        await self.clients.quiet(receipts=self._random.random() < 0.5)
        self.clients.let_producer_go()
        await self.clients.open_producer()
        self._counts["producers changed"] += 1

    async def _seek(self) -> None:
        target = self.truth.target(self._random.random())
        if target is None:
            return
        await self.clients.quiet(receipts=True)
        place = self.truth.places[target]
        to = pb.MessageIdData(ledgerId=place.ledger_id, entryId=place.entry_id)
        peer = self._random.choice(self.clients.members).peer
        try:
            await peer.ask(Type.SEEK, "seek", message_id=to, consumer_id=0)
        except ConnectionResetError:
            self.truth.seek_cut_short(target)
            raise
        self.truth.sought(target)
        self._counts["seeks"] += 1
        await self.clients.begin_again()

    async def _unload(self) -> None:
        await self.clients.quiet(receipts=True)
        await self._unload_topic(self.truth.topic)
        self.truth.saved()
        self._counts["unloads"] += 1
        await self.clients.begin_again()

    async def end_in_part(self, steps: int) -> None:
        """Acknowledge and release some entries."""
        for _ in range(steps):
            await self._step(ENDING)
            await asyncio.sleep(self._random.random() * STEP_SECONDS)
        await self.clients.quiet(receipts=False)


def position_only(one: pb.MessageIdData) -> pb.MessageIdData:
    """Return the place of an entry without more."""
    place = position_of(pb.CommandMessage(message_id=one))
    return pb.MessageIdData(ledgerId=place.ledger_id, entryId=place.entry_id)
