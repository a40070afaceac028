"""A model of a subscription: each entry's remaining messages, holder and dues."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import proto.PulsarApi_pb2 as pb
from broker.messages.position import Position
from broker.messages.subscriptions.consumer import Consumer
from tests.support.messages.consumers import KeptConnection

SubType = pb.CommandSubscribe
ALONE = (SubType.Exclusive, SubType.Failover)
WORD = (1 << 64) - 1
WORD_PLACES = range(64)


@dataclass
class Published:
    """A published entry; ``size`` is its number of messages."""

    size: int
    is_batch: bool
    key: str
    due_ms: int = 0


@dataclass(eq=False)
class Member:
    """A connected consumer.

    Attributes:
        permits: Available permits, in messages.
        had: Received entries, in order.
        last: Of a single active consumer: the last entry since its new beginning.
        requested_again: True once the consumer sent a REDELIVER.
    """

    consumer: Consumer
    cnx: KeptConnection
    permits: int = 0
    had: list[Position] = field(default_factory=list)
    last: Position | None = None
    requested_again: bool = False


class Model:
    """The truth about a history.

    Attributes:
        published: Every entry.
        left: Places of the remaining messages of each unacknowledged entry.
        holder: Of Shared and Key_Shared: the consumer that holds an entry.
        redeliveries: Number of REDELIVERs of an entry.
        members: Connected consumers.
        saved: No acknowledgement since the cursor was saved.
    """

    def __init__(self) -> None:
        self.published: dict[Position, Published] = {}
        self.left: dict[Position, set[int]] = {}
        self.holder: dict[Position, Member] = {}
        self.redeliveries: dict[Position, int] = {}
        self.members: list[Member] = []
        self.saved = False

    def publish(self, position: Position, entry: Published) -> None:
        """Take an entry."""
        self.published[position] = entry
        self.left[position] = set(range(entry.size))

    def acknowledge(self, position: Position, places: Iterable[int] | None = None) -> None:
        """Acknowledge messages of an entry, None for all, and forget its redelivery count."""
        self.saved = False
        self.redeliveries.pop(position, None)
        left = self.left.get(position)
        if left is not None:
            left.difference_update(WORD_PLACES if places is None else places)
            if not left:
                self._forget(position)

    def acknowledge_through(self, position: Position) -> None:
        """Take everything off up to an entry."""
        self.acknowledge_before(position)
        self.acknowledge(position)

    def acknowledge_before(self, position: Position) -> None:
        """Acknowledge everything before an entry."""
        self.saved = False
        for one in [at for at in self.left if at < position]:
            self._forget(one)

    def _forget(self, position: Position) -> None:
        del self.left[position]
        self.holder.pop(position, None)
        self.redeliveries.pop(position, None)

    def redeliver(self, member: Member, positions: Iterable[Position] | None) -> None:
        """Release a consumer's entries for redelivery; None for all."""
        asked = self.held_by(member) if positions is None else positions
        for position in asked:
            if self.holder.get(position) is member:
                del self.holder[position]
                self.redeliveries[position] = self.redeliveries.get(position, 0) + 1

    def leave(self, member: Member) -> None:
        """Release all of a consumer's entries; the last consumer's leaving forgets the counts."""
        self.members.remove(member)
        for position in self.held_by(member):
            del self.holder[position]
        if not self.members:
            self.redeliveries.clear()

    def held_by(self, member: Member) -> list[Position]:
        return [at for at, one in self.holder.items() if one is member]

    def begin_with(self, left: dict[Position, set[int]]) -> None:
        """Restart with other remaining entries: a SEEK or a restart."""
        self.left = left
        self.holder.clear()
        self.redeliveries.clear()

    # -- deliveries ---------------------------------------------------------------------------

    def delivered(self, member: Member, message: pb.CommandMessage) -> Position:
        """Check a sent entry and note its holder."""
        position = position_of(message)
        assert position in self.left, f"{position} was sent though it is acknowledged"
        left, entry = self.left[position], self.published[position]
        # An untouched batch is sent with all its bits, too (recorded).
        if len(left) < entry.size or message.ack_set:
            assert places_of(message.ack_set, entry.size) == left, f"{position}: wrong ack_set"
        member.permits -= len(left)
        member.had.append(position)
        return position

    def delivered_to_one_of_many(self, member: Member, message: pb.CommandMessage) -> None:
        """Check a Shared or Key_Shared entry: no other consumer holds it."""
        position = self.delivered(member, message)
        assert position not in self.holder, f"{position} was sent twice"
        self.holder[position] = member
        assert message.redelivery_count == self.redeliveries.get(position, 0)

    def delivered_in_order(self, member: Member, message: pb.CommandMessage) -> None:
        """Check an Exclusive or Failover entry: the next remaining entry."""
        position = self.delivered(member, message)
        assert position == self.next_after(member.last), f"{position} is out of order"
        assert message.redelivery_count == 0
        member.last = position

    def next_after(self, last: Position | None) -> Position | None:
        """Return the next remaining entry, or None."""
        return min((at for at in self.left if last is None or at > last), default=None)

    def before_of_key(self, position: Position) -> list[Position]:
        """Return earlier remaining entries of the same key, without delayed entries."""
        key = self.published[position].key
        return [
            at
            for at in self.left
            if at < position and self.published[at].key == key and not self.published[at].due_ms
        ]


def position_of(message: pb.CommandMessage) -> Position:
    """Return the place of a message."""
    return Position(message.message_id.ledgerId, message.message_id.entryId)


def places_of(words: Iterable[int], size: int) -> set[int]:
    """Return a batch's messages in a bit set."""
    bits = sum((word & WORD) << 64 * at for at, word in enumerate(words))
    return {at for at in range(size) if bits >> at & 1}


def words_without(places: Iterable[int]) -> list[int]:
    """Return a batch's bit set, as a signed word, without some of its messages."""
    left = WORD & ~sum(1 << at for at in set(places))
    return [left - (1 << 64) if left >> 63 else left]
