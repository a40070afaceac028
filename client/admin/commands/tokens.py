"""``floodgate-admin tokens``: keys and tokens, created and inspected without a server.

Secrets are given as a file or an environment variable: all users of the machine can read command
lines.
"""

from __future__ import annotations

import base64
import json
import os
import re
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from client.admin.commands.call import EXIT_FAILED, EXIT_USAGE
from client.admin.commands.key_files import (
    CURVES,
    RSA,
    SECRET_BYTES,
    KeyFileError,
    checking_key,
    given_token,
    signing_key,
    write_key,
)
from client.admin.commands.options import Option, flag
from client.admin.commands.values import SECONDS
from client.admin.commands.verbs import Function, add, group
from limiter.clock import LoopClock

if TYPE_CHECKING:
    from collections.abc import Iterator

    from client.admin.commands.call import Call

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
    """Create a secret key that signs and checks tokens, in a file for its owner alone.

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
    """Create a private key that signs tokens and a public key that checks them, as DER.

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
    """Create a token, and print it.

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
    """Check the signature and the times of a token, and print its claims.

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
    """Print the header and the claims of a token, unchecked, without its signature.

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
    """Turn errors of keys and tokens into a sentence, and exit."""
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
