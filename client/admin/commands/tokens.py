"""``floodgate-admin tokens``: keys and tokens, created and inspected without a server.

A secret is named by the file or the environment variable that holds it: all users of the machine
can read command lines.
"""

from __future__ import annotations

import base64
import json
import os
import re
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from client.admin.commands.call import EXIT_FAILED, EXIT_USAGE, PROGRAM, Call
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
from client.admin.commands.options import verb
from client.admin.commands.output import printable
from limiter.clock import LoopClock

if TYPE_CHECKING:
    from collections.abc import Iterator

tokens = typer.Typer(
    no_args_is_help=True,
    help="Keys and tokens: create and inspect them, without a broker.",
    epilog="""Examples:
floodgate-admin tokens create-secret-key --output my-secret.key
floodgate-admin tokens create --secret-key file:my-secret.key --subject ann
floodgate-admin tokens create-key-pair \\
  --output-private-key p.key --output-public-key pub.key
floodgate-admin tokens VERB --help""",
)

_RSA_BITS = 2048
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800, "y": 31_536_000}
_DURATION = re.compile(r"([0-9]{1,9})([smhdwy]?)", re.ASCII)

Secret = Annotated[
    str | None,
    typer.Option("--secret-key", "-sk", metavar="FILE", help="Secret key: file:PATH or env:NAME."),
]
Private = Annotated[
    str | None,
    typer.Option(
        "--private-key",
        "-pk",
        metavar="FILE",
        help="Private key, DER or PEM: file:PATH or env:NAME.",
    ),
]
Public = Annotated[
    str | None,
    typer.Option(
        "--public-key",
        "-pk",
        metavar="FILE",
        help="Public key, DER or PEM: file:PATH or env:NAME.",
    ),
]
Algorithm = Annotated[
    str | None,
    typer.Option(
        "--signature-algorithm", "-a", metavar="NAME", help="Algorithm: HS256, RS256, ES256, ..."
    ),
]
Shown = Annotated[
    str | None,
    typer.Option("--token-file", "-f", metavar="FILE", help="File with the token."),
]
Given = Annotated[
    str | None,
    typer.Option("--token", metavar="env:NAME", help="Token: env:NAME or file:PATH."),
]
FromInput = Annotated[
    bool, typer.Option("--stdin", "-i", help="Read the token from standard input.")
]


@verb(tokens, "create-secret-key")
def create_secret_key(
    call: Call,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="File to write.")
    ] = None,
    algorithm: Algorithm = "HS256",
    as_base64: Annotated[
        bool, typer.Option("--base64", "-b", help="Write the key as base64.")
    ] = False,
) -> None:
    """Create a secret key that signs and checks tokens, in a file for its owner alone.

    Examples:
    floodgate-admin tokens create-secret-key --output my-secret.key
    """
    with _sentences(call):
        size = SECRET_BYTES.get(algorithm or "")
        if size is None:
            names = ", ".join(SECRET_BYTES)
            raise KeyFileError(f"{algorithm!r:.40} is no algorithm of secrets: {names}")
        secret = os.urandom(size)
        write_key(output, base64.b64encode(secret) if as_base64 else secret)


@verb(tokens, "create-key-pair")
def create_key_pair(
    call: Call,
    private_key: Annotated[
        str, typer.Option("--output-private-key", metavar="FILE", help="File for the private key.")
    ],
    public_key: Annotated[
        str, typer.Option("--output-public-key", metavar="FILE", help="File for the public key.")
    ],
    algorithm: Algorithm = "RS256",
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
        write_key(private_key, private)
        write_key(public_key, public)


@verb(tokens, "create")
def create(  # noqa: PLR0913 - pulsar-admin's options
    call: Call,
    subject: Annotated[
        str, typer.Option("--subject", "-s", metavar="ROLE", help="Role of the token.")
    ],
    secret_key: Secret = None,
    private_key: Private = None,
    expiry_time: Annotated[
        str | None,
        typer.Option("--expiry-time", "-e", metavar="TIME", help="Lifetime: 1s, 10m, 5h, 3d, 2y."),
    ] = None,
    algorithm: Algorithm = None,
    headers: Annotated[
        list[str] | None,
        typer.Option("--headers", metavar="K=V", help="Header of the token. May be repeated."),
    ] = None,
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


@verb(tokens, "validate")
def validate(  # noqa: PLR0913 - pulsar-admin's options
    call: Call,
    secret_key: Secret = None,
    public_key: Public = None,
    algorithm: Algorithm = None,
    token_file: Shown = None,
    token: Given = None,
    stdin: FromInput = False,
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


@verb(tokens, "show")
def show(
    call: Call, token_file: Shown = None, token: Given = None, stdin: FromInput = False
) -> None:
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
    """Make a sentence of what is wrong with keys and tokens, and end."""
    import jwt

    try:
        yield
    except KeyFileError as error:
        _fail(call, str(error), error.status)
    except (jwt.PyJWTError, ValueError, TypeError, NotImplementedError) as error:
        _fail(call, str(error))


def _seconds(text: str) -> int:
    found = _DURATION.fullmatch(text)
    if found is None:
        raise KeyFileError(f"{text!r:.40} is no time: write 30s, 10m, 5h, 3d, 2w or 1y", EXIT_USAGE)
    return int(found[1]) * _UNITS[found[2] or "s"]


def _fail(call: Call, text: str, status: int = EXIT_FAILED) -> NoReturn:
    said = json.dumps({"error": text}) if call.as_json else f"{PROGRAM}: {printable(text)}"
    sys.stderr.write(f"{said}\n")
    raise typer.Exit(status)
