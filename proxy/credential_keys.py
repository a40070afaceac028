"""Configuration keys of the credentials with which the proxy authenticates at brokers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from server.configuration.authentication import Source

if TYPE_CHECKING:
    from server.configuration.known_keys import CheckedKeys
    from server.tls.settings import ClientTlsSettings

_PLUGIN_KEY = "brokerClientAuthenticationPlugin"
_PARAMETERS_KEY = "brokerClientAuthenticationParameters"
_CLIENTS = "org.apache.pulsar.client.impl.auth.Authentication"
_KINDS = {f"{_CLIENTS}Token": "token", f"{_CLIENTS}Basic": "basic", f"{_CLIENTS}Tls": "tls"}
_CERTIFICATE, _KEY = "tlsCertFile", "tlsKeyFile"


class BrokerCredentials(NamedTuple):
    """The configured credentials with which the proxy authenticates at brokers.

    Attributes:
        kind: ``token``, ``basic`` or ``tls``.
        parameters: brokerClientAuthenticationParameters.
    """

    kind: str
    parameters: Source


def read_credentials(checked: CheckedKeys) -> BrokerCredentials | None:
    """Return the proxy's configured credentials for brokers; None if it has none.

    Mistakes become problems of the configuration.
    """
    plugin = checked.text(_PLUGIN_KEY)
    parameters = Source(checked.text(_PARAMETERS_KEY) or "")
    if plugin in (None, f"{_CLIENTS}Disabled"):
        return None
    kind = _KINDS.get(plugin)
    if kind is None:
        checked.refuse(
            f"{_PLUGIN_KEY}={plugin!r:.120}: no such credentials here; "
            f"there are {', '.join(_KINDS)}"
        )
        return None
    if kind == "tls":
        if not checked.flag("tlsEnabledWithBroker"):
            checked.refuse(
                f"{_PLUGIN_KEY}={plugin}: a certificate is sent by TLS only; set "
                "tlsEnabledWithBroker=true"
            )
    elif not parameters:
        checked.refuse(
            f"{_PARAMETERS_KEY} is missing: say where the proxy's credentials are, for example "
            f"{_PARAMETERS_KEY}=file:///path"
        )
    return BrokerCredentials(kind, parameters)


def with_own_certificate(
    checked: CheckedKeys, tls: ClientTlsSettings, credentials: BrokerCredentials
) -> ClientTlsSettings:
    """Return the TLS settings for brokers, with the proxy's own certificate if one is configured.

    Upstream's parameters are ``tlsCertFile:/path,tlsKeyFile:/path``; without parameters the TLS
    keys name the certificate.
    """
    files = tls.files
    if credentials.kind != "tls":
        return tls
    if not credentials.parameters:
        if not files.certificate:
            checked.refuse(
                f"{_PLUGIN_KEY} wants a certificate: name it by {_PARAMETERS_KEY}="
                f"{_CERTIFICATE}:/path,{_KEY}:/path, or by {files.certificate_key} and "
                f"{files.key_key}"
            )
        return tls
    pairs = dict(part.strip().partition(":")[::2] for part in credentials.parameters.split(","))
    if set(pairs) != {_CERTIFICATE, _KEY} or not all(pairs.values()):
        checked.refuse(f"{_PARAMETERS_KEY}: expected {_CERTIFICATE}:/path,{_KEY}:/path")
        return tls
    own = replace(files, certificate=pairs[_CERTIFICATE], key=pairs[_KEY])
    return replace(tls, files=own)
