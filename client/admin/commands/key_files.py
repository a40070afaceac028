"""Keys and tokens in files and environment variables."""

from __future__ import annotations

import base64
import os
import re
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from client.admin.commands.call import EXIT_FAILED, EXIT_USAGE

if TYPE_CHECKING:
    from collections.abc import Sequence

SECRET_BYTES = {"HS256": 32, "HS384": 48, "HS512": 64}
"""The shortest secret of each algorithm."""
CURVES = {"ES256": "SECP256R1", "ES384": "SECP384R1", "ES512": "SECP521R1"}
RSA = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
_FILE = re.compile(r"file:(//)?")


class KeyFileError(Exception):
    """An unusable file or variable; ``str()`` says why, without secrets."""

    def __init__(self, text: str, status: int = EXIT_FAILED) -> None:
        super().__init__(text)
        self.status = status


def signing_key(secret: str | None, private: str | None, algorithm: str | None) -> tuple[Any, str]:
    """Return the signing key of a token, and the algorithm."""
    _one_of("--secret-key file:PATH or --private-key file:PATH", (secret, private))
    if private is not None:
        return _der_or_pem(named_secret("--private-key", private), "private"), algorithm or "RS256"
    return _long_enough(named_secret("--secret-key", secret or "")), algorithm or "HS256"


def checking_key(
    secret: str | None, public: str | None, algorithm: str | None
) -> tuple[Any, list[str]]:
    """Return the verification key of a token, and the permitted algorithms."""
    _one_of("--secret-key file:PATH or --public-key file:PATH", (secret, public))
    if public is not None:
        key = _der_or_pem(named_secret("--public-key", public), "public")
        return key, [algorithm] if algorithm else [*RSA, *CURVES]
    found = _long_enough(named_secret("--secret-key", secret or ""))
    good = [name for name, size in SECRET_BYTES.items() if len(found) >= size]
    return found, [algorithm] if algorithm else good


def given_token(file: str | None, named: str | None, *, stdin: bool) -> str:
    """Return a token from a file, a variable or standard input."""
    _one_of("--token-file, --token env:NAME or --stdin", (file, named, stdin or None))
    if stdin:
        return sys.stdin.read().strip()
    if file is not None:
        return _read(_FILE.sub("", file, count=1)).decode("utf-8", "replace").strip()
    found = named_secret("--token", named or "", is_text=True)
    return found.decode("utf-8", "replace").strip()


def named_secret(option: str, source: str, *, is_text: bool = False) -> bytes:
    """Return the content of a file or variable; refuse a literal secret.

    Args:
        option: The option's name, for errors.
        source: ``file:PATH`` or ``env:NAME``.
        is_text: A variable holds plain text; otherwise a key as base64 or PEM.
    """
    if source.startswith("file:"):
        return _read(_FILE.sub("", source, count=1))
    if not source.startswith("env:"):
        raise KeyFileError(
            f"{option} ***: a secret on a command line can be read by everybody on this machine; "
            f"write {option} file:PATH or {option} env:NAME",
            EXIT_USAGE,
        )
    name = source.removeprefix("env:")
    value = os.environ.get(name)
    if value is None:
        raise KeyFileError(f"there is no environment variable {name!r:.80}")
    return value.encode() if is_text else _decoded(name, value.strip())


def write_key(path: str | None, content: bytes) -> None:
    """Write a key to a file readable only by its owner, or to standard output."""
    if path is None:
        sys.stdout.buffer.write(content)
        sys.stdout.flush()
        return
    try:
        opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with open(opened, "wb") as file:
            file.write(content)
    except (OSError, ValueError) as error:
        raise KeyFileError(f"{path!r:.200} cannot be written: {_reason(error)}") from None


def _one_of(names: str, given: Sequence[object]) -> None:
    if sum(one is not None for one in given) != 1:
        raise KeyFileError(f"name one: {names}", EXIT_USAGE)


def _long_enough(secret: bytes) -> bytes:
    if len(secret) < SECRET_BYTES["HS256"]:
        raise KeyFileError(f"a secret of {len(secret)} bytes is too short: 32 are the least")
    return secret


def _der_or_pem(found: bytes, kind: str) -> Any:  # noqa: ANN401 - one of many kinds
    from cryptography.hazmat.primitives import serialization

    form = "pem" if found.startswith(b"-----BEGIN") else "der"
    load = getattr(serialization, f"load_{form}_{kind}_key")
    try:
        return load(found, None) if kind == "private" else load(found)
    except (ValueError, TypeError):
        raise KeyFileError(f"this is no {kind} key, as DER or PEM") from None


def _decoded(name: str, value: str) -> bytes:
    """Return the key in a variable; refuse any other text, such as a path."""
    encoded = value.removeprefix("data:;base64,")
    if encoded.startswith("-----BEGIN"):
        return encoded.encode()
    if encoded != value or not (encoded.startswith("/") or os.path.exists(encoded)):
        with suppress(ValueError):
            return base64.b64decode(encoded, validate=True)
    raise KeyFileError(
        f"the environment variable {name!r:.80} holds a text and no key: put the key there as "
        "data:;base64,..., or name its file as file:PATH"
    )


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except (OSError, ValueError) as error:
        raise KeyFileError(f"{path!r:.200} cannot be read: {_reason(error)}") from None


def _reason(error: Exception) -> str:
    return (error.strerror or "no reason") if isinstance(error, OSError) else "this is no path"
