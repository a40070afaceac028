"""An operator's broker.conf and proxy.conf, made fit for a rehearsal on the loopback.

Limits, frame sizes, water marks and what else decides how topic lists are answered is kept. What
ties a server to its cluster is set aside: where it listens and is reached, its metadata store,
what protects it. The file itself is given to the server, and what is set aside is overridden, so
that no secret of it appears on a command line.
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

# An empty value means the default, which for each of these is "off" or "none".
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
    """Return a broker's settings in every run: free ports of the loopback."""
    return {"brokerServicePort": "0", "metadataStoreUrl": "memory:local", **_LOOPBACK}


def local_proxy(broker_service_url: str, broker_web_url: str) -> dict[str, str]:
    """Return a proxy's settings in every run: its broker, and free ports of the loopback."""
    return {
        "servicePort": "0",
        "brokerServiceURL": broker_service_url,
        "brokerWebServiceURL": broker_web_url,
        **_LOOPBACK,
    }


@dataclass(frozen=True)
class OwnServer:
    """One server's configuration as its operator wrote it.

    Attributes:
        role: ``broker`` or ``proxy``.
        file: The file; None: Pulsar's defaults.
        keys: What the file says.
        lines: Where it says so.
    """

    role: str
    file: Path | None = None
    keys: Mapping[str, str] = field(default_factory=dict, repr=False)
    lines: Mapping[str, int] = field(default_factory=dict, repr=False)

    def over(self, keys: Mapping[str, str], local: Mapping[str, str]) -> dict[str, str]:
        """Return the settings to lay over the file, where the file itself wins over ``keys``."""
        profile = self.keys.get(_PROFILE_KEY, keys.get(_PROFILE_KEY))
        return {
            **{key: value for key, value in keys.items() if key not in self.keys},
            **(self._without_our_keys() if profile == "pulsar" else {}),
            **{key: value for key, value in _LOCAL_OF[self.role].items() if key in self.keys},
            **local,
        }

    @property
    def _overridden(self) -> dict[str, str]:
        """Keys of the file whose values every run replaces."""
        local = local_broker() if self.role == "broker" else local_proxy("", "")
        return {**_LOCAL_OF[self.role], **local}

    def set_aside(self) -> list[str]:
        """Return the keys of the file that a rehearsal on the loopback cannot keep."""
        said, ours = self.keys, self._overridden
        return [key for key in said if said[key].strip() not in ("", ours.get(key, said[key]))]

    def checked(self) -> CheckedKeys:
        """Check the values that some run keeps, as the server does at its start."""
        overridden = {*self._overridden, _PROFILE_KEY}
        return known_keys(self.role).check(
            {k: v for k, v in self.keys.items() if k not in overridden}
        )

    def require(self, problems: Sequence[str]) -> None:
        """Refuse the file for problems, sentences that begin with their key.

        Raises:
            UsageError: There are some; it names the file, and the line of each.
        """
        if problems:
            lines = self.lines
            said = [
                f"line {lines[key]}, {each}" if (key := each.partition("=")[0]) in lines else each
                for each in problems
            ]
            raise UsageError(f"--{self.role}-conf {self.file}: {'; '.join(said)}")

    def _without_our_keys(self) -> dict[str, str]:
        """Return empty values for Floodgate's keys, which the profile ``pulsar`` cannot have."""
        ours = (known.key for known in known_keys(self.role) if known.key.startswith(_OUR_PREFIX))
        return {key: "" for key in ours if key in self.keys and key != _PROFILE_KEY}


def read_own_server(role: str, file: Path | None) -> OwnServer:
    """Read the configuration of one server; without a file Pulsar's defaults hold.

    Raises:
        UsageError: It cannot be read, or has wrong values; all of them.
    """
    if file is None:
        return OwnServer(role)
    try:
        text = read_text(file)
        server = OwnServer(role, file, parse_properties(text, str(file)), key_lines(text))
    except ConfigError as error:
        raise UsageError(f"--{role}-conf {error.problems[0]}") from None
    if server.keys and all(known_keys(role).refusal(key) for key in server.keys):
        raise UsageError(f"--{role}-conf {file}: the {role} knows none of its keys")
    server.require(server.checked().problems)
    return server
