"""Loading of secrets and keys from the files or environment variables that settings name.

A value is ``file:///path``, a path, ``env:NAME`` (Floodgate's own), ``data:;base64,...`` or base64.
"""

from __future__ import annotations

import base64
import binascii
import os
import re
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote, unquote_to_bytes, urlsplit

_FILE, _VARIABLE, _DATA = "file:", "env:", "data:"
MAX_KEY_BYTES = 1024 * 1024
"""Most bytes read: more than any key has, and than a password file of ten thousand users."""
PLACES = (_FILE, _VARIABLE)
"""Prefixes of a value that refers to a source of any content."""
_PLACES = (*PLACES, "/")
_LIKE_A_PATH = re.compile(r"/[A-Za-z0-9+/]{30,}={0,2}")
"""Base64 that begins with a slash, as a 64th of all secrets do."""
_URL_WITH_PASSWORD = re.compile(r"://[^/?#@]*:[^@]+@|[?&]\w*password=[^&]", re.IGNORECASE)


class KeySourceError(Exception):
    """A secret or key cannot be read.

    ``str()`` is the reason, without any of its content.
    """


def is_literal(source: str) -> bool:
    """Return True if a value is itself a secret, rather than the place of one."""
    text = source.strip()
    is_place = text.startswith(_PLACES) and not _LIKE_A_PATH.fullmatch(text)
    return bool(text) and not is_place and not _is_path(text)


def _is_path(text: str) -> bool:
    """Return True if a file with this name exists; False if the name is invalid or too long."""
    # Not pathlib's, which raises for a key of more than 255 characters, with the key in the
    # message.
    return os.path.exists(text)


def has_password(url: str) -> bool:
    """Return True if a URL contains a password."""
    return _URL_WITH_PASSWORD.search(url) is not None


def read_source(source: str) -> bytes:
    """Return the content of the file or variable that a value names, or the decoded value.

    Raises:
        KeySourceError: The source cannot be read.

    Source: upstream AuthTokenUtils.readKeyFromUrl.
    """
    text = source.strip()
    if text.startswith(_VARIABLE):
        return _variable(text.removeprefix(_VARIABLE))
    if text.startswith(_DATA):
        return _data(text)
    path = Path(unquote(urlsplit(text).path) if text.startswith(_FILE) else text)
    if _LIKE_A_PATH.fullmatch(text) and not _is_path(text):
        # Neither shown nor accepted: a missing file's path would become a publicly known key.
        raise KeySourceError(
            "there is no such file; write a base64 secret that begins with / as data:;base64,SECRET"
        )
    if text.startswith(_PLACES) or _is_path(text):
        return _file(path)
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise KeySourceError("it is neither a file nor base64: write file:///path") from None


def read_key(source: str, *, may_be_pem: bool) -> bytes:
    """Return the bytes of a key, from the place that a configuration value names.

    An environment variable that holds plain text, such as a path, is refused.

    Args:
        source: See ``read_source``.
        may_be_pem: A variable may contain PEM, too.

    Raises:
        KeySourceError: The key cannot be read.
    """
    if not source.strip().startswith(_VARIABLE):
        return read_source(source)
    name = source.strip().removeprefix(_VARIABLE)
    text = _held(name).strip()
    if text.startswith(_DATA):
        return _data(text)
    if may_be_pem and text.startswith("-----BEGIN"):
        return text.encode()
    if not text.startswith(_PLACES) and not _is_path(text):
        with suppress(binascii.Error, ValueError):
            return base64.b64decode(text, validate=True)
    raise KeySourceError(
        f"the environment variable {name!r:.80} holds a text and no key: put the key there as "
        "data:;base64,..., or name its file here as file:///path"
    )


def _variable(name: str) -> bytes:
    return _decoded(_held(name))


def _held(name: str) -> str:
    text = os.environ.get(name)
    if text is None:
        raise KeySourceError(f"there is no environment variable {name!r:.80}")
    return text


def _decoded(text: str) -> bytes:
    """Decode an environment variable's text: a data URL, base64, or else plain text as bytes."""
    if text.startswith(_DATA):
        return _data(text)
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return text.encode()


def _file(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            found = file.read(MAX_KEY_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "no path"
        raise KeySourceError(f"{str(path)!r:.200} cannot be read: {reason}") from None
    if len(found) > MAX_KEY_BYTES:
        raise KeySourceError(f"{str(path)!r:.200} has more than {MAX_KEY_BYTES} bytes")
    return found


def _data(url: str) -> bytes:
    head, comma, body = url.partition(",")
    if not comma:
        raise KeySourceError("a data URL without a comma: write data:;base64,...")
    if not head.endswith(";base64"):
        return unquote_to_bytes(body)
    try:
        return base64.b64decode(unquote(body), validate=True)
    except (binascii.Error, ValueError):
        raise KeySourceError("a data URL whose base64 is broken") from None
