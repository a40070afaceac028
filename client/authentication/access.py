"""Command-line tools' credentials and certificates, kept in files or environment variables.

All users of a machine can read command lines; options and environment variables therefore hold
references to secrets.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self
from urllib.parse import quote

from client.authentication.authentication import (
    AuthenticationBasic,
    AuthenticationToken,
    read_named,
)
from client.authentication.tls import AuthenticationTLS
from client.exceptions import InvalidConfiguration

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from client.authentication.authentication import Authentication

PLUGIN_VARIABLE = "FLOODGATE_AUTH_PLUGIN"
PARAMS_VARIABLE = "FLOODGATE_AUTH_PARAMS"
TRUST_VARIABLE = "FLOODGATE_TLS_TRUST_CERTS_FILE_PATH"
_CLASSES = "org.apache.pulsar.client.impl.auth.Authentication"
_PLUGINS = {
    name: kind
    for kind, upstream in (("token", "Token"), ("basic", "Basic"), ("tls", "Tls"))
    for name in (kind, f"Authentication{upstream}", f"{_CLASSES}{upstream}")
}
_PLACES = ("file:", "env:")
_CERTIFICATE, _KEY = "tlsCertFile", "tlsKeyFile"


@dataclass(frozen=True, slots=True)
class Access:
    """The location of a tool's credentials: files or environment variables, never a secret.

    Attributes:
        plugin: ``token`` (also if empty), ``basic``, ``tls``, or the name of upstream's class.
        params: ``file:PATH`` or ``env:NAME``; for ``tls``, ``tlsCertFile:PATH,tlsKeyFile:PATH``. If
            empty, there are no credentials.
        trust_certs_file_path: File of trusted CA certificates; if empty, the defaults are trusted.

    Raises:
        InvalidConfiguration: The plug-in is unknown, or the parameters are a literal secret.
    """

    plugin: str = ""
    params: str = ""
    trust_certs_file_path: str = ""

    def __post_init__(self) -> None:
        if self.plugin and self.plugin not in _PLUGINS:
            raise InvalidConfiguration(
                f"--auth-plugin {self.plugin!r:.80}: there are token, basic and tls"
            )
        if self.plugin and not self.params:
            raise InvalidConfiguration("--auth-plugin without --auth-params: name them both")
        if self.params and self.kind == "tls":
            self._certificate()
        elif self.params and not self.params.startswith(_PLACES):
            raise InvalidConfiguration(
                "--auth-params ***: a secret on a command line can be read by everybody on this "
                "machine; write --auth-params file:///path or --auth-params env:NAME"
            )

    @property
    def kind(self) -> str:
        """The authentication method: ``token``, ``basic`` or ``tls``."""
        return _PLUGINS.get(self.plugin, "token")

    @classmethod
    def named_in(cls, environment: Mapping[str, str]) -> Self:
        """Read the location of the credentials from environment variables.

        Raises:
            InvalidConfiguration: The plug-in is unknown, or a variable holds a literal secret.
        """
        names = (PLUGIN_VARIABLE, PARAMS_VARIABLE, TRUST_VARIABLE)
        return cls(*(environment.get(name, "") for name in names))

    def variables(self) -> dict[str, str]:
        """Return environment variables that pass the credentials' locations to a child process."""
        given = {
            PLUGIN_VARIABLE: self.plugin,
            PARAMS_VARIABLE: self.params,
            TRUST_VARIABLE: self.trust_certs_file_path,
        }
        return {name: value for name, value in given.items() if value}

    def contents(self) -> dict[str, str]:
        """Return the secrets, keyed by kind, to send them to a machine that lacks the files.

        Raises:
            ErrorGettingAuthenticationData: A secret's file or variable is missing.
        """
        named = {"plugin": self.plugin}
        if self.params and self.kind == "tls":
            certificate, key = self._certificate()
            named |= {_CERTIFICATE: _text_of(certificate), _KEY: _text_of(key)}
        elif self.params:
            named["secret"] = read_named(self.params)
        if self.trust_certs_file_path:
            named["trust"] = _text_of(self.trust_certs_file_path)
        return named

    @classmethod
    def from_contents(cls, contents: Mapping[str, str], kept: Callable[[str], str]) -> Self:
        """Store secrets received from another machine, and return their locations.

        Args:
            contents: The secrets that :meth:`contents` returned on the other machine.
            kept: Function that stores a text in a file, and returns the file's path.
        """
        files = {name: kept(text) for name, text in contents.items() if name != "plugin"}
        params = f"file://{files['secret']}" if "secret" in files else ""
        if _KEY in files:
            params = ",".join(f"{name}:{files[name]}" for name in (_CERTIFICATE, _KEY))
        return cls(contents.get("plugin", ""), params, str(files.get("trust", "")))

    def authentication(self) -> Authentication | None:
        """Return the credentials to authenticate with; None if there are none.

        A token's file or variable is read at each use.

        Raises:
            ErrorGettingAuthenticationData: A secret's file or variable is missing.
            InvalidConfiguration: The secret does not fit its kind.
        """
        if not self.params:
            return None
        if self.kind == "tls":
            return AuthenticationTLS(*self._certificate())
        if self.kind == "token":
            return AuthenticationToken(self.params)
        return _basic(read_named(self.params))

    def _certificate(self) -> tuple[str, str]:
        pairs = dict(part.strip().partition(":")[::2] for part in self.params.split(","))
        if set(pairs) != {_CERTIFICATE, _KEY} or not all(pairs.values()):
            raise InvalidConfiguration(
                f"--auth-params of tls: write {_CERTIFICATE}:/path,{_KEY}:/path"
            )
        return pairs[_CERTIFICATE], pairs[_KEY]


def _text_of(file: str) -> str:
    return read_named(f"file://{quote(os.path.abspath(file))}")


def _basic(found: str) -> AuthenticationBasic:
    """Parse ``name:password``, or the official client's JSON object with both."""
    if found.startswith("{"):
        try:
            named = json.loads(found)
            return AuthenticationBasic(named["userId"], named["password"])
        except (ValueError, KeyError, TypeError):
            raise InvalidConfiguration(
                "--auth-params of basic: the JSON object has no userId and password"
            ) from None
    name, colon, password = found.partition(":")
    if not colon:
        raise InvalidConfiguration(
            "--auth-params of basic: the file or variable must hold name:password"
        )
    return AuthenticationBasic(name, password)
