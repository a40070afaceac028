"""Bounds of the properties in a listing request, checked before anything is copied."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import proto.PulsarApi_pb2 as pb

MAX_PROPERTIES_KEY = "floodgateMaxListingProperties"
MAX_BYTES_KEY = "floodgateMaxListingPropertiesBytes"
DEFAULT_MAX_PROPERTIES = 100
DEFAULT_MAX_BYTES = 16_384


class TooManyPropertiesError(Exception):
    """A request has more properties than allowed, or larger ones; one sentence."""


@dataclass(frozen=True, slots=True)
class PropertyBounds:
    """The bounds of one request's properties; 0 is no bound.

    Attributes:
        max_properties: floodgateMaxListingProperties.
        max_bytes: floodgateMaxListingPropertiesBytes: UTF-8 bytes of all keys and values.

    Differs: upstream takes whatever fits into a frame, and so does profile pulsar.
    """

    max_properties: int = DEFAULT_MAX_PROPERTIES
    max_bytes: int = DEFAULT_MAX_BYTES

    def check_number(self, number: int) -> None:
        """Refuse too many properties, before any of them is read.

        Raises:
            TooManyPropertiesError: They are.
        """
        if 0 < self.max_properties < number:
            raise TooManyPropertiesError(
                f"{number} properties: a listing request may have {self.max_properties} "
                f"({MAX_PROPERTIES_KEY})"
            )

    def check(self, properties: Mapping[str, str]) -> None:
        """Refuse properties that are too many or too large.

        Raises:
            TooManyPropertiesError: They are.
        """
        self.check_number(len(properties))
        # A text has at least as many bytes as characters: a large one is not encoded to be counted.
        for measure in (len, _utf8_bytes) if self.max_bytes > 0 else ():
            size = sum(measure(key) + measure(value) for key, value in properties.items())
            if size > self.max_bytes:
                raise TooManyPropertiesError(
                    f"{size} bytes of properties: a listing request may have {self.max_bytes} "
                    f"({MAX_BYTES_KEY})"
                )


def _utf8_bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def as_mapping(properties: Sequence[pb.KeyValue]) -> Mapping[str, str]:
    """Return properties by key; of a key given twice the last value holds, as upstream."""
    return {one.key: one.value for one in properties}
