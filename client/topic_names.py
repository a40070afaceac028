"""Validation of topic names given by programs."""

from __future__ import annotations

from client.exceptions import InvalidTopicName
from proto.names import InvalidNameError, TopicName


def full_name(topic: str) -> str:
    """Return the full name of a topic.

    Raises:
        InvalidTopicName: The name is invalid, or is not a text.
    """
    if not isinstance(topic, str):
        raise InvalidTopicName(f"a topic's name is a str, not {type(topic).__name__}")
    try:
        return str(TopicName.parse(topic))
    except InvalidNameError as error:
        raise InvalidTopicName(str(error)) from None
