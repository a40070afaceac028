"""The access modes of producers: who may produce for a topic, who waits, who is fenced out.

Plain decisions; broker.messages.producers carries them out.

Source: upstream AbstractTopic.incrementTopicEpochIfNeeded (PIP-68).
"""

from __future__ import annotations

from collections import deque
from typing import Generic, NamedTuple, Protocol, TypeVar

import proto.PulsarApi_pb2 as pb
from broker.messages.errors import producer_busy, producer_fenced


class AsksForAccess(Protocol):
    """A producer, as far as access depends on it."""

    @property
    def name(self) -> str:
        """Its own, unique on its topic."""

    @property
    def access_mode(self) -> int:
        """The mode that it asks for."""

    @property
    def asked_epoch(self) -> int | None:
        """The topic epoch that its client names; None for none."""

    @property
    def gone(self) -> bool:
        """True if its client has closed it, or is gone."""


P = TypeVar("P", bound=AsksForAccess)


class Admission(NamedTuple, Generic[P]):
    """The answer to a producer that is not refused.

    Attributes:
        ready: It may produce; otherwise it waits for its turn.
        dropped: Those that produced until now, and do no more.
        fenced_out: Those that waited, and do no more.
    """

    ready: bool
    dropped: tuple[P, ...] = ()
    fenced_out: tuple[P, ...] = ()


class AccessModes(Generic[P]):
    """Says who has access to one topic.

    Attributes:
        epoch: Rises with each exclusive producer; None before the first.
        holder: The exclusive producer.
        sharers: The Shared producers, in the order in which they came.
        waiting: Those that wait for exclusive access, the next one first.
    """

    def __init__(self, epoch: int | None = None) -> None:
        self.epoch = epoch
        self.holder: P | None = None
        self.sharers: dict[P, None] = {}
        self.waiting: deque[P] = deque()

    def ask(self, producer: P) -> Admission[P]:
        """Admit a producer, at once or once it is its turn.

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
        """Refuse a Shared producer where one is, or is going to be, exclusive.

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
        """Take a producer away, whatever it did; return the one whose turn it is now."""
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
        """Give the topic to the first that waits: its epoch is a new one, whatever it named."""
        producer = self.waiting.popleft()
        self.epoch = max(0 if self.epoch is None else self.epoch + 1, producer.asked_epoch or 0)
        self.holder = producer
        return producer

    def dismiss_waiting(self) -> tuple[P, ...]:
        """Let nobody wait any more; return those who did."""
        waiting = tuple(self.waiting)
        self.waiting.clear()
        return waiting


class PulsarAccessModes(AccessModes[P]):
    """Access as a real broker was recorded to give it.

    A producer that waited and is gone keeps its place: Shared ones are refused, and its turn takes
    an epoch before the next one has its own. And one that named an old epoch puts the topic's back.
    """

    def _stop_waiting(self, producer: P) -> None:
        """Keep its place."""

    def _next(self) -> P | None:
        while self.waiting:
            producer = self.waiting.popleft()
            self._hold(producer)
            if not producer.gone:
                return producer
        self.holder = None
        return None
