"""The receiver queues of a consumer of several topics, each for itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from client.memory.receiver_queue import Granting, ReceiverQueue


class EachTopicsQueue:
    """Receiver queues that are not emptied into one another. See TopicsQueue for its methods.

    Args:
        make: Makes the queue of one topic, of a size at most.
    """

    def __init__(self, make: Callable[[Granting, int], ReceiverQueue]) -> None:
        self._make = make

    def open(self, consumer: Granting, max_size: int) -> ReceiverQueue:
        """See TopicsQueue."""
        return self._make(consumer, max_size)

    def close(self) -> None:
        """See TopicsQueue."""
