"""Figures of what is published: counters since a topic was loaded, and rates of the last minute."""

from __future__ import annotations


class PublishStatistics:
    """Counts what a producer, or all producers of a topic, published.

    Attributes:
        messages: Since the beginning (msgInCounter).
        size_bytes: As stored (bytesInCounter).
        chunked_messages: Messages that came in chunks, counted at their first.
        message_rate: A second, in the period that ended last (msgRateIn).
        byte_rate: As ``message_rate`` (msgThroughputIn).
        chunked_message_rate: As ``message_rate``.
        average_size: Bytes of a message in that period (averageMsgSize).
    """

    __slots__ = (
        "_seen_bytes",
        "_seen_chunked",
        "_seen_messages",
        "average_size",
        "byte_rate",
        "chunked_message_rate",
        "chunked_messages",
        "message_rate",
        "messages",
        "size_bytes",
    )

    def __init__(self) -> None:
        self.messages = self.size_bytes = self.chunked_messages = 0
        self.message_rate = self.byte_rate = self.chunked_message_rate = 0.0
        self.average_size = 0.0
        self._seen_messages = self._seen_bytes = self._seen_chunked = 0

    def period_ended(self, seconds: float) -> None:
        """Work out the rates of a period (statsUpdateFrequencyInSecs)."""
        messages, size = self.messages - self._seen_messages, self.size_bytes - self._seen_bytes
        chunked = self.chunked_messages - self._seen_chunked
        self._seen_messages, self._seen_bytes = self.messages, self.size_bytes
        self._seen_chunked = self.chunked_messages
        self.message_rate, self.byte_rate = messages / seconds, size / seconds
        self.chunked_message_rate = chunked / seconds
        self.average_size = size / messages if messages else 0.0
