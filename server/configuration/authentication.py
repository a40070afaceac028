"""Pulsar's authentication keys as immutable settings, which name secrets but do not hold them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from server.configuration.secret_sources import has_password, is_literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from server.configuration.known_keys import CheckedKeys

_PACKAGE = "org.apache.pulsar.broker.authentication."
METHODS = {
    f"{_PACKAGE}AuthenticationProviderToken": "token",
    f"{_PACKAGE}AuthenticationProviderTls": "tls",
    f"{_PACKAGE}AuthenticationProviderBasic": "basic",
}
"""Provider classes by their names in Pulsar, with the method of CONNECT."""
PREFIX_KEY = "tokenSettingPrefix"
TOKEN_KEYS = (
    "tokenSecretKey",
    "tokenPublicKey",
    "tokenPublicAlg",
    "tokenAuthClaim",
    "tokenAudienceClaim",
    "tokenAudience",
    "tokenAllowedClockSkewSeconds",
)
SECRET_KEYS = ("tokenSecretKey", "brokerClientAuthenticationParameters", "basicAuthConf")
"""Keys whose value may be a secret: refused on a command line, masked everywhere."""
STORE_KEYS = ("metadataStoreUrl", "floodgateMetadataStoreUrl", "zookeeperServers")
"""Keys whose value may be a URL with a password, which a file may contain."""
SECRET_KEY = re.compile(
    r"password|secret|credential|authenticationparam|sensitive|basicauthconf", re.IGNORECASE
)
"""Names of keys with secret values, including keys without effect here."""
DEFAULT_CLAIM, DEFAULT_ALGORITHM = "sub", "RS256"
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512")


class Source(str):
    """A configuration value that locates or contains a secret, hidden by ``repr()``."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'***'"


class TokenSettings(NamedTuple):
    """The configuration of authentication by JSON web tokens.

    Attributes:
        secret_key: tokenSecretKey; precedes the public key.
        public_key: tokenPublicKey.
        public_algorithm: tokenPublicAlg: the family of the public key.
        claim: tokenAuthClaim: the claim with the role.
        audience_claim: tokenAudienceClaim; empty: the audience is not checked.
        audience: tokenAudience.
        skew_seconds: tokenAllowedClockSkewSeconds.
    """

    secret_key: Source = Source()
    public_key: str = ""
    public_algorithm: str = DEFAULT_ALGORITHM
    claim: str = DEFAULT_CLAIM
    audience_claim: str = ""
    audience: str = ""
    skew_seconds: int = 0


class AuthenticationSettings(NamedTuple):
    """The authentication configuration of a server.

    Attributes:
        methods: authenticationProviders, as methods in order.
        token: token*, if a provider of tokens is configured.
        basic_source: basicAuthConf.
        anonymous_role: anonymousUserRole; empty: credentials are required.
        strict: strictAuthMethod: an HTTP request must name its method.
        refresh_seconds: authenticationRefreshCheckSeconds.
        checks_original: authenticateOriginalAuthData (broker).
        proxy_roles: proxyRoles (broker).
        forwards_credentials: forwardAuthorizationCredentials (proxy).
        covers_metrics: authenticateMetricsEndpoint.
    """

    methods: tuple[str, ...]
    token: TokenSettings | None = None
    basic_source: Source = Source()
    anonymous_role: str = ""
    strict: bool = False
    refresh_seconds: int = 60
    checks_original: bool = False
    proxy_roles: frozenset[str] = frozenset()
    forwards_credentials: bool = False
    covers_metrics: bool = False


def with_token_prefix(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the configuration after removing tokenSettingPrefix from the names of token keys.

    With a prefix Pulsar reads only the prefixed token keys.
    """
    prefix = properties.get(PREFIX_KEY, "").strip()
    if prefix in ("", "null"):
        return dict(properties)
    prefixed = {prefix + key: key for key in TOKEN_KEYS}
    kept = {key: value for key, value in properties.items() if key not in TOKEN_KEYS}
    return {prefixed.get(key, key): value for key, value in kept.items()}


def authentication_settings(checked: CheckedKeys, *, proxy: bool) -> AuthenticationSettings | None:
    """Return the authentication settings of a server; None if authentication is off.

    Invalid values become problems of ``checked``.
    """
    checked.text(PREFIX_KEY)
    if not checked.flag("authenticationEnabled"):
        return None
    methods = _methods(checked)
    anonymous_role = checked.text("anonymousUserRole") or ""
    if not methods and not anonymous_role:
        checked.refuse(
            "authenticationEnabled=true without authenticationProviders: nobody could connect; "
            f"name one, for example {_PACKAGE}AuthenticationProviderToken, or an anonymousUserRole"
        )
    return AuthenticationSettings(
        methods=methods,
        token=_token_settings(checked) if "token" in methods else None,
        basic_source=_basic_source(checked) if "basic" in methods else Source(),
        anonymous_role=anonymous_role,
        strict=not proxy and checked.flag("strictAuthMethod"),
        refresh_seconds=_refresh_seconds(checked),
        checks_original=not proxy and checked.flag("authenticateOriginalAuthData"),
        proxy_roles=frozenset() if proxy else frozenset(checked.names("proxyRoles")),
        forwards_credentials=proxy and checked.flag("forwardAuthorizationCredentials"),
        covers_metrics=checked.flag("authenticateMetricsEndpoint"),
    )


def _refresh_seconds(checked: CheckedKeys) -> int:
    key = "authenticationRefreshCheckSeconds"
    if checked.integer(key) < 1:
        checked.refuse(f"{key}={checked.integer(key)}: expected 1 or more")
    return checked.integer(key)


def _methods(checked: CheckedKeys) -> tuple[str, ...]:
    methods: dict[str, None] = {}
    for name in checked.names("authenticationProviders"):
        if name in METHODS:
            methods[METHODS[name]] = None
        else:
            checked.refuse(
                f"authenticationProviders={name!r:.120}: no such provider here; "
                f"there are {', '.join(METHODS)}"
            )
    return tuple(methods)


def _token_settings(checked: CheckedKeys) -> TokenSettings:
    secret, public = checked.text("tokenSecretKey"), checked.text("tokenPublicKey")
    if not secret and not public:
        checked.refuse(
            "tokenSecretKey and tokenPublicKey are missing: name the key that tokens are checked "
            "with, for example tokenSecretKey=file:///path; "
            "`floodgate-admin tokens create-secret-key` makes one"
        )
    audience_claim = checked.text("tokenAudienceClaim") or ""
    audience = checked.text("tokenAudience") or ""
    if audience_claim and not audience:
        checked.refuse("tokenAudienceClaim without tokenAudience: name the audience this server is")
    return TokenSettings(
        secret_key=Source(secret or ""),
        public_key=public or "",
        public_algorithm=_algorithm(checked),
        claim=checked.text("tokenAuthClaim") or DEFAULT_CLAIM,
        audience_claim=audience_claim,
        audience=audience,
        skew_seconds=_skew_seconds(checked),
    )


def _algorithm(checked: CheckedKeys) -> str:
    name = (checked.text("tokenPublicAlg") or DEFAULT_ALGORITHM).upper()
    if name not in ALGORITHMS:
        checked.refuse(f"tokenPublicAlg={name!r:.40}: expected one of {', '.join(ALGORITHMS)}")
    return name


def _skew_seconds(checked: CheckedKeys) -> int:
    text = checked.text("tokenAllowedClockSkewSeconds") or "0"
    if text.isascii() and text.isdigit() and len(text) <= 9:
        return int(text)
    checked.refuse(f"tokenAllowedClockSkewSeconds={text!r:.40}: expected a whole number of seconds")
    return 0


def _basic_source(checked: CheckedKeys) -> Source:
    source = checked.text("basicAuthConf") or ""
    if not source:
        checked.refuse(
            "basicAuthConf is missing: name the file with users and password hashes, as htpasswd "
            "writes it, for example basicAuthConf=file:///path"
        )
    return Source(source)


def literal_refusal(key: str, value: str) -> str | None:
    """Return an error text if a value given with ``--set`` is a secret, else None.

    All users of a machine can read its command lines.
    """
    read_from_elsewhere = key.endswith(SECRET_KEYS) or key in STORE_KEYS
    hidden = key.endswith(SECRET_KEYS) or SECRET_KEY.search(key) is not None
    hidden = hidden and not value.lstrip().startswith("tlsCertFile:") and is_literal(value)
    if not hidden and not has_password(value):
        return None
    elsewhere = f"write {key}=file:///path or {key}=env:NAME, or " if read_from_elsewhere else ""
    return (
        f"--set {key}=***: a secret on a command line can be read by everybody on this machine; "
        f"{elsewhere}put it into the configuration file"
    )
