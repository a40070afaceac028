"""``floodgate-admin tokens``: commands that create and inspect keys and tokens, without a server.

Secrets are given as a file or an environment variable: all users of the machine can read command
lines.
"""

from __future__ import annotations

import base64
import json
import os
import re
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from client.admin.commands.call import EXIT_FAILED, EXIT_USAGE
from client.admin.commands.options import Option, flag
from client.admin.commands.values import SECONDS
from client.admin.commands.verbs import Function, add, group
from limiter.clock import LoopClock

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from client.admin.commands.call import Call

SECRET_BYTES = {"HS256": 32, "HS384": 48, "HS512": 64}
"""Minimum length of a secret key in bytes, for each signature algorithm."""
CURVES = {"ES256": "SECP256R1", "ES384": "SECP384R1", "ES512": "SECP521R1"}
RSA = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
_FILE = re.compile(r"file:(//)?")


class KeyFileError(Exception):
    """A file or environment variable holds no usable key or token.

    ``str()`` gives the reason without secrets.
    """

    def __init__(self, text: str, status: int = EXIT_FAILED) -> None:
        super().__init__(text)
        self.status = status


def signing_key(secret: str | None, private: str | None, algorithm: str | None) -> tuple[Any, str]:
    """Return the key that signs a token, and the name of the signature algorithm."""
    _one_of("--secret-key file:PATH or --private-key file:PATH", (secret, private))
    if private is not None:
        return _der_or_pem(named_secret("--private-key", private), "private"), algorithm or "RS256"
    return _long_enough(named_secret("--secret-key", secret or "")), algorithm or "HS256"


def checking_key(
    secret: str | None, public: str | None, algorithm: str | None
) -> tuple[Any, list[str]]:
    """Return the key that verifies a token, and the permitted signature algorithms."""
    _one_of("--secret-key file:PATH or --public-key file:PATH", (secret, public))
    if public is not None:
        key = _der_or_pem(named_secret("--public-key", public), "public")
        return key, [algorithm] if algorithm else [*RSA, *CURVES]
    found = _long_enough(named_secret("--secret-key", secret or ""))
    good = [name for name, size in SECRET_BYTES.items() if len(found) >= size]
    return found, [algorithm] if algorithm else good


def given_token(file: str | None, named: str | None, *, stdin: bool) -> str:
    """Read a token from a file, an environment variable or standard input."""
    _one_of("--token-file, --token env:NAME or --stdin", (file, named, stdin or None))
    if stdin:
        return sys.stdin.read().strip()
    if file is not None:
        return _read(_FILE.sub("", file, count=1)).decode("utf-8", "replace").strip()
    found = named_secret("--token", named or "", is_text=True)
    return found.decode("utf-8", "replace").strip()


def named_secret(option: str, source: str, *, is_text: bool = False) -> bytes:
    """Read a secret from a file or environment variable; refuse a secret on the command line.

    Args:
        option: Name of the command-line option, for error texts.
        source: ``file:PATH`` or ``env:NAME``.
        is_text: True if the variable holds plain text; False if it holds a key as base64 or PEM.
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
        raise KeyFileError(f"give exactly one of: {names}", EXIT_USAGE)


def _long_enough(secret: bytes) -> bytes:
    if len(secret) < SECRET_BYTES["HS256"]:
        raise KeyFileError(f"a secret key needs at least 32 bytes, and this one has {len(secret)}")
    return secret


def _der_or_pem(found: bytes, kind: str) -> Any:  # noqa: ANN401 - one of many kinds
    from cryptography.hazmat.primitives import serialization

    form = "pem" if found.startswith(b"-----BEGIN") else "der"
    load = getattr(serialization, f"load_{form}_{kind}_key")
    try:
        return load(found, None) if kind == "private" else load(found)
    except (ValueError, TypeError):
        raise KeyFileError(f"this is not a {kind} key in DER or PEM format") from None


def _decoded(name: str, value: str) -> bytes:
    """Decode the key in an environment variable; refuse any other text, such as a path."""
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


tokens = group("tokens", "Keys and tokens: create and inspect them, without a broker.",
               "create-secret-key --output my-secret.key",
               "create --secret-key file:my-secret.key --subject ann",
               "create-key-pair --output-private-key p.key --output-public-key pub.key",
               "VERB --help")  # fmt: skip

_RSA_BITS = 2048
_DURATION = re.compile(r"([0-9]{1,9})([smhdwy]?)", re.ASCII)

_OPTIONS = {
    "output": Option(str, "--output -o", "File to write.", "FILE", None),
    "private_file": Option(str, "--output-private-key", "File for the private key.", "FILE"),
    "public_file": Option(str, "--output-public-key", "File for the public key.", "FILE"),
    "algorithm": Option(
        str, "--signature-algorithm -a", "Algorithm: HS256, RS256, ES256, ...", "NAME", None),
    "as_base64": flag("--base64 -b", "Write the key as base64."),
    "subject": Option(str, "--subject -s", "Role of the token.", "ROLE"),
    "secret_key": Option(
        str, "--secret-key -sk", "Secret key: file:PATH or env:NAME.", "FILE", None),
    "private_key": Option(
        str, "--private-key -pk", "Private key, DER or PEM: file:PATH or env:NAME.", "FILE", None),
    "public_key": Option(
        str, "--public-key -pk", "Public key, DER or PEM: file:PATH or env:NAME.", "FILE", None),
    "expiry_time": Option(str, "--expiry-time -e", "Lifetime: 1s, 10m, 5h, 3d, 2y.", "TIME", None),
    "headers": Option(list[str], "--headers", "Header of the token. May be repeated.", "K=V", None),
    "token_file": Option(str, "--token-file -f", "File with the token.", "FILE", None),
    "token": Option(str, "--token", "Token: env:NAME or file:PATH.", "env:NAME", None),
    "stdin": flag("--stdin -i", "Read the token from standard input."),
}  # fmt: skip


def create_secret_key(
    call: Call,
    output: str | None,
    algorithm: str = "HS256",
    as_base64: bool = False,
) -> None:
    """Create a secret key that signs and verifies tokens, in a file that only its owner can read.

    Examples:
    floodgate-admin tokens create-secret-key --output my-secret.key
    """
    with _sentences(call):
        size = SECRET_BYTES.get(algorithm)
        if size is None:
            names = ", ".join(SECRET_BYTES)
            raise KeyFileError(f"{algorithm!r:.40} is no algorithm of secrets: {names}")
        secret = os.urandom(size)
        write_key(output, base64.b64encode(secret) if as_base64 else secret)


def create_key_pair(
    call: Call,
    private_file: str,
    public_file: str,
    algorithm: str = "RS256",
) -> None:
    """Create a private key that signs tokens and a public key that verifies them, in DER format.

    Examples:
    floodgate-admin tokens create-key-pair --output-private-key p.key --output-public-key pub.key
    """
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec, rsa

    pair: Any
    with _sentences(call):
        if algorithm in RSA:
            pair = rsa.generate_private_key(65_537, _RSA_BITS)
        elif algorithm in CURVES:
            pair = ec.generate_private_key(getattr(ec, CURVES[algorithm])())
        else:
            names = ", ".join((*RSA, *CURVES))
            raise KeyFileError(f"{algorithm!r:.40} is no algorithm of key pairs: {names}")
        private = pair.private_bytes(
            serialization.Encoding.DER,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        public = pair.public_key().public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        write_key(private_file, private)
        write_key(public_file, public)


def create(  # noqa: PLR0913 - pulsar-admin's options
    call: Call,
    subject: str,
    secret_key: str | None,
    private_key: str | None,
    expiry_time: str | None,
    algorithm: str | None,
    headers: list[str] | None,
) -> None:
    """Create a signed token, and print it.

    Examples:
    floodgate-admin tokens create --secret-key file:my-secret.key --subject ann
    floodgate-admin tokens create --private-key file:p.key --subject ann --expiry-time 1y
    """
    import jwt

    claims: dict[str, object] = {"sub": subject}
    with _sentences(call):
        if expiry_time is not None:
            claims["exp"] = LoopClock().wall_ms() // 1000 + _seconds(expiry_time)
        key, name = signing_key(secret_key, private_key, algorithm)
        more = dict(pair.partition("=")[::2] for pair in headers or ())
        made = jwt.encode(claims, key, algorithm=name, headers=more or None)
    sys.stdout.write(f"{made}\n")


def validate(  # noqa: PLR0913 - pulsar-admin's options
    call: Call,
    secret_key: str | None,
    public_key: str | None,
    algorithm: str | None,
    token_file: str | None,
    token: str | None,
    stdin: bool,
) -> None:
    """Verify the signature and the expiry time of a token, and print its claims.

    Examples:
    floodgate-admin tokens validate --secret-key file:my-secret.key --token-file ann.jwt
    """
    import jwt

    options: Any = {"verify_aud": False, "verify_iat": False}
    with _sentences(call):
        shown = given_token(token_file, token, stdin=stdin)
        key, names = checking_key(secret_key, public_key, algorithm)
        claims = jwt.decode(shown, key, algorithms=names, options=options)
    sys.stdout.write(f"{json.dumps(claims)}\n")


def show(call: Call, token_file: str | None, token: str | None, stdin: bool) -> None:
    """Print the header and the claims of a token, without verifying its signature.

    Examples:
    floodgate-admin tokens show --token-file ann.jwt
    """
    import jwt

    options: Any = {"verify_signature": False}
    with _sentences(call):
        shown = given_token(token_file, token, stdin=stdin)
        header = jwt.get_unverified_header(shown)
        claims = jwt.decode(shown, options=options)
    sys.stdout.write(f"{json.dumps(header)}\n---\n{json.dumps(claims)}\n")


@contextmanager
def _sentences(call: Call) -> Iterator[None]:
    """Report an error of keys or tokens as a sentence, and exit."""
    import jwt

    try:
        yield
    except KeyFileError as error:
        call.fail(str(error), error.status)
    except (jwt.PyJWTError, ValueError, TypeError, NotImplementedError) as error:
        call.fail(str(error), EXIT_FAILED)


def _seconds(text: str) -> int:
    found = _DURATION.fullmatch(text)
    if found is None:
        raise KeyFileError(f"{text!r:.40} is no time: write 30s, 10m, 5h, 3d, 2w or 1y", EXIT_USAGE)
    return int(found[1]) * SECONDS[found[2]]


add(
    tokens,
    Function("create-secret-key", create_secret_key, _OPTIONS),
    Function("create-key-pair", create_key_pair, _OPTIONS),
    Function("create", create, _OPTIONS),
    Function("validate", validate, _OPTIONS),
    Function("show", show, _OPTIONS),
)
