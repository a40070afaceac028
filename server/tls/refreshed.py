"""Contexts that are made again when their files change: a new certificate needs no restart.

Files that cannot be used change nothing: the certificates in force stay, one line of the log says
so, and a counter. The files are looked at when a connection comes, at most once in
tlsCertRefreshCheckDurationSec; those that could not be used are tried again each time, as it may
have been for want of descriptors.
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
    """Certificates or keys cannot be used; the message names key, file and reason."""


class RefreshedContext:
    """The context of the files as they are.

    Args:
        make: Makes it of the files, or raises TlsFilesError.
        files: Those that are looked at.
        refresh_seconds: The least time between two looks; below 0: never again.
        clock: Where time comes from.

    Attributes:
        expires_at: When the first of its own certificates expires, in seconds since 1970; None
            if it has none.
        refreshed_total: Times that it was made again.
        failed_total: Times that the files had changed and could not be used.

    Raises:
        TlsFilesError: They cannot be used now.
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
        """Return the context for a connection that comes now."""
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
        # A file may go while it is read, and what is raised here would end the listener.
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
        """Return what changes with the files: a new one has another inode, length or time."""
        return tuple(_mark(Path(path)) for path in self._files.named().values())


def _mark(path: Path) -> tuple[int, ...] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def first_expiry(path: str) -> float | None:
    """Return when the first certificate of a PEM file expires; None without a file.

    OpenSSL may take a file that is stricter read here: then nobody knows.
    """
    if not path:
        return None
    # Takes 14 MB and 50 ms, and is imported only where there are certificates.
    from cryptography.x509 import load_pem_x509_certificates

    try:
        found = load_pem_x509_certificates(Path(path).read_bytes())
    except (OSError, ValueError):
        return None
    return min(one.not_valid_after_utc.timestamp() for one in found)
