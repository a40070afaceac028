"""Import of topics at run time, a path of Floodgate's own."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from aiohttp import web

from broker.columns import EXTRA
from broker.stores.changes import StoreError
from limiter.extras import SERVERS, MissingExtraError, extra
from proto.parquet_folders import parquet_files
from server.http import RestError

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.stores.store import MetadataStore

IMPORT_PATH = "/admin/v2/floodgate/import"
_OFF = "imports at run time are off: set floodgateImportDirectory to a folder they may read"
_MAX_BODY_BYTES = 65_536
"""Largest body: a longer body is cut, and refused, as many members would hold the event loop."""


class ImportRequest(NamedTuple):
    """The body of an import: a file or folder on the broker's machine.

    Attributes:
        path: The file or folder.
        skip_invalid: Whether invalid topics are left out; otherwise an invalid topic fails the
            import.
    """

    path: Path
    skip_invalid: bool


def import_routes(
    store: Callable[[], MetadataStore], allowed: Path | None
) -> list[web.AbstractRouteDef]:
    """Return the routes.

    Args:
        store: Returns the store of the topics.
        allowed: floodgateImportDirectory, the only readable folder; None refuses all imports.
    """
    under_way: dict[str, int] = {}

    async def show(_: web.Request) -> web.Response:
        return web.json_response(under_way)

    async def import_from_path(request: web.Request) -> web.Response:
        asked = _asked(await request.read())
        if allowed is None:
            raise RestError(403, _OFF)
        try:
            with extra(EXTRA, SERVERS):
                from broker.imports.importer import ImportFailedError, import_topics
        except MissingExtraError as error:
            raise RestError(412, f"imports cannot run here: {error}") from None
        path = await asyncio.to_thread(_inside, allowed, asked.path)
        progress = partial(under_way.__setitem__, str(path))
        progress(0)
        try:
            result = await import_topics(store(), path, progress, skip_invalid=asked.skip_invalid)
        except ImportFailedError as error:
            raise RestError(412, str(error)) from None
        except StoreError as error:
            raise RestError(500, str(error)) from None
        finally:
            under_way.pop(str(path), None)
        return web.json_response(
            {
                "topics": result.topics,
                "namespaces": result.namespaces,
                "seconds": result.seconds,
                "skipped": result.skipped,
            }
        )

    return [web.get(IMPORT_PATH, show), web.post(IMPORT_PATH, import_from_path)]


def _asked(body: bytes) -> ImportRequest:
    try:
        asked = json.loads(body[:_MAX_BODY_BYTES])
    except (ValueError, RecursionError):
        asked = None
    given = {"skipInvalid": False, **asked} if isinstance(asked, dict) else {}
    path, skip_invalid = given.get("path"), given.get("skipInvalid")
    if len(given) == 2 and isinstance(path, str) and isinstance(skip_invalid, bool):
        return ImportRequest(Path(path), skip_invalid)
    raise RestError(
        412,
        'the body should be {"path": "/folder/or/file"}, with "skipInvalid": true to leave '
        "invalid topics out",
    )


def _inside(allowed: Path, path: Path) -> Path:
    """Resolve a path, which must lie in ``allowed``; slow for large folders."""
    try:
        resolved, root = path.resolve(), allowed.resolve()
        # Links out of the folder would be read like files.
        if resolved.is_relative_to(root) and all(
            file.resolve().is_relative_to(root) for file in parquet_files(resolved)
        ):
            return resolved
    except (OSError, ValueError, RuntimeError):  # a NUL byte, or a circle of links
        raise RestError(412, f"{str(path)!r} is not a file name") from None
    raise RestError(403, f"{path} does not lie in floodgateImportDirectory={allowed}")
