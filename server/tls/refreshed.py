"""TLS contexts that are reloaded, without a restart, when the certificate files change.

Unusable files change nothing: the effective certificates stay, with an error in the log and a
counter. The files are checked for new connections, at most once in tlsCertRefreshCheckDurationSec;
unusable files are retried each time, as the cause may have been a lack of descriptors.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

from server.errors import StartError

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from limiter.clock import Clock
    from server.tls.settings import TlsFiles

logger = logging.getLogger(__name__)


class TlsFilesError(StartError):
    """A certificate or key file cannot be used; the message names key, file and reason."""


class RefreshedContext:
    """A TLS context that is made again whenever the certificate files change.

    Args:
        make: Makes the context from the files, or raises TlsFilesError.
        files: The watched files.
        refresh_seconds: The least time between two checks; below 0: no checks.
        clock: The source of time.

    Attributes:
        expires_at: Earliest expiry of the certificates that are shown to peers, in seconds since
            1970; None without certificates.
        refreshed_total: Number of reloads.
        failed_total: Number of changes to unusable files.

    Raises:
        TlsFilesError: The files cannot be used now.
    """

    def __init__(
        self,
        make: Callable[[], ssl.SSLContext],
        files: TlsFiles,
        refresh_seconds: int,
        clock: Clock,
    ) -> None:
        self._make = make
        self._files = files
        self._refresh_seconds = refresh_seconds
        self._clock = clock
        self._used = self._marks()
        self._told = self._used
        self._context = make()
        self.expires_at = first_expiry(files.certificate)
        self._looked_at = clock.now()
        self.refreshed_total = 0
        self.failed_total = 0

    def current(self) -> ssl.SSLContext:
        """Return the TLS context for a new connection; reload changed files if a check is due."""
        now = self._clock.now()
        if 0 <= self._refresh_seconds <= now - self._looked_at:
            self._looked_at = now
            self._look()
        return self._context

    def _look(self) -> None:
        marks = self._marks()
        if marks == self._used:
            return
        try:
            self._context = self._make()
        # A file may be removed while it is read, and an uncaught error would end the listener.
        except (TlsFilesError, OSError, ValueError) as error:
            if marks != self._told:
                self._told = marks
                self.failed_total += 1
                logger.error("changed certificates are not used, the old ones stay: %s", error)
        else:
            self._used = self._told = marks
            self.expires_at = first_expiry(self._files.certificate)
            self.refreshed_total += 1
            paths = ", ".join(self._files.named().values())
            logger.info("certificates were read again: %s", paths)

    def _marks(self) -> tuple[object, ...]:
        """Return values by which a replaced file is noticed: inode, length and time."""
        return tuple(_mark(Path(path)) for path in self._files.named().values())


def _mark(path: Path) -> tuple[int, ...] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def first_expiry(path: str) -> float | None:
    """Return the earliest expiry of the certificates in a PEM file, in seconds since 1970.

    The result is None without a file, and for a file that OpenSSL accepts but the stricter parser
    used here refuses.
    """
    if not path:
        return None
    # Takes 14 MB and 50 ms, so imported only if a certificate is configured.
    try:
        from cryptography.x509 import load_pem_x509_certificates
    except ModuleNotFoundError:
        return None  # the extra `security` brings it
    try:
        found = load_pem_x509_certificates(Path(path).read_bytes())
    except (OSError, ValueError):
        return None
    return min(one.not_valid_after_utc.timestamp() for one in found)
