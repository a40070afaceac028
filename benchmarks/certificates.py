"""Certificates of TLS servers on the loopback, for one benchmark."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trustme

if TYPE_CHECKING:
    from pathlib import Path


def write_certificates(folder: Path) -> tuple[Path, Path]:
    """Write the certificate of an authority, and one for 127.0.0.1 with its key."""
    authority, certificate = folder / "authority.pem", folder / "server.pem"
    made = trustme.CA()
    made.cert_pem.write_to_path(authority)
    made.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(certificate)
    return authority, certificate
