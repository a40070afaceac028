"""The producers of one topic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.messages.access_modes import AccessModes, PulsarAccessModes
from broker.messages.errors import name_taken, producer_fenced, too_many_producers
from server.configuration.addresses import NO_URLS, ServerUrls

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from broker.messages.producer import Producer
    from server.connection.request_errors import RequestError


class Producers:
    """The producers of one topic, by name.

    Args:
        topic: The topic's full name.
        epoch: The stored topic epoch; None before the first exclusive producer.
        epoch_changed: Stores a new epoch.
        as_pulsar: Use a real broker's access modes, faults included (profile pulsar).
    """

    def __init__(
        self,
        topic: str,
        epoch: int | None,
        epoch_changed: Callable[[int], object],
        *,
        as_pulsar: bool = False,
    ) -> None:
        self._topic = topic
        modes = PulsarAccessModes if as_pulsar else AccessModes
        self._modes: AccessModes[Producer] = modes(epoch)
        self._epoch_changed = epoch_changed
        self._open: dict[str, Producer] = {}

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[Producer]:
        return iter(tuple(self._open.values()))

    @property
    def epoch(self) -> int | None:
        """Rises with each exclusive producer; None before the first."""
        return self._modes.epoch

    @property
    def waiting(self) -> int:
        """Producers waiting for exclusive access (waitingPublishers)."""
        return len(self._modes.waiting)

    def named(self, name: str) -> Producer | None:
        """Return the producer with a name; None if the name is free."""
        return self._open.get(name)

    def check_sharing(self) -> None:
        """Refuse a Shared producer while an exclusive producer is open or waiting.

        Raises:
            RequestError: ProducerBusy.
        """
        self._modes.check_sharing()

    def add(self, producer: Producer, max_producers: int = 0) -> None:
        """Admit and answer a producer, immediately or after waiting.

        Args:
            producer: A new producer.
            max_producers: Most simultaneous producers; 0 is no limit.

        Raises:
            RequestError: The name is in use, or exclusive access is impossible.
        """
        if producer.access_mode == 0:
            self._check_room_for_a_sharer(producer, max_producers)
        admission = self._modes.ask(producer)
        for dropped in admission.dropped:
            del self._open[dropped.name]
            dropped.dropped()
        for waiting in admission.fenced_out:
            if not waiting.gone:
                waiting.fail(producer_fenced("Fenced out"))
        if admission.ready:
            self._opened(producer)
        else:
            producer.waits()

    def _check_room_for_a_sharer(self, producer: Producer, max_producers: int) -> None:
        self._modes.check_sharing()
        if max_producers and len(self._open) >= max_producers:
            raise too_many_producers(self._topic)
        if producer.name in self._open:
            raise name_taken(producer.name, self._topic)

    def _opened(self, producer: Producer) -> None:
        self._open[producer.name] = producer
        epoch = self._modes.epoch
        if self._modes.holder is producer and epoch is not None:
            self._epoch_changed(epoch)
        producer.opened(epoch)

    def left(self, producer: Producer) -> None:
        """Forget a producer, and admit the next waiting producer."""
        if self._open.get(producer.name) is producer:
            del self._open[producer.name]
        before = self._modes.epoch
        following = self._modes.leave(producer)
        if following is not None:
            self._opened(following)
        elif self._modes.epoch not in (before, None):
            self._epoch_changed(self._modes.epoch or 0)

    def disconnect(self, error: RequestError, new_owner: ServerUrls = NO_URLS) -> None:
        """Close all producers at the broker's initiative; waiting producers are refused.

        Args:
            error: The refusal of waiting producers.
            new_owner: The new broker's addresses for closed producers; empty: the clients look the
                topic up.
        """
        waiting = self._modes.dismiss_waiting()
        for producer in self:
            producer.disconnect(new_owner)
        for one in waiting:
            if not one.gone:
                one.fail(error)
