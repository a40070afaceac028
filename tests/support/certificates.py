"""PEM files of an authority, a server and clients, as an operator has them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trustme

if TYPE_CHECKING:
    from pathlib import Path

SERVER = "127.0.0.1"


class PemFiles:
    """An authority and the files it has written into a folder.

    Attributes:
        trust: Its own certificate.
        server: Certificate and key of 127.0.0.1.
    """

    def __init__(self, folder: Path, name: str = "ca") -> None:
        folder.mkdir(exist_ok=True)
        self._folder = folder
        self._authority = trustme.CA()
        self.trust = str(folder / f"{name}.pem")
        self._authority.cert_pem.write_to_path(self.trust)
        self.server = self.pair("server", SERVER)

    def pair(self, file: str, *names: str) -> tuple[str, str]:
        """Write a certificate for some names, and its key."""
        certificate, key = str(self._folder / f"{file}.pem"), str(self._folder / f"{file}.key")
        issued = self._authority.issue_cert(*names, common_name=names[0])
        issued.cert_chain_pems[0].write_to_path(certificate)
        issued.private_key_pem.write_to_path(key)
        return certificate, key

    def keys(self, **more: str) -> dict[str, str]:
        """Return configuration keys that name the server's files."""
        certificate, key = self.server
        return {"tlsCertificateFilePath": certificate, "tlsKeyFilePath": key, **more}
