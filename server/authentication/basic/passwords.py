"""Password files in htpasswd's format, with the two kinds of hashes supported by Pulsar.

Source: upstream AuthenticationProviderBasic: ``$apr1$`` (htpasswd -m), else crypt (htpasswd -d).
"""

from __future__ import annotations

import ctypes
import ctypes.util
import hmac
from functools import cache
from hashlib import md5
from time import sleep
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

APR1 = "$apr1"
_ALPHABET = "./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_APR1_ROUNDS = 1000
_ROUNDS_A_TURN = 50
_APR1_ORDER = ((0, 6, 12), (1, 7, 13), (2, 8, 14), (3, 9, 15), (4, 10, 5))
CRYPT_LENGTH = 13
_NO_CRYPT = "this system's C library makes no crypt hashes: make them by htpasswd -m"


class PasswordFileError(Exception):
    """A password file is malformed.

    ``str()`` names the line and contains no hash.
    """


def read_passwords(text: str) -> dict[str, str]:
    """Return the password hash of each user in the text of a password file.

    Raises:
        PasswordFileError: A line is not ``user:hash``, or has an unsupported hash.
    """
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        user, colon, hashed = line.strip().partition(":")
        if not colon or not user or ":" in hashed:
            raise PasswordFileError(f"line {number} is not user:hash")
        if not _is_apr1(hashed) and not _is_crypt(hashed):
            raise PasswordFileError(
                f"line {number}: the hash of {user!r:.60} is neither $apr1$ nor crypt, and Pulsar "
                "takes no other: make it by htpasswd -m"
            )
        if _is_crypt(hashed) and not _is_crypt(_crypt(b"", hashed)):
            raise PasswordFileError(_NO_CRYPT)  # Some C libraries omit DES.
        found[user] = hashed
    return found


def is_password(password: bytes, hashed: str) -> bool:
    """Return True if ``hashed`` is a hash of the password."""
    made = apr1(password, hashed.split("$")[2]) if _is_apr1(hashed) else _crypt(password, hashed)
    return hmac.compare_digest(made.encode(), hashed.encode())


def _is_apr1(hashed: str) -> bool:
    return hashed.startswith(f"{APR1}$") and hashed.count("$") == 3 and hashed.isascii()


def _is_crypt(hashed: str) -> bool:
    return len(hashed) == CRYPT_LENGTH and all(one in _ALPHABET for one in hashed)


def apr1(password: bytes, salt: str) -> str:
    """Return the password's hash in Apache's ``$apr1$`` format (MD5), which Python's library lacks.

    Source: Apache Portable Runtime, apr_md5_encode.
    """
    salt = salt[:8]
    salted = salt.encode()
    inner = md5(password + salted + password, usedforsecurity=False).digest()
    start = password + b"$apr1$" + salted
    start += (inner * (len(password) // 16 + 1))[: len(password)]
    length = len(password)
    while length:
        start += b"\0" if length & 1 else password[:1]
        length >>= 1
    digest = md5(start, usedforsecurity=False).digest()
    for turn in range(_APR1_ROUNDS):
        if not turn % _ROUNDS_A_TURN:
            sleep(0)  # Yields the interpreter to the event loop, which would not get it otherwise.
        first, last = (password, digest) if turn & 1 else (digest, password)
        middle = (salted if turn % 3 else b"") + (password if turn % 7 else b"")
        digest = md5(first + middle + last, usedforsecurity=False).digest()
    words = [(digest[a] << 16 | digest[b] << 8 | digest[c], 4) for a, b, c in _APR1_ORDER]
    words.append((digest[11], 2))
    return f"$apr1${salt}$" + "".join(_letters(*word) for word in words)


def _letters(word: int, count: int) -> str:
    return "".join(_ALPHABET[word >> (6 * place) & 63] for place in range(count))


def _crypt(password: bytes, hashed: str) -> str:
    """Return the password's hash in crypt's DES format, with the salt of ``hashed``."""
    made = _crypt_of_system()(password.split(b"\0")[0], hashed[:2].encode())
    return made.decode("ascii", "replace") if made else ""


@cache
def _crypt_of_system() -> Callable[[bytes, bytes], bytes | None]:
    library = ctypes.util.find_library("crypt")
    try:
        function = ctypes.CDLL(library).crypt
    except (OSError, AttributeError):
        raise PasswordFileError(_NO_CRYPT) from None
    function.argtypes, function.restype = (ctypes.c_char_p, ctypes.c_char_p), ctypes.c_char_p
    crypt: Callable[[bytes, bytes], bytes | None] = function
    return crypt
