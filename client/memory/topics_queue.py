"""The receiver queues of a consumer of several topics, each for itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from client.memory.receiver_queue import Granting, ReceiverQueue


class EachTopicsQueue:
    """Receiver queues that have nothing in common. See TopicsQueue for its methods.

    Args:
        make: Makes the queue of one topic, of a size at most.
    """

    def __init__(self, make: Callable[[Granting, int], ReceiverQueue]) -> None:
        self._make = make
        self._queues: list[ReceiverQueue] = []

    @property
    def current_size(self) -> int:
        """See TopicsQueue."""
        return sum(queue.current_size for queue in self._queues)

    def open(self, consumer: Granting, max_size: int) -> ReceiverQueue:
        """See TopicsQueue."""
        queue = self._make(consumer, max_size)
        self._queues.append(queue)
        return queue
