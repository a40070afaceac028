"""Names and patterns of topics, as programs give them."""

from __future__ import annotations

import re

from client.exceptions import InvalidConfiguration, InvalidTopicName
from proto.names import InvalidNameError, TopicName


def full_name(topic: str) -> str:
    """Return the full name of a topic.

    Raises:
        InvalidTopicName: The name breaks the rules, or is no text.
    """
    if not isinstance(topic, str):
        raise InvalidTopicName(f"a topic's name is a str, not {type(topic).__name__}")
    try:
        return str(TopicName.parse(topic))
    except InvalidNameError as error:
        raise InvalidTopicName(str(error)) from None


def pattern_text(topic: object) -> str:
    """Return a pattern of topics, compiled or not, as the broker gets it.

    Raises:
        InvalidConfiguration: It is neither.
    """
    if isinstance(topic, re.Pattern):
        topic = topic.pattern
    if not isinstance(topic, str):
        raise InvalidConfiguration(f"a pattern of topics is a str, not {type(topic).__name__}")
    return topic
