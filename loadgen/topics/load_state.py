"""The state of a load, in a file beside what is loaded: where it goes on if it is killed.

The file is gone when the load is complete. Whatever it says, nothing is lost: what it does not know
to be loaded is loaded again, and what exists is as good as created.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from loadgen.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA_VERSION = 1
SAVE_SECONDS = 1.0


class LoadState:
    """The part of one source that is in one server.

    Bound: the numbers of topics beyond the first that is not in, which are as many as are under
    way.

    Args:
        source: What is loaded.
        admin_url: Where to; without a password.
        way: How: files that are imported, or topics created one by one.
        resume: Take over what an earlier load of the same source into the same server has done;
            else that is forgotten.

    Attributes:
        files: Names of the files that are in.
        topics: So many topics, from the first on, are in.

    Raises:
        UsageError: What is there to resume is of another load, or no such file.
    """

    def __init__(self, source: Path, admin_url: str, way: str, *, resume: bool = False) -> None:
        self.path = source.resolve().with_name(f".{source.resolve().name}.loading.json")
        self._of: dict[str, Any] = {"schema_version": SCHEMA_VERSION, "way": way}
        self._of |= {"source": _fingerprint(source), "admin_url": admin_url}
        self._saved_at = 0.0
        self._beyond: set[int] = set()
        self.files: set[str] = set()
        self.topics = 0
        if not resume:
            self.forget()
        elif self.path.exists():
            self._take_over()

    def _take_over(self) -> None:
        try:
            content = json.loads(self.path.read_text(encoding="utf-8"))
            self.files, self.topics = set(content["files"]), int(content["topics"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            said = f"{self.path} cannot be read ({error})"
            raise UsageError(f"{said}: load without --resume") from None
        for name, value in self._of.items():
            if (other := content.get(name)) != value:
                said = f"{self.path} is of a load with another {name.replace('_', ' ')}"
                raise UsageError(f"{said} ({str(other)[:80]!r}): load without --resume")

    def file_done(self, name: str) -> None:
        """Note that a file is in."""
        self.files.add(name)
        self.save()

    def topic_done(self, number: int) -> None:
        """Note that a topic is in, in any order; written about once a second."""
        self._beyond.add(number)
        while self.topics in self._beyond:
            self._beyond.remove(self.topics)
            self.topics += 1
        if time.monotonic() - self._saved_at >= SAVE_SECONDS:
            self.save()

    def save(self) -> None:
        """Write the file, which is whole at every moment; where nothing may be written, do not."""
        if not os.access(self.path.parent, os.W_OK):
            return
        content = {**self._of, "files": sorted(self.files), "topics": self.topics}
        unfinished = self.path.with_name(f"{self.path.name}.{os.getpid()}")
        unfinished.write_text(f"{json.dumps(content)}\n", encoding="utf-8")
        unfinished.replace(self.path)
        self._saved_at = time.monotonic()

    def forget(self) -> None:
        """Remove the file: the load is complete, or begins anew."""
        with suppress(PermissionError):
            self.path.unlink(missing_ok=True)


def _fingerprint(source: Path) -> str:
    """Return what tells this source from another one, or from itself when it was changed."""
    files = sorted(source.glob("*.parquet")) if source.is_dir() else [source]
    stats = [file.stat() for file in files]
    changed = max((stat.st_mtime_ns for stat in stats), default=0)
    return f"{len(files)} files, {sum(stat.st_size for stat in stats)} bytes, {changed}"
