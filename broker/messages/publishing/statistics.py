"""Publish statistics: counters since loading, and rates of the last period."""

from __future__ import annotations


class PublishStatistics:
    """Counts the messages of a producer, or of all producers of a topic.

    Attributes:
        messages: Since the beginning (msgInCounter).
        size_bytes: As stored (bytesInCounter).
        chunked_messages: Chunked messages, counted at the first chunk.
        message_rate: Per second, in the last period (msgRateIn).
        byte_rate: As ``message_rate`` (msgThroughputIn).
        chunked_message_rate: As ``message_rate``.
        average_size: Bytes per message in the last period (averageMsgSize).
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
