"""The query parameter ``properties`` of a listing (PIP-452): ``k1=v1,k2=v2``.

The parameter as a whole is decoded once by HTTP; each key and value is decoded once more, as a
form is, so that they can hold a comma or an equals sign, and ``+`` is a blank.

Source: upstream v2.PersistentTopics.parseProperties. Differs: profile ``floodgate`` refuses a part
without ``=``, which upstream leaves out, so that more is listed than was meant.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote_plus

from broker.configuration.property_bounds import PropertyBounds, TooManyPropertiesError
from server.http import RestError

if TYPE_CHECKING:
    from collections.abc import Mapping


def parse_properties(
    text: str, bounds: PropertyBounds, *, skip_unreadable: bool
) -> Mapping[str, str]:
    """Return the properties of the parameter; empty parts are left out.

    Of a key given twice the later value wins, as on the binary path.

    Args:
        text: The parameter.
        bounds: How many there may be.
        skip_unreadable: Whether parts that cannot be read are left out; otherwise refused.

    Raises:
        RestError: 412, a part cannot be read, or they are too many or too large.
    """
    properties: dict[str, str] = {}
    for part in filter(str.strip, text.split(",")):
        key, separator, value = part.partition("=")
        name = unquote_plus(key.strip())
        if separator and name:
            properties[name] = unquote_plus(value.strip())
        elif not skip_unreadable:
            raise RestError(412, f"properties={part[:40]!r} should be key=value,key=value")
    try:
        bounds.check(properties)
    except TooManyPropertiesError as error:
        raise RestError(412, str(error)) from None
    return properties
