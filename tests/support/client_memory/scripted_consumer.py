"""A consumer with its application and its broker in one, for tests of receiver queues."""

from collections import deque

from client.memory.receiver_queue import ReceiverQueue


class ScriptedConsumer:
    """Sends entries as permits allow, and takes messages, when the test says so.

    Attributes:
        queue: The queue under test.
        permits: Of the broker; below 0 after a batch that was larger.
        granted: Each FLOW.
        pending: Entries that the broker has: messages and bytes.
        questions: How often the broker was asked for more.
        answer: What the broker answers; None for the truth.
        received: Messages that the application has taken.
        waiting: How many it waits for.
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
        """See Granting."""
        assert permits > 0, "a FLOW without permits closes the connection"
        self.permits += permits
        self.granted.append(permits)

    async def more_is_pending(self) -> bool:
        """See Granting."""
        self.questions += 1
        return bool(self.pending) if self.answer is None else self.answer

    @property
    def missing(self) -> int:
        """See Granting."""
        return self.waiting - self.queued - self.permits

    @property
    def queued(self) -> int:
        """Messages that arrived and were not taken."""
        return sum(messages for messages, _ in self._entries)

    @property
    def queued_bytes(self) -> int:
        """Their bytes."""
        return sum(size for _, size in self._entries)

    def publish(self, entries: int, size: int, messages: int = 1) -> None:
        """Have the broker hold so many entries more."""
        self.pending.extend((messages, size) for _ in range(entries))

    def deliver(self) -> bool:
        """Let one entry arrive if the broker has one and a permit; false if not."""
        if self.permits <= 0 or not self.pending:
            return False
        messages, size = self.pending.popleft()
        self.permits -= messages
        self._entries.append([messages, size])
        self.queue.arrived(messages, size)
        return True

    def deliver_all(self) -> int:
        """Let arrive what can; return how many entries did."""
        return sum(iter(self.deliver, False))

    def take(self) -> bool:
        """Hand one message to the application; false if there is none."""
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
        """Take a message, or find nothing."""
        if self.take():
            return True
        self.queue.found_nothing()
        return False

    def reattach(self) -> None:
        """Subscribe: permits of before and messages that were queued are gone."""
        self.permits = 0
        while self._entries:
            messages, size = self._entries.pop()
            self.pending.appendleft((messages, size))
        self.queue.attached()

    def close(self) -> None:
        """Leave, with what was queued."""
        self._entries.clear()
        self.queue.close()
