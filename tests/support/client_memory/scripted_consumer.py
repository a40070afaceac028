"""A consumer, its application and its broker in one, for receiver queue tests."""

from collections import deque

from client.memory.receiver_queue import ReceiverQueue


class ScriptedConsumer:
    """Sends entries within permits and takes messages on command.

    Attributes:
        queue: The queue under test.
        permits: The broker's; negative after an oversized batch.
        granted: Each FLOW.
        pending: The broker's entries: messages and bytes.
        questions: Number of requests for more.
        answer: The broker's answer; None for the truth.
        received: Messages the application has taken.
        waiting: Number of waiting receives.
    """

    queue: ReceiverQueue

    def __init__(self) -> None:
        self.permits = 0
        self.granted: list[int] = []
        self.pending: deque[tuple[int, int]] = deque()
        self.questions = 0
        self.answer: bool | None = None
        self.received = self.waiting = 0
        self._entries: deque[list[int]] = deque()

    def grant(self, permits: int) -> None:
        assert permits > 0, "a FLOW without permits closes the connection"
        self.permits += permits
        self.granted.append(permits)

    async def more_is_pending(self) -> bool:
        self.questions += 1
        return bool(self.pending) if self.answer is None else self.answer

    @property
    def missing(self) -> int:
        return self.waiting - self.queued - self.permits

    @property
    def queued(self) -> int:
        """Number of queued messages."""
        return sum(messages for messages, _ in self._entries)

    @property
    def queued_bytes(self) -> int:
        return sum(size for _, size in self._entries)

    def publish(self, entries: int, size: int, messages: int = 1) -> None:
        """Have the broker hold so many entries more."""
        self.pending.extend((messages, size) for _ in range(entries))

    def deliver(self) -> bool:
        """Deliver one entry if the broker has an entry and a permit; return whether."""
        if self.permits <= 0 or not self.pending:
            return False
        messages, size = self.pending.popleft()
        self.permits -= messages
        self._entries.append([messages, size])
        self.queue.arrived(messages, size)
        return True

    def deliver_all(self) -> int:
        return sum(iter(self.deliver, False))

    def take(self) -> bool:
        """Hand one message to the application; false if the queue is empty."""
        if not self._entries:
            return False
        entry = self._entries[0]
        size = entry[1] // entry[0]
        entry[0] -= 1
        entry[1] -= size
        if not entry[0]:
            self._entries.popleft()
        self.received += 1
        self.queue.taken(1, size)
        return True

    def receive(self) -> bool:
        """Take a message, or wait."""
        if self.take():
            return True
        self.queue.found_nothing()
        return False

    def reattach(self) -> None:
        """Subscribe again: earlier permits and queued messages are gone."""
        self.permits = 0
        while self._entries:
            messages, size = self._entries.pop()
            self.pending.appendleft((messages, size))
        self.queue.attached()

    def close(self) -> None:
        self._entries.clear()
        self.queue.close()
