"""Imports at the broker's start (``--import``), once for each file.

The store remembers the content of completely imported files. A restart with the same file leaves
topics alone that were deleted or changed since. An interrupted import is repeated, and adds missing
topics.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from typing import TYPE_CHECKING

from broker.imports.files import files_of, state_of, unreadable
from broker.imports.importer import ImportFailedError, import_topics
from broker.stores.changes import StoreError
from server.errors import StartError

if TYPE_CHECKING:
    from pathlib import Path

    from broker.stores.store import MetadataStore
    from server.imports import Imports

logger = logging.getLogger(__name__)


async def import_at_start(store: MetadataStore, imports: Imports) -> None:
    """Import files not imported before.

    Raises:
        StartError: A file cannot be imported, or the store failed.
    """
    for path in imports.paths:
        try:
            await _import(store, path, imports)
        except (ImportFailedError, StoreError) as error:
            raise StartError(f"--import: {error}") from None


async def _import(store: MetadataStore, path: Path, imports: Imports) -> None:
    # Taken before the content, so that the remembered content is the imported content.
    state = await asyncio.to_thread(state_of, path)
    content = await asyncio.to_thread(fingerprint, path)
    if not imports.again and await store.has_imported(content):
        logger.info(
            "%s was imported before and is left out, so that what was changed since stays; "
            "--import-again imports it again",
            path,
        )
        return
    logger.info("imports %s; all of it is checked first", path)
    result = await import_topics(store, path, skip_invalid=imports.skip_invalid, state=state)
    for line in result.report.splitlines():
        logger.warning("--skip-invalid: %s", line.strip())
    await store.remember_import(content)
    logger.info(
        "imported %d topics of %d namespaces from %s in %.1f s",
        result.topics,
        result.namespaces,
        path,
        result.seconds,
    )


def fingerprint(path: Path) -> str:
    """Return a digest of the content of a file, or of a folder's files in order.

    Raises:
        ImportFailedError: A file is missing or unreadable.
    """
    digest = hashlib.sha256()
    for file in files_of(path):
        try:
            with file.open("rb") as content:
                digest.update(hashlib.file_digest(content, "sha256").digest())
        except OSError as error:
            raise unreadable(file, error) from None
    return digest.hexdigest()
