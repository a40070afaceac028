"""The producers of one topic, and their access modes (Shared, exclusive, waiting).

Source: upstream AbstractTopic.incrementTopicEpochIfNeeded (PIP-68).
"""

from __future__ import annotations

from collections import deque
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

import proto.PulsarApi_pb2 as pb
from broker.messages.errors import name_taken, producer_busy, producer_fenced
from server.configuration.addresses import NO_URLS, ServerUrls
from server.connection.request_errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from broker.messages.producer import Producer


class Admission(NamedTuple):
    """The result of admitting a producer to a topic, which may close or refuse other producers.

    Attributes:
        ready: True if the new producer may publish; False if it waits for exclusive access.
        dropped: Previously open producers, now closed.
        fenced_out: Previously waiting producers, now refused.
    """

    ready: bool
    dropped: tuple[Producer, ...] = ()
    fenced_out: tuple[Producer, ...] = ()


class AccessModes:
    """The admission of producers to one topic, according to their access modes.

    Attributes:
        epoch: The topic epoch, which rises with each exclusive producer; None before the first.
        holder: The exclusive producer.
        sharers: The Shared producers, in order of arrival.
        waiting: Producers waiting for exclusive access, in order.
    """

    def __init__(self, epoch: int | None = None) -> None:
        self.epoch = epoch
        self.holder: Producer | None = None
        self.sharers: dict[Producer, None] = {}
        self.waiting: deque[Producer] = deque()

    def ask(self, producer: Producer) -> Admission:
        """Decide whether a producer may open now, must wait for exclusive access, or is refused.

        Raises:
            RequestError: The producer is refused as ProducerBusy or ProducerFenced.
        """
        mode = producer.access_mode
        if mode == pb.Shared:
            return self._share(producer)
        if mode == pb.WaitForExclusive and (self.holder is not None or self.sharers):
            self.waiting.append(producer)
            return Admission(ready=False)
        if mode == pb.Exclusive:
            self._refuse_exclusive()
        self._check_epoch(producer)
        dropped = (*self.sharers, *(() if self.holder is None else (self.holder,)))
        fenced_out = tuple(self.waiting)
        self.sharers.clear()
        self.waiting.clear()
        self._hold(producer)
        return Admission(True, dropped, fenced_out)

    def check_sharing(self) -> None:
        """Refuse a Shared producer while an exclusive producer is open or waiting.

        Raises:
            RequestError: The producer is refused as ProducerBusy.
        """
        if self.holder is not None or self.waiting:
            raise producer_busy(self._existing_exclusive())

    def _share(self, producer: Producer) -> Admission:
        self.check_sharing()
        self.sharers[producer] = None
        return Admission(ready=True)

    def _refuse_exclusive(self) -> None:
        if self.holder is not None or self.waiting:
            raise producer_fenced(self._existing_exclusive())
        if self.sharers:
            raise producer_fenced("Topic has existing shared producers")

    def _existing_exclusive(self) -> str:
        name = "null" if self.holder is None else self.holder.name
        return f"Topic has an existing exclusive producer: {name}"

    def _check_epoch(self, producer: Producer) -> None:
        current, asked = self.epoch, producer.asked_epoch
        if current is not None and asked is not None and asked < current:
            raise producer_fenced(
                f"Topic epoch has already moved. Current epoch: {current}, Producer epoch: {asked}"
            )

    def _hold(self, producer: Producer) -> None:
        if producer.asked_epoch is not None:
            self.epoch = producer.asked_epoch
        else:
            self.epoch = 0 if self.epoch is None else self.epoch + 1
        self.holder = producer

    def leave(self, producer: Producer) -> Producer | None:
        """Remove an open or waiting producer; return the producer that is admitted next, if any."""
        if producer in self.waiting:
            self._stop_waiting(producer)
            return None
        self.sharers.pop(producer, None)
        if self.holder is producer:
            self.holder = None
        if self.holder is not None or self.sharers or not self.waiting:
            return None
        return self._next()

    def _stop_waiting(self, producer: Producer) -> None:
        self.waiting.remove(producer)

    def _next(self) -> Producer | None:
        """Admit the first of the producers that wait for exclusive access.

        The topic gets a new epoch, even if the producer's client sent an older epoch.
        """
        producer = self.waiting.popleft()
        self.epoch = max(0 if self.epoch is None else self.epoch + 1, producer.asked_epoch or 0)
        self.holder = producer
        return producer

    def dismiss_waiting(self) -> tuple[Producer, ...]:
        """Remove and return all waiting producers."""
        waiting = tuple(self.waiting)
        self.waiting.clear()
        return waiting


class PulsarAccessModes(AccessModes):
    """The admission of producers to one topic, as recorded from a real broker with its faults.

    A producer that waits for exclusive access keeps its place after disconnecting: Shared producers
    are refused, and the place consumes an epoch. A producer with an old epoch sets the topic's
    epoch back.
    """

    def _stop_waiting(self, producer: Producer) -> None:
        """Do nothing: a producer that left keeps its place in the queue, as on a real broker."""

    def _next(self) -> Producer | None:
        while self.waiting:
            producer = self.waiting.popleft()
            self._hold(producer)
            if not producer.gone:
                return producer
        self.holder = None
        return None


class Producers:
    """The open and the waiting producers of one topic.

    Args:
        topic: The topic's full name.
        epoch: The stored topic epoch; None before the first exclusive producer.
        epoch_changed: Stores a new epoch, then opens the producer that has made it, if any.
        as_pulsar: Admit producers exactly as a real broker, including its faults (profile pulsar).
    """

    def __init__(
        self,
        topic: str,
        epoch: int | None,
        epoch_changed: Callable[[int, Producer | None], object],
        *,
        as_pulsar: bool = False,
    ) -> None:
        self._topic = topic
        modes = PulsarAccessModes if as_pulsar else AccessModes
        self._modes: AccessModes = modes(epoch)
        self._epoch_changed = epoch_changed
        self._open: dict[str, Producer] = {}

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[Producer]:
        return iter(tuple(self._open.values()))

    @property
    def epoch(self) -> int | None:
        """The topic epoch, which rises with each exclusive producer; None before the first."""
        return self._modes.epoch

    @property
    def waiting(self) -> int:
        """The number of producers waiting for exclusive access (waitingPublishers)."""
        return len(self._modes.waiting)

    def named(self, name: str) -> Producer | None:
        """Return the open producer with a given name; None if no producer has the name."""
        return self._open.get(name)

    def check_sharing(self) -> None:
        """Refuse a Shared producer while an exclusive producer is open or waiting.

        Raises:
            RequestError: The producer is refused as ProducerBusy.
        """
        self._modes.check_sharing()

    def check_room(self, max_producers: int) -> None:
        """Refuse a new producer if the topic has its maximum of open producers.

        Args:
            max_producers: The largest number of open producers; 0 or less is no limit.

        Raises:
            RequestError: The producer is refused as ProducerBusy.
        """
        if 0 < max_producers <= len(self._open):
            text = f"Topic '{self._topic}' reached max producers limit"
            raise RequestError(pb.ProducerBusy, text)

    def add(self, producer: Producer) -> None:
        """Admit a new producer or let it wait for exclusive access, and answer its client.

        Raises:
            RequestError: The name is in use, or exclusive access is impossible.
        """
        if producer.access_mode == pb.Shared:
            self._modes.check_sharing()
            if producer.name in self._open:
                raise name_taken(producer.name, self._topic)
        admission = self._modes.ask(producer)
        for dropped in admission.dropped:
            del self._open[dropped.name]
        for one in (*admission.dropped, *admission.fenced_out):
            if one.unanswered:
                one.fail(producer_fenced("Fenced out"))
            else:
                one.end()
        if admission.ready:
            self._opened(producer)
        else:
            producer.waits()

    def _opened(self, producer: Producer) -> None:
        self._open[producer.name] = producer
        epoch = self._modes.epoch
        if self._modes.holder is producer and epoch is not None:
            self._epoch_changed(epoch, producer)
        else:
            producer.opened(epoch)

    def left(self, producer: Producer) -> None:
        """Remove a closed producer, and admit the next waiting producer."""
        if self._open.get(producer.name) is producer:
            del self._open[producer.name]
        before = self._modes.epoch
        following = self._modes.leave(producer)
        if following is not None:
            self._opened(following)
        elif self._modes.epoch not in (before, None):
            self._epoch_changed(self._modes.epoch or 0, None)

    def disconnect(self, error: RequestError, new_owner: ServerUrls = NO_URLS) -> None:
        """Close all open producers at the broker's initiative, and refuse all others.

        Args:
            error: The refusal of producers that are not open yet.
            new_owner: The addresses of the topic's new broker, sent to clients of closed producers;
                if empty, the clients look the topic up.
        """
        for producer in (*self, *self._modes.dismiss_waiting()):
            if producer.unanswered:
                producer.fail(error)
            elif not producer.gone:
                producer.disconnect(new_owner)


class ProducerNames:
    """A generator of producer names that are unique in the cluster.

    Clients keep a name across broker restarts, so each start has a new instance number. Each stored
    message contains the producer's name, so names are short.

    Args:
        cluster: The cluster's name.
        instance: The number of this broker's start.
    """

    def __init__(self, cluster: str, instance: int) -> None:
        self._prefix = f"{cluster}-{instance}-"
        self._next = count().__next__

    def generate(self) -> str:
        """Return a new producer name; a name is never returned twice."""
        return f"{self._prefix}{self._next()}"
