"""The progress of loading topics, saved in a file beside them so that it can be resumed.

The file is deleted when the load is complete. An outdated file loses no topic: items that it does
not have are loaded again, and topics that already exist count as created.
"""

from __future__ import annotations

import json
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from loadgen.errors import LoadgenError, UsageError
from loadgen.stored import written_whole

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA_VERSION = 2
SAVE_SECONDS = 1.0


class LoadState:
    """The saved progress of loading topics into a server during a ``with`` block.

    Bound: the numbers of items that are done although an earlier one is not, as many as are in
    flight.

    Args:
        source: The path of the topics to load.
        admin_url: The URL of the server's web port, without a password.
        way: How the topics are loaded: by import of files, or by creation one by one.
        resume: Continue an earlier load of the same source into the same server;
            otherwise the earlier state is deleted.

    Attributes:
        done: Number of items (files, or topics), counted from the first, that are all loaded.

    Raises:
        UsageError: The saved progress is that of another load, or unreadable.
    """

    def __init__(self, source: Path, admin_url: str, way: str, *, resume: bool = False) -> None:
        self.path = source.resolve().with_name(f".{source.resolve().name}.loading.json")
        self._of = {"schema_version": SCHEMA_VERSION, "way": way, "admin_url": admin_url}
        self._of["source"] = _fingerprint(source)
        self._saved_at = 0.0
        self._beyond: set[int] = set()
        self.done = 0
        if not resume:
            self._forget()
        elif self.path.exists():
            self.done = self._done_before()

    def _done_before(self) -> int:
        try:
            content = json.loads(self.path.read_text(encoding="utf-8"))
            other = [name for name, value in self._of.items() if content[name] != value]
            if not other:
                return int(content["done"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            said = f"{self.path} cannot be read ({error})"
            raise UsageError(f"{said}: load again without --resume") from None
        said = f"{self.path} is of a load with another {other[0].replace('_', ' ')}"
        raise UsageError(f"{said} ({str(content[other[0]])[:80]!r}): load again without --resume")

    def item_done(self, number: int) -> None:
        """Record that an item is loaded; save the progress about once a second."""
        self._beyond.add(number)
        while self.done in self._beyond:
            self._beyond.remove(self.done)
            self.done += 1
        if time.monotonic() - self._saved_at >= SAVE_SECONDS:
            self._save()

    def __enter__(self) -> LoadState:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._forget() if kind is None else self._save()

    def _save(self) -> None:
        """Write the progress to its file; do nothing if the folder is read-only."""
        if self.done:
            with suppress(OSError, LoadgenError), written_whole(self.path) as file:
                file.write(f"{json.dumps({**self._of, 'done': self.done})}\n".encode())
            self._saved_at = time.monotonic()

    def _forget(self) -> None:
        with suppress(OSError, LoadgenError):
            self.path.unlink(missing_ok=True)


def _fingerprint(source: Path) -> str:
    """Return a text that differs for other source files and after a change of the files."""
    files = sorted(source.glob("*.parquet")) if source.is_dir() else [source]
    stats = [file.stat() for file in files]
    changed = max((stat.st_mtime for stat in stats), default=0)
    return f"{len(files)} files, {sum(stat.st_size for stat in stats)} bytes, {changed}"
