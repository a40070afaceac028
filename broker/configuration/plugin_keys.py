"""Configuration keys for listing topics by properties (PIP-452): plug-in and limits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from server.configuration.loaded_class import is_class_path
from server.configuration.settings import Key, Settings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import proto.PulsarApi_pb2 as pb
    from server.configuration.known_keys import CheckedKeys

CLASS_KEY = "pulsarResourcesExtendedClassName"
DEFAULT_CLASS_NAME = "org.apache.pulsar.broker.DefaultPulsarResourcesExtended"
WATCHER_KEY = "enableBrokerTopicListWatcher"
MAX_PROPERTIES_KEY = "floodgateMaxListingProperties"
MAX_BYTES_KEY = "floodgateMaxListingPropertiesBytes"


class TooManyPropertiesError(Exception):
    """A listing request has too many properties, or too many bytes of properties.

    The text is a sentence.
    """


class PropertyBounds(Settings):
    """Limits on the properties in a listing request; 0 is unlimited.

    Differs: upstream and profile pulsar accept everything that fits into a frame.
    """

    max_properties: int = Key(MAX_PROPERTIES_KEY, floodgate=100, pulsar=0)
    max_bytes: int = Key(MAX_BYTES_KEY, floodgate=16_384, pulsar=0)
    """The largest number of UTF-8 bytes of all keys and values together."""

    def check_number(self, number: int) -> None:
        """Refuse a request with too many properties, before parsing them.

        Raises:
            TooManyPropertiesError: The request has too many properties.
        """
        if 0 < self.max_properties < number:
            raise TooManyPropertiesError(
                f"{number} properties: a listing request may have {self.max_properties} "
                f"({MAX_PROPERTIES_KEY})"
            )

    def check(self, properties: Mapping[str, str]) -> None:
        """Refuse a request with too many properties, or too many bytes of properties.

        Raises:
            TooManyPropertiesError: The request has too many properties, or too many bytes of
                properties.
        """
        self.check_number(len(properties))
        # A text has at least as many bytes as characters: large texts are refused without encoding.
        for measure in (len, _utf8_bytes) if self.max_bytes > 0 else ():
            size = sum(measure(key) + measure(value) for key, value in properties.items())
            if size > self.max_bytes:
                raise TooManyPropertiesError(
                    f"{size} bytes of properties: a listing request may have {self.max_bytes} "
                    f"({MAX_BYTES_KEY})"
                )


UNBOUNDED = PropertyBounds(max_properties=0, max_bytes=0)


def _utf8_bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def as_mapping(properties: Sequence[pb.KeyValue]) -> Mapping[str, str]:
    """Return properties as a mapping; a repeated key has its last value, as upstream."""
    return {one.key: one.value for one in properties}


def class_name_problem(name: str) -> str | None:
    """Return an error text if a plug-in's class name is malformed, otherwise None.

    The class is not imported.
    """
    if name == DEFAULT_CLASS_NAME or is_class_path(name):
        return None
    return (
        f"{CLASS_KEY}={name!r}: expected module:Class of Python, as "
        f"broker.property_index:PropertyIndex, or {DEFAULT_CLASS_NAME}; Java's classes cannot be "
        "loaded"
    )


def resources_class_name(checked: CheckedKeys) -> str:
    """Return the configured class name of the listing plug-in, without importing the class."""
    name = checked.text(CLASS_KEY) or DEFAULT_CLASS_NAME
    problem = class_name_problem(name)
    if problem is not None:
        checked.refuse(problem)
    elif name != DEFAULT_CLASS_NAME and not checked.pulsar_compatible and checked.flag(WATCHER_KEY):
        checked.warn(
            f"{CLASS_KEY}={name} and {WATCHER_KEY}=true: watches know nothing of properties, so "
            "clients are told to poll instead (supports_topic_watchers=false); set "
            f"{WATCHER_KEY}=false to say so yourself"
        )
    return name
