"""Validation of a program's arguments by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from client.exceptions import InvalidConfiguration, InvalidTopicName
from proto.names import InvalidNameError, TopicName

if TYPE_CHECKING:
    from collections.abc import Callable


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


_Check: TypeAlias = "Callable[[Any], bool]"


def check_arguments(arguments: Mapping[str, object]) -> None:
    """Check the known arguments; None passes.

    Raises:
        InvalidConfiguration: An argument has the wrong type, or is out of range.
    """
    for name, value in arguments.items():
        fits, words = _KNOWN.get(name, (None, ""))
        if fits is not None and value is not None and not fits(value):
            raise InvalidConfiguration(f"{name} is {words}, not {value!r:.50}")


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_texts(value: object) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(one, str) for item in value.items() for one in item
    )


def _is_instance_with(attribute: str) -> _Check:
    """Return a check for instances; passing the class is a frequent slip."""
    return lambda value: not isinstance(value, type) and hasattr(value, attribute)


def _are_interceptors(value: object) -> bool:
    return isinstance(value, Sequence) and all(map(_is_instance_with("on_close"), value))


def _is_whole(least: int) -> _Check:
    return lambda value: (
        isinstance(value, int) and not isinstance(value, bool) and least <= value < 2**63
    )


_TEXT = (_is_text, "a str")
_TEXTS = (_is_texts, "a dict whose keys and values are str")
_KNOWN: dict[str, tuple[_Check, str]] = {
    "consumer_name": _TEXT,
    "initial_sequence_id": (_is_whole(-1), "a whole number from -1 on"),
    "initial_subscription_name": _TEXT,
    "interceptors": (_are_interceptors, "a list of interceptors (instances, not classes)"),
    "listener_name": _TEXT,
    "memory_limit_bytes": (_is_whole(0), "a whole number of bytes, such as 64 * 1024 * 1024"),
    "message_listener": (callable, "a function of consumer and message"),
    "message_router": (callable, "a function of message and number of partitions"),
    "producer_name": _TEXT,
    "properties": _TEXTS,
    "reader_listener": (callable, "a function of reader and message"),
    "reader_name": _TEXT,
    "schema": (_is_instance_with("schema_info"), "a schema such as JsonSchema(Order)"),
    "subscription_name": _TEXT,
    "subscription_properties": _TEXTS,
    "subscription_role_prefix": _TEXT,
}
