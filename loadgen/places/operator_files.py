"""An operator's broker.conf and proxy.conf, adapted for servers on the loopback.

Limits, frame sizes, watermarks and other settings of topic listings are kept. Settings that tie a
server to a cluster are set aside: listeners and addresses, metadata store, security. The server
reads the file, and overrides replace the settings set aside, so no secret in the file appears on a
command line.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from loadgen.documents.server_keys import known_keys
from loadgen.errors import UsageError
from server.configuration.file import key_lines, parse_properties, read_text
from server.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from server.configuration.known_keys import CheckedKeys

# An empty value means the default, which is "off" or "none" for each of these keys.
_LOCAL = {
    "webServicePortTls": "",
    "authenticationEnabled": "false",
    "authorizationEnabled": "false",
    "haProxyProtocolEnabled": "false",
    "webServiceHaProxyProtocolEnabled": "false",
}
_LOCAL_OF = {
    "broker": {
        **_LOCAL,
        "brokerServicePortTls": "",
        "tlsEnabled": "false",
        "floodgateMetadataStoreUrl": "",
        "floodgateImportDirectory": "",
        "pulsarResourcesExtendedClassName": "",
    },
    "proxy": {
        **_LOCAL,
        "servicePortTls": "",
        "tlsEnabledWithBroker": "false",
        "brokerClientAuthenticationPlugin": "",
        # All clients of a rehearsal come from one address.
        "maxConcurrentInboundConnectionsPerIp": "0",
    },
}
_LOOPBACK = {
    "webServicePort": "0",
    "bindAddress": "127.0.0.1",
    "advertisedAddress": "127.0.0.1",
}
_OUR_PREFIX = "floodgate"
_PROFILE_KEY = "floodgateProfile"


def local_broker() -> dict[str, str]:
    """Return the settings of every broker started by a run, such as free loopback ports."""
    return {"brokerServicePort": "0", "metadataStoreUrl": "memory:local", **_LOOPBACK}


def local_proxy(broker_service_url: str, broker_web_url: str) -> dict[str, str]:
    """Return the settings of every proxy started by a run, such as the address of the broker."""
    return {
        "servicePort": "0",
        "brokerServiceURL": broker_service_url,
        "brokerWebServiceURL": broker_web_url,
        **_LOOPBACK,
    }


@dataclass(frozen=True)
class OwnServer:
    """A server's configuration, as stated by the operator's file.

    Attributes:
        role: ``broker`` or ``proxy``.
        file: The configuration file; None for Pulsar's defaults.
        keys: The keys in the file, with values.
        lines: The line number of each key.
    """

    role: str
    file: Path | None = None
    keys: Mapping[str, str] = field(default_factory=dict, repr=False)
    lines: Mapping[str, int] = field(default_factory=dict, repr=False)

    def over(self, keys: Mapping[str, str], local: Mapping[str, str]) -> dict[str, str]:
        """Return the settings that override those in the file.

        They are the scenario's ``keys`` that the file does not set, and addresses on the loopback.
        """
        profile = self.keys.get(_PROFILE_KEY, keys.get(_PROFILE_KEY))
        return {
            **{key: value for key, value in keys.items() if key not in self.keys},
            **(self._without_our_keys() if profile == "pulsar" else {}),
            **{key: value for key, value in _LOCAL_OF[self.role].items() if key in self.keys},
            **local,
        }

    @property
    def _overridden(self) -> dict[str, str]:
        """The configuration keys that every run sets to its own values, whatever the file says."""
        local = local_broker() if self.role == "broker" else local_proxy("", "")
        return {**_LOCAL_OF[self.role], **local}

    def set_aside(self) -> list[str]:
        """Return the keys in the file that a run on the loopback cannot use."""
        said, ours = self.keys, self._overridden
        return [key for key in said if said[key].strip() not in ("", ours.get(key, said[key]))]

    def checked(self) -> CheckedKeys:
        """Check the file's values used by a run, like the server does when starting."""
        overridden = {*self._overridden, _PROFILE_KEY}
        return known_keys(self.role).check(
            {k: v for k, v in self.keys.items() if k not in overridden}
        )

    def require(self, problems: Sequence[str]) -> None:
        """Raise an error if the file has problems.

        Each problem is a sentence that begins with the key.

        Raises:
            UsageError: ``problems`` is not empty; the message has the file and each problem's line.
        """
        if problems:
            lines = self.lines
            said = [
                f"line {lines[key]}, {each}" if (key := each.partition("=")[0]) in lines else each
                for each in problems
            ]
            raise UsageError(f"--{self.role}-conf {self.file}: {'; '.join(said)}")

    def _without_our_keys(self) -> dict[str, str]:
        """Return empty values for Floodgate's own keys, absent from profile ``pulsar``."""
        ours = (known.key for known in known_keys(self.role) if known.key.startswith(_OUR_PREFIX))
        return {key: "" for key in ours if key in self.keys and key != _PROFILE_KEY}


def read_own_server(role: str, file: Path | None) -> OwnServer:
    """Read an operator's configuration file; without a file the server has Pulsar's defaults.

    Raises:
        UsageError: The file cannot be read, or has wrong values; the message names all of them.
    """
    if file is None:
        return OwnServer(role)
    try:
        text = read_text(file)
        server = OwnServer(role, file, parse_properties(text, str(file)), key_lines(text))
    except ConfigError as error:
        raise UsageError(f"--{role}-conf {error.problems[0]}") from None
    if server.keys and all(known_keys(role).refusal(key) for key in server.keys):
        found = "; ".join(notice.sentence for notice in server.checked().notices)
        raise UsageError(f"--{role}-conf {file}: the {role} knows none of its keys ({found})")
    server.require(server.checked().problems)
    return server
