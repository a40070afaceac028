"""PEM files of an authority, a server and clients, as operators have them."""

from datetime import datetime
from pathlib import Path

import trustme
from cryptography.hazmat.primitives import serialization

SERVER = "127.0.0.1"


class PemFiles:
    """An authority and its files in a folder.

    Attributes:
        trust: The authority's certificate.
        server: Certificate and key of 127.0.0.1, localhost to Java clients.
    """

    def __init__(self, folder: Path, name: str = "ca") -> None:
        folder.mkdir(exist_ok=True)
        self._folder = folder
        self._authority = trustme.CA()
        self.trust = str(folder / f"{name}.pem")
        self._authority.cert_pem.write_to_path(self.trust)
        self.server = self.pair("server", SERVER, "localhost")

    def pair(self, file: str, *names: str, until: datetime | None = None) -> tuple[str, str]:
        """Write a certificate for names, and its key; ``until`` is the expiry."""
        certificate, key = str(self._folder / f"{file}.pem"), str(self._folder / f"{file}.key")
        issued = self._authority.issue_cert(*names, common_name=names[0], not_after=until)
        issued.cert_chain_pems[0].write_to_path(certificate)
        Path(key).write_bytes(_as_java_reads_it(issued.private_key_pem.bytes()))
        return certificate, key

    def keys(self, **more: str) -> dict[str, str]:
        certificate, key = self.server
        return {"tlsCertificateFilePath": certificate, "tlsKeyFilePath": key, **more}


def _as_java_reads_it(key: bytes) -> bytes:
    """Return a private key as PKCS #8, readable by OpenSSL too."""
    return serialization.load_pem_private_key(key, None).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
