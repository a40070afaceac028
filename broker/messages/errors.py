"""The refusals of producers and topics: codes and texts, some with upstream's class."""

from __future__ import annotations

import proto.PulsarApi_pb2 as pb
from server.connection.request_errors import RequestError


class MessageStoreError(Exception):
    """The store failed; the sentence names the cause and the remedy."""


class MessageStoreFullError(MessageStoreError):
    """A bound of the store is reached: of the topic, the namespace or the process."""


_SERVICE = "org.apache.pulsar.broker.service.BrokerServiceException$"


def _with_class(code: pb.ServerError.ValueType, name: str, text: str) -> RequestError:
    return RequestError(code, f"{_SERVICE}{name}: {text}")


def producer_busy(text: str) -> RequestError:
    """Return the refusal of a Shared producer beside an exclusive producer."""
    return _with_class(pb.ProducerBusy, "ProducerBusyException", text)


def producer_fenced(text: str) -> RequestError:
    """Return the refusal of an exclusive producer."""
    return _with_class(pb.ProducerFenced, "ProducerFencedException", text)


def name_taken(name: str, topic: str) -> RequestError:
    """Return the refusal of a producer name in use."""
    text = f"Producer with name '{name}' is already connected to topic '{topic}'"
    return _with_class(pb.ProducerBusy, "NamingException", text)


def too_many_producers(topic: str) -> RequestError:
    """Return the refusal of a producer above maxProducers."""
    return RequestError(pb.ProducerBusy, f"Topic '{topic}' reached max producers limit")


def terminated() -> RequestError:
    """Return the refusal of a producer of a terminated topic."""
    text = "Topic was already terminated"
    return _with_class(pb.TopicTerminatedError, "TopicTerminatedException", text)


_ABOVE_QUOTA = "Cannot create producer on topic with backlog quota exceeded"


def quota_exceeded(*, hold: bool, text: str = _ABOVE_QUOTA) -> RequestError:
    """Return the refusal of a producer of a topic with an exceeded backlog quota.

    Args:
        hold: The producer is to wait; otherwise it fails.
        text: The reason, if another bound is reached.
    """
    code = (
        pb.ProducerBlockedQuotaExceededError if hold else pb.ProducerBlockedQuotaExceededException
    )
    return _with_class(code, "TopicBacklogQuotaExceededException", text)


def encryption_required(topic: str) -> RequestError:
    """Return the refusal of a producer without encryption."""
    return RequestError(pb.MetadataError, f"Encryption is required in {topic}")


def topic_not_found(topic: str) -> RequestError:
    """Return the refusal of a missing topic that is not auto-created."""
    return RequestError(pb.TopicNotFound, f"Topic not found {topic}")


def partitioned_base(topic: str) -> RequestError:
    """Return the refusal of the base name of a partitioned topic."""
    text = f"Found partitioned metadata for non-partitioned topic: {topic}"
    return RequestError(pb.NotAllowedError, text)


def no_partitioned_topic(topic: str) -> RequestError:
    """Return the refusal of a partition without a partitioned topic."""
    text = f"Partition metadata not found for the partitioned topic: {topic}"
    return RequestError(pb.NotAllowedError, text)


def not_served_here(topic: str, bundle: str, address: str) -> RequestError:
    """Return the refusal of a topic in another broker's bundle."""
    text = (
        f"Namespace bundle ({bundle}) for topic ({topic}) not served by this instance:{address}. "
        "Please redo the lookup."
    )
    return RequestError(pb.ServiceNotReady, text)


def not_stored(error: MessageStoreError) -> RequestError:
    """Return the refusal of a request because the message store failed."""
    return RequestError(pb.PersistenceError, str(error))


def fenced() -> RequestError:
    """Return the refusal of a topic during unloading or deletion."""
    text = "Topic is temporarily unavailable"
    return _with_class(pb.ServiceNotReady, "TopicFencedException", text)


def no_initial_subscription() -> RequestError:
    """Return the refusal of a producer whose initial subscription may not be created."""
    text = (
        "Could not create the initial subscription due to the auto subscription creation is not "
        "allowed."
    )
    return _with_class(pb.NotAllowedError, "NotAllowedException", text)
