"""The state of a load, in a file beside what is loaded: where it goes on if it is killed.

The file is gone when the load is complete. Whatever it says, nothing is lost: what it does not know
to be loaded is loaded again, and what exists is as good as created.
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
    """How much of one source is in one server; a block that does the load ends with it.

    Bound: the numbers of items beyond the first that is not in, which are as many as are under way.

    Args:
        source: What is loaded.
        admin_url: Where to; without a password.
        way: How: files that are imported, or topics created one by one.
        resume: Take over what an earlier load of the same source into the same server has done;
            else that is forgotten.

    Attributes:
        done: So many items (files, or topics), from the first on, are in.

    Raises:
        UsageError: What is there to resume is of another load, or no such file.
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
            raise UsageError(f"{said}: load without --resume") from None
        said = f"{self.path} is of a load with another {other[0].replace('_', ' ')}"
        raise UsageError(f"{said} ({str(content[other[0]])[:80]!r}): load without --resume")

    def item_done(self, number: int) -> None:
        """Note that an item is in, in any order; written about once a second."""
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
        """Write the file, which is whole at every moment; where nothing may be written, do not."""
        if self.done:
            with suppress(OSError, LoadgenError), written_whole(self.path) as file:
                file.write(f"{json.dumps({**self._of, 'done': self.done})}\n".encode())
            self._saved_at = time.monotonic()

    def _forget(self) -> None:
        with suppress(OSError, LoadgenError):
            self.path.unlink(missing_ok=True)


def _fingerprint(source: Path) -> str:
    """Return what tells this source from another one, or from itself when it was changed."""
    files = sorted(source.glob("*.parquet")) if source.is_dir() else [source]
    stats = [file.stat() for file in files]
    changed = max((stat.st_mtime for stat in stats), default=0)
    return f"{len(files)} files, {sum(stat.st_size for stat in stats)} bytes, {changed}"
