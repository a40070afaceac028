"""Errors sent to a client whose request for a producer or topic is refused.

Some texts begin with the name of upstream's Java exception class.
"""

from __future__ import annotations

import proto.PulsarApi_pb2 as pb
from server.connection.request_errors import RequestError


class MessageStoreError(Exception):
    """A failure of the message store; its text names the cause and the remedy."""


class MessageStoreFullError(MessageStoreError):
    """A message store that has reached its limit for a topic, a namespace or the process."""


_SERVICE = "org.apache.pulsar.broker.service.BrokerServiceException$"


def _with_class(code: pb.ServerError.ValueType, name: str, text: str) -> RequestError:
    return RequestError(code, f"{_SERVICE}{name}: {text}")


def producer_busy(text: str) -> RequestError:
    """Return the error for a Shared producer of a topic that has an exclusive producer."""
    return _with_class(pb.ProducerBusy, "ProducerBusyException", text)


def producer_fenced(text: str) -> RequestError:
    """Return the error for a producer that cannot get exclusive access to its topic."""
    return _with_class(pb.ProducerFenced, "ProducerFencedException", text)


def name_taken(name: str, topic: str) -> RequestError:
    """Return the error for a producer whose name is already in use on the topic."""
    text = f"Producer with name '{name}' is already connected to topic '{topic}'"
    return _with_class(pb.ProducerBusy, "NamingException", text)


def terminated() -> RequestError:
    """Return the error for a producer of a terminated topic."""
    text = "Topic was already terminated"
    return _with_class(pb.TopicTerminatedError, "TopicTerminatedException", text)


_ABOVE_QUOTA = "Cannot create producer on topic with backlog quota exceeded"


def quota_exceeded(*, hold: bool, text: str = _ABOVE_QUOTA) -> RequestError:
    """Return the error for a producer of a topic that exceeds a backlog quota.

    Args:
        hold: True if the client lets the producer wait; False if the producer fails.
        text: The error text, if another limit than the quota is exceeded.
    """
    code = (
        pb.ProducerBlockedQuotaExceededError if hold else pb.ProducerBlockedQuotaExceededException
    )
    return _with_class(code, "TopicBacklogQuotaExceededException", text)


def topic_not_found(topic: str) -> RequestError:
    """Return the error for a missing topic that may not be created automatically."""
    return RequestError(pb.TopicNotFound, f"Topic not found {topic}")


def partitioned_base(topic: str) -> RequestError:
    """Return the error for loading a partitioned topic as if it were not partitioned."""
    text = f"Found partitioned metadata for non-partitioned topic: {topic}"
    return RequestError(pb.NotAllowedError, text)


def no_partitioned_topic(topic: str) -> RequestError:
    """Return the error for a partition whose partitioned topic does not exist."""
    text = f"Partition metadata not found for the partitioned topic: {topic}"
    return RequestError(pb.NotAllowedError, text)


def not_stored(error: MessageStoreError) -> RequestError:
    """Return the error for a request that failed because the message store failed."""
    return RequestError(pb.PersistenceError, str(error))


def fenced() -> RequestError:
    """Return the error for a topic that is being unloaded or deleted."""
    text = "Topic is temporarily unavailable"
    return _with_class(pb.ServiceNotReady, "TopicFencedException", text)
