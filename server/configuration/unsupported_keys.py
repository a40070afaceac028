"""Keys of protections that this version does not have: they are refused.

Ignoring one of them would leave a server open that its operator believes closed, so each is
refused with a sentence of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from server.configuration.known_keys import CheckedKeys

# Key -> what this version does not support; both roles have these.
REFUSED_WHEN_TRUE = {
    "authenticationEnabled": "authentication",
    "authorizationEnabled": "authorization",
    "haProxyProtocolEnabled": "the HAProxy protocol",
    "webServiceHaProxyProtocolEnabled": "the HAProxy protocol",
}
REFUSED_WHEN_SET = {"webServicePortTls": "TLS"}


def refuse_true(checked: CheckedKeys, keys: Mapping[str, str]) -> None:
    """Add a problem for each of ``keys`` that is true."""
    for key, feature in keys.items():
        if checked.flag(key):
            checked.refuse(f"{key}=true: this version does not support {feature}; set it to false")


def refuse_set(checked: CheckedKeys, keys: Mapping[str, str]) -> None:
    """Add a problem for each of ``keys`` that has a value."""
    for key, feature in keys.items():
        # The value is not shown: it may be a secret.
        if checked.value(key) not in (None, "", ()):
            checked.refuse(f"{key} is set: this version does not support {feature}; remove the key")
