"""A producer's messages, from the application's call to the broker's receipt."""

from __future__ import annotations

import asyncio
import math
import sys
from collections import deque
from dataclasses import asdict
from itertools import chain
from typing import TYPE_CHECKING

from client.exceptions import (
    MemoryBufferIsFull,
    MessageTooBig,
    ProducerQueueIsFull,
    ProducerQueueIsFullError,
    PulsarException,
    Timeout,
)
from client.messages.entry import largest_message_bytes
from client.producers.sending.batching import OpenBatches
from client.producers.sending.entry_writer import Compressing
from client.producers.sending.pending_entries import Answers, Flushers, PendingEntries, PendingEntry
from client.producers.sending.send_line import SendLine
from client.producers.statistics import ProducerStatistics, SendCounts
from limiter.errors import raised_anew

if TYPE_CHECKING:
    from collections.abc import Sequence

    import proto.PulsarApi_pb2 as pb
    from client.connection.cnx import ClientCnx
    from client.producers.options import ProducerOptions
    from client.producers.sending.batching import OpenBatch
    from client.producers.sending.entry_writer import EntryWriter
    from client.producers.sending.pending_message import PendingMessage
    from limiter.client_memory.memory_limit_controller import MemoryLimitController
    from limiter.clock import Clock, TimerHandle


LARGE_PART_BYTES = 1 << 20
"""Size in bytes from which writing a chunk ends the sending in an event-loop iteration."""
MOST_AT_ONCE = 8_192
"""Maximum number of messages that the send timeout fails in one event-loop iteration."""


class SendQueue:
    """The messages of a producer that have neither a receipt nor an error yet.

    They get a slot and memory, are grouped into entries, and each ends exactly once. A message is
    in one place at a time: in the line, in the queue before the first attachment, in an open batch,
    or in an entry without a receipt. A settled message first releases its slot and memory, then
    completes its future.

    Differs: a send timeout fails only the expired messages; upstream fails all pending messages.

    Args:
        memory: The client's memory limit.
        clock: The source of time.
        topic: Full name of the topic.
        options: Producer options.

    Attributes:
        last_sequence_id: Sequence id of the last acknowledged message.

    Source: upstream ProducerImpl.
    """

    def __init__(
        self, memory: MemoryLimitController, clock: Clock, topic: str, options: ProducerOptions
    ) -> None:
        self._clock = clock
        self._most_bytes = largest_message_bytes(memory.limit_bytes)
        self._topic = topic
        self._options = options
        self._answers = Answers(topic)
        self._line = SendLine(memory, options.max_pending_messages, self._take, self._go_on)
        self._early: deque[PendingMessage] = deque()
        self._batches = OpenBatches(options, clock, self._batches_are_due)
        self._entries = PendingEntries()
        self._compressing = Compressing(options, self._line, self._go_on)
        self._writer: EntryWriter | None = None
        self._flushers = Flushers()
        self._end: PulsarException | None = None
        self._serial = 0
        self._next_sequence_id = 0
        self.last_sequence_id = -1
        self._send_timer: TimerHandle | None = None
        self._counts = SendCounts()

    @property
    def ended(self) -> bool:
        """True once no further message is accepted."""
        return self._end is not None

    def check_open(self) -> None:
        """Raise the error with which the queue has ended, if it has."""
        if self._end is not None:
            raise raised_anew(self._end)

    # -- from the program ---------------------------------------------------------------------

    def submit(self, message: PendingMessage) -> None:
        """Accept a message to send; see TopicProducer."""
        if self._end is not None:
            self.check_open()
        if message.size_bytes > self._most_bytes:
            raise MessageTooBig(
                f"a message of {message.size_bytes} bytes is larger than {self._most_bytes}: send "
                "less, or raise memory_limit_bytes of the clients that send and receive it"
            )
        self._serial += 1
        message.serial = self._serial
        message.created_at = self._clock.now()
        try:
            self._line.enter(message)
        except ProducerQueueIsFull:
            self._counts.queue_full_total += 1
            raise
        except MemoryBufferIsFull:
            self._counts.memory_full_total += 1
            raise
        if self._line:
            self._go_on()
        if self._send_timer is None:
            self._watch_time()

    def withdraw(self, message: PendingMessage) -> None:
        """Remove a waiting message, unless some of its chunks are sent."""
        if message.chunks is None and self._line.leave(message):
            self._go_on()

    async def flush(self) -> Exception | None:
        """Send open batches, and wait until all messages submitted earlier have a receipt.

        Returns:
            The first error among the flushed messages; None if all were sent.
        """
        self._batches_are_due()
        return None if self._oldest() is None else await self._flushers.wait_for(self._serial)

    # -- sending ------------------------------------------------------------------------------

    def attach(self, cnx: ClientCnx, writer: EntryWriter, last_sequence_id: int) -> None:
        """Send all pending entries in their order, on a new connection."""
        is_first, self._writer = self._writer is None, writer
        if is_first:
            if self._options.initial_sequence_id is not None:
                last_sequence_id = self._options.initial_sequence_id
            self.last_sequence_id = last_sequence_id
            self._next_sequence_id = last_sequence_id + 1
            self._batches.sent_sequence_id = last_sequence_id
        self._entries.attach(cnx)
        if self._early:
            early, self._early = self._early, deque()
            self._line.begin_with(early)
        self._go_on()

    def detach(self) -> None:
        """Stop sending after a lost connection; keep all messages for the next one."""
        self._entries.detach()

    def _take(self, message: PendingMessage) -> bool:
        """Send a message that has a slot and memory, or its next chunk; SendLine calls this."""
        writer = self._writer
        if writer is None:
            self._early.append(message)
            return True
        if message.sequence_id < 0:
            message.sequence_id = self._next_sequence_id
            self._next_sequence_id += 1
        try:
            if (
                self._options.batching_enabled
                and not self._compressing.has_made(message)
                and self._joins_a_batch(message, writer.max_message_bytes)
            ):
                return True
            return self._sent_alone(message, writer)
        except Exception as error:  # noqa: BLE001 - any error fails the messages
            self._drop(message, 1)
            self._fail((message,), error)
            return True

    def _joins_a_batch(self, message: PendingMessage, most_written_bytes: int) -> bool:
        """Add a message to a batch; return False if it must be sent alone, after the batches."""
        batches = self._batches
        if not (message.fits_batch and batches.takes(message.size_bytes)):
            self._send_batches()
            return False
        if not batches.has_room(message, most_written_bytes):
            self._send_batches()
        batches.add(message)
        if batches.full:
            self._send_batches()
        return True

    def _sent_alone(self, message: PendingMessage, writer: EntryWriter) -> bool:
        """Send a message as an entry of its own, or its next chunk.

        Return False if the message is not completely sent.
        """
        chunks = message.chunks
        self._batches.sent_sequence_id = max(self._batches.sent_sequence_id, message.sequence_id)
        if chunks is None:
            made = self._compressing.made(message, writer)
            if made is None:
                return False
            if isinstance(made, PendingEntry):
                self._entries.add(made)
                return True
            chunks = made
            if not message.waits and not self._line.has_places(chunks.left - 1):
                raise ProducerQueueIsFullError(
                    f"a message of {chunks.left} chunks needs as many places: await send(), or "
                    "raise max_pending_messages"
                )
            message.chunks = chunks
        part = writer.next_chunk(message, chunks)
        if message.reservation is not None:
            message.reservation.adjust(len(part.parts[0]))
        self._entries.add(part)
        if chunks.left and len(part.parts[1]) >= LARGE_PART_BYTES:
            self._line.rest()
        return chunks.left == 0

    def _batches_are_due(self) -> None:
        self._send_batches()
        self._go_on()

    def _send_batches(self) -> None:
        if self._batches and self._writer is not None:
            batches = self._batches.take()
            for batch in batches:
                self._send_batch(self._writer, batch, beside_others=len(batches) > 1)

    def _send_batch(self, writer: EntryWriter, batch: OpenBatch, *, beside_others: bool) -> None:
        messages = batch.messages
        try:
            entry = writer.batch(batch.builder, messages, beside_others=beside_others)
        except Exception as error:  # noqa: BLE001 - any error fails the messages
            for message in messages:
                self._drop(message, 1)
            self._fail(messages, error)
            return
        self._hold_frame(entry, messages)
        self._counts.batches_sent_total += len(messages) > 1
        self._entries.add(entry)

    def _hold_frame(self, entry: PendingEntry, messages: Sequence[PendingMessage]) -> None:
        """Reserve memory for the bytes of a frame that exceed what its messages have reserved."""
        reserved = sum(one.reservation.size for one in messages if one.reservation is not None)
        more = sum(map(len, entry.parts)) - reserved
        first = messages[0].reservation
        if more > 0 and first is not None:
            first.adjust(more)

    # -- receipts -----------------------------------------------------------------------------

    def receipt_received(self, receipt: pb.CommandSendReceipt) -> bool:
        """Complete the messages of the oldest entry, whose receipt has arrived.

        Return False if the receipt belongs to a newer entry.
        """
        entry, number = self._entries.first, receipt.sequence_id
        if entry is None or number < entry.sequence_id:
            return True  # The message has timed out meanwhile.
        if number > entry.sequence_id:
            return False
        self._entries.pop_first()
        self._line.give_back(entry.places)
        if entry.chunks is None or entry.chunks.part_answered():
            for message in entry.messages:
                message.release()
            self.last_sequence_id = entry.messages[-1].sequence_id
            self._counts.messages_sent_total += len(entry.messages)
            self._counts.bytes_sent_total += entry.size_bytes
        elif (reservation := entry.messages[0].reservation) is not None:
            reservation.adjust(-len(entry.parts[0]))
        self._answers.answer(entry, receipt.message_id)
        self._go_on()
        return True

    def refuse(self, sequence_id: int, error: PulsarException) -> None:
        """Fail the messages of an entry that the broker refused for good.

        The entry is not necessarily the oldest: a broker refuses immediately, but acknowledges
        after storing. Upstream then waits for mismatching receipts, and resends everything.
        """
        for entry in self._entries:
            if sequence_id in (entry.sequence_id, entry.messages[-1].sequence_id):
                self._fail(self._taken_out(entry), error)
                self._go_on()
                return

    # -- failing ------------------------------------------------------------------------------

    def fail_pending(self, error: PulsarException) -> None:
        """Fail all messages that have a slot and memory."""
        self._fail(self._admitted_until(math.inf, sys.maxsize), error)
        self._go_on()

    def stop(self, error: PulsarException) -> None:
        """Accept no further message; fail those without a slot and memory, and send the others."""
        self._end = error
        waiting = [one for one in self._line if one.chunks is None and not one.is_admitted]
        for message in waiting:
            self._line.leave(message)
        self._fail(waiting, error)
        self._send_batches()

    def end(self, error: PulsarException) -> None:
        """Accept no further message, and fail all pending ones.

        Failing is spread over several event-loop iterations. Further calls do nothing.
        """
        if self._end is None:
            self._end = error
        self.detach()
        self._fail_all(error)

    def _fail_all(self, error: PulsarException) -> None:
        self._line.is_held = True
        self._fail(self._out_until(math.inf), error)
        self._go_on()
        if self._send_timer is not None:
            self._send_timer.cancel()
        if self._oldest() is not None:
            asyncio.get_running_loop().call_soon(self._fail_all, error)

    def _admitted_until(self, moment: float, most: int) -> list[PendingMessage]:
        """Remove and return messages submitted up to ``moment`` that have a queue slot and memory.

        Their slots and memory are released. After ``most`` or slightly more messages the rest is
        left for a later call.
        """
        out: list[PendingMessage] = []
        while (entry := self._entries.first) is not None and _given(entry.messages) <= moment:
            out += self._taken_out(entry)
            if len(out) >= most:
                return out
        left = list(self._batches)
        if left and _given(left) <= moment:
            self._batches.take()
        else:
            left = []
        while self._early and self._early[0].created_at <= moment and len(left) < most:
            left.append(self._early.popleft())
        for message in left:
            self._drop(message, 1)
        return out + left

    def _out_until(self, moment: float) -> list[PendingMessage]:
        """Remove a limited number of messages submitted by ``moment``, sent or waiting."""
        out = self._admitted_until(moment, MOST_AT_ONCE)
        while len(out) < MOST_AT_ONCE and (first := self._line.first) is not None:
            if first.created_at > moment:
                break
            self._drop(first, 0)
            out.append(first)
        return out

    def _taken_out(self, entry: PendingEntry) -> Sequence[PendingMessage]:
        """Remove an entry and all chunks of its message, and release their slots and memory."""
        self._entries.take_out(entry)
        places = entry.places
        for message in entry.messages:
            self._drop(message, places)
            places = 0
        return entry.messages

    def _drop(self, message: PendingMessage, places: int) -> None:
        """Release queue slots, a message's memory, and its remaining chunks."""
        if message.chunks is not None and message.chunks.message.chunk_count > 1:
            places += self._entries.drop_parts_of(message)
        self._line.leave(message)
        self._line.give_back(places)
        message.release()

    def _fail(self, messages: Sequence[PendingMessage], error: Exception) -> None:
        if self._flushers and messages:
            self._flushers.failed(min(one.serial for one in messages), error)
        for message in messages:
            self._counts.send_failures_total += 1
            message.fail(error)

    # -- time ---------------------------------------------------------------------------------

    def _watch_time(self) -> None:
        """Start the send-timeout timer for the oldest message, unless it runs already."""
        seconds, oldest = self._options.send_timeout_seconds, self._oldest()
        if seconds is not None and oldest is not None and self._send_timer is None:
            self._send_timer = self._clock.call_at(oldest.created_at + seconds, self._look_at_time)

    def _look_at_time(self) -> None:
        self._send_timer = None
        seconds = self._options.send_timeout_millis / 1000
        latest = self._clock.now() - seconds
        failed = self._out_until(latest)  # The timer, armed for the past, handles the rest.
        self._counts.send_timeouts_total += len(failed)
        self._fail(failed, Timeout(f"{self._topic}: no receipt in {seconds:g} s"))
        self._go_on()

    def _oldest(self) -> PendingMessage | None:
        """Return the oldest message without a receipt, or None."""
        if (entry := self._entries.first) is not None:
            return entry.messages[0]
        if self._batches:
            return next(iter(self._batches))
        return self._early[0] if self._early else self._line.first

    # -- admission ----------------------------------------------------------------------------

    def _go_on(self) -> None:
        """Send waiting messages into freed queue slots, and wake finished ``flush`` calls."""
        self._line.go_on()
        while self._batches and (self._line or self._flushers):
            # Nothing can join the batches, and waiters need their capacity.
            self._send_batches()
            self._line.go_on()
        if self._flushers:
            oldest = self._oldest()
            self._flushers.oldest_is(None if oldest is None else oldest.serial)
        if self._send_timer is None:
            self._watch_time()

    def statistics(
        self, producer_name: str, *, is_connected: bool, reconnections: int
    ) -> ProducerStatistics:
        """Return the producer's current statistics."""
        in_entries = chain.from_iterable(entry.messages for entry in self._entries)
        holding = {*in_entries, *self._batches, *self._early, *self._line}
        return ProducerStatistics(
            topic=self._topic,
            producer_name=producer_name,
            is_connected=is_connected,
            pending_messages=self._line.places,
            pending_bytes=sum(
                message.reservation.size for message in holding if message.reservation is not None
            ),
            waiting_sends=len(self._line),
            reconnections_total=reconnections,
            **asdict(self._counts),
        )


def _given(messages: Sequence[PendingMessage]) -> float:
    """Return the time at which the first message of an entry was submitted."""
    return messages[0].created_at
