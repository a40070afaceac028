"""Access modes of producers: access to a topic, waiting, and fencing.

Decisions only; broker.messages.producers carries them out.

Source: upstream AbstractTopic.incrementTopicEpochIfNeeded (PIP-68).
"""

from __future__ import annotations

from collections import deque
from typing import Generic, NamedTuple, Protocol, TypeVar

import proto.PulsarApi_pb2 as pb
from broker.messages.errors import producer_busy, producer_fenced


class AsksForAccess(Protocol):
    """The part of a producer used for access decisions."""

    @property
    def name(self) -> str:
        """The producer's name, unique on the topic."""

    @property
    def access_mode(self) -> int:
        """The requested access mode."""

    @property
    def asked_epoch(self) -> int | None:
        """The client's topic epoch; None if absent."""

    @property
    def gone(self) -> bool:
        """True once the producer is closed or disconnected."""


P = TypeVar("P", bound=AsksForAccess)


class Admission(NamedTuple, Generic[P]):
    """The decision for an admitted producer.

    Attributes:
        ready: The producer may publish; otherwise it waits.
        dropped: Previously open producers, now closed.
        fenced_out: Previously waiting producers, now refused.
    """

    ready: bool
    dropped: tuple[P, ...] = ()
    fenced_out: tuple[P, ...] = ()


class AccessModes(Generic[P]):
    """Decides on access to one topic.

    Attributes:
        epoch: Rises with each exclusive producer; None before the first.
        holder: The exclusive producer.
        sharers: The Shared producers, in order of arrival.
        waiting: Producers waiting for exclusive access, in order.
    """

    def __init__(self, epoch: int | None = None) -> None:
        self.epoch = epoch
        self.holder: P | None = None
        self.sharers: dict[P, None] = {}
        self.waiting: deque[P] = deque()

    def ask(self, producer: P) -> Admission[P]:
        """Admit a producer, immediately or after waiting.

        Raises:
            RequestError: ProducerBusy or ProducerFenced.
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
            RequestError: ProducerBusy.
        """
        if self.holder is not None or self.waiting:
            raise producer_busy(self._existing_exclusive())

    def _share(self, producer: P) -> Admission[P]:
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

    def _check_epoch(self, producer: P) -> None:
        current, asked = self.epoch, producer.asked_epoch
        if current is not None and asked is not None and asked < current:
            raise producer_fenced(
                f"Topic epoch has already moved. Current epoch: {current}, Producer epoch: {asked}"
            )

    def _hold(self, producer: P) -> None:
        if producer.asked_epoch is not None:
            self.epoch = producer.asked_epoch
        else:
            self.epoch = 0 if self.epoch is None else self.epoch + 1
        self.holder = producer

    def leave(self, producer: P) -> P | None:
        """Remove a producer in any state; return the producer admitted next."""
        if producer in self.waiting:
            self._stop_waiting(producer)
            return None
        self.sharers.pop(producer, None)
        if self.holder is producer:
            self.holder = None
        if self.holder is not None or self.sharers or not self.waiting:
            return None
        return self._next()

    def _stop_waiting(self, producer: P) -> None:
        self.waiting.remove(producer)

    def _next(self) -> P | None:
        """Admit the first waiter, with a new epoch even if the client named an older epoch."""
        producer = self.waiting.popleft()
        self.epoch = max(0 if self.epoch is None else self.epoch + 1, producer.asked_epoch or 0)
        self.holder = producer
        return producer

    def dismiss_waiting(self) -> tuple[P, ...]:
        """Remove and return all waiting producers."""
        waiting = tuple(self.waiting)
        self.waiting.clear()
        return waiting


class PulsarAccessModes(AccessModes[P]):
    """Access modes as recorded from a real broker.

    A waiting producer keeps its place after disconnecting: Shared producers are refused, and the
    place consumes an epoch. A producer with an old epoch sets the topic's epoch back.
    """

    def _stop_waiting(self, producer: P) -> None:
        """Keep the producer's place."""

    def _next(self) -> P | None:
        while self.waiting:
            producer = self.waiting.popleft()
            self._hold(producer)
            if not producer.gone:
                return producer
        self.holder = None
        return None
