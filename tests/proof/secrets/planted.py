"""The planted secrets, as files and words, and every form to search for."""

import base64
import hashlib
import hmac
import json
import time
from pathlib import Path
from urllib.parse import quote

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from tests.support.certificates import PemFiles

_LEAST_BYTES = 12
"""A part of a secret of this length is a find."""


class Planted:
    """Secrets by name, all distinctive, and their files.

    Args:
        folder: Folder of the files; excluded from the search.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.words = {
            name: f"Planted{hashlib.sha256(name.encode()).hexdigest()}"
            for name in (
                "secret-key", "password", "wrong-password", "database-password", "in-a-query",
                "in-a-header", "in-a-setting", "in-an-option", "in-a-broken-line", "in-a-url",
                "in-garbage", "original", "in-a-hash",
                "in-a-variable",
            )
        }  # fmt: skip
        self.secret_key = self.file("secret.key", self.words["secret-key"])
        self.passwords = self.file("passwords", "")
        pair = rsa.generate_private_key(65_537, 2048)
        private = pair.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
        self.private_key = self.file("private.pem", private)
        self.words["private-key"] = private.splitlines()[10]
        public = pair.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        self.public_key = folder / "public.der"
        self.public_key.write_bytes(public)
        self.pem = PemFiles(folder / "pem")
        self.words["tls-key"] = self._line_of(self.pem.server[1])
        self.tokens: dict[str, str] = {}
        for role, seconds in (("admin", 3600), ("gate", 3600), ("late", -3600), ("soon", 3)):
            self.token(role, seconds)

    def file(self, name: str, content: str) -> Path:
        path = self.folder / name
        path.write_text(content, encoding="utf-8")
        return path

    def token(self, role: str, seconds: float) -> str:
        """Make a token, and its file with the role's name; its signature is a secret."""
        claims = {"sub": role, "exp": int(time.time() + seconds)}
        said = ".".join(_base64url(json.dumps(one).encode()) for one in ({"alg": "HS256"}, claims))
        key = self.words["secret-key"].encode()
        signature = _base64url(hmac.digest(key, said.encode(), "sha256"))
        self.words[f"token-of-{role}-{len(self.words)}"] = signature
        self.tokens[role] = f"{said}.{signature}"
        self.file(f"{role}.jwt", self.tokens[role])
        return self.tokens[role]

    def where(self, role: str) -> str:
        """Return the reference to a token."""
        return f"file:{self.folder / role}.jwt"

    def forms(self) -> dict[bytes, str]:
        """Return the searched forms with their secret's name."""
        found: dict[bytes, str] = {}
        for name, word in self.words.items():
            plain = word.encode()
            found[plain] = name
            found[quote(word, safe="").encode()] = name
            found[plain.hex().encode()] = name
            # Within other text base64 begins at one of three offsets.
            for shift in range(3):
                coded = base64.b64encode(b"x" * shift + plain)
                found[coded[4 if shift else 0 : -4]] = name
            # Also truncated: a log's excerpt is a find as well.
            found[plain[: _LEAST_BYTES + len("Planted")]] = name
            found[plain[-_LEAST_BYTES:]] = name
        return found

    @staticmethod
    def _line_of(file: str) -> str:
        with open(file, encoding="utf-8") as lines:
            return lines.read().splitlines()[2]


def _base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
