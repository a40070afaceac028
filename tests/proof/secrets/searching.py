"""The search for secrets: in files, in answers, and in the processes of this machine."""

import os
import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Self

_LOOK_SECONDS = 0.02
_SHOWN_BYTES = 60


class Search:
    """The finds so far, each with its place.

    Args:
        forms: The searched forms with their secret's name.

    Attributes:
        bytes_searched: Number of bytes.
        places: Number of places.
        finds: Sentences.
    """

    def __init__(self, forms: Mapping[bytes, str]) -> None:
        self._forms = forms
        self._any = re.compile(b"|".join(sorted(map(re.escape, forms), key=len, reverse=True)))
        self.bytes_searched = 0
        self.places = 0
        self.finds: list[str] = []

    def text(self, place: str, content: bytes, but: str = "") -> None:
        """Search a text, for all secrets but one."""
        self.places += 1
        self.bytes_searched += len(content)
        for found in {match.group(): match for match in self._any.finditer(content)}.values():
            if self._forms[found.group()] == but:
                continue
            start = max(0, found.start() - _SHOWN_BYTES)
            before = content[start : found.start()].decode("utf-8", "replace")
            self.finds.append(f"{place}: {self._forms[found.group()]} behind {before!r}")

    def folder(self, folder: Path, but: Iterable[Path]) -> None:
        """Search every file of a folder, except secret files."""
        left_out = set(but)
        for path in sorted(folder.rglob("*")):
            if path.is_file() and left_out.isdisjoint((path, *path.parents)):
                self.text(str(path.relative_to(folder)), path.read_bytes())


class ProcessWatch:
    """Reads command lines and environments of all descendant processes repeatedly.

    Attributes:
        seen: The texts, by process name and kind.
    """

    def __init__(self) -> None:
        self.seen: dict[tuple[str, bytes], None] = {}
        self._over = threading.Event()
        self._paused = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Pause for a block: a user's own command line is not a leak of ours."""
        self._paused.set()
        try:
            yield
        finally:
            self._paused.clear()

    def _watch(self) -> None:
        while not self._over.wait(_LOOK_SECONDS):
            if self._paused.is_set():
                continue
            for pid in _below(os.getpid()):
                for kind in ("cmdline", "environ"):
                    try:
                        content = Path(f"/proc/{pid}/{kind}").read_bytes()
                    except OSError:
                        continue  # ended
                    self.seen[kind, content] = None


def _below(root: int) -> list[int]:
    """Return the descendants of a process, without it."""
    parents: dict[int, int] = {}
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                stat = Path(f"/proc/{entry.name}/stat").read_text(encoding="utf-8")
            except (OSError, ValueError):
                continue
            parents[int(entry.name)] = int(stat.rpartition(")")[2].split()[1])
    below = {root}
    grown = True
    while grown:
        children = {pid for pid, parent in parents.items() if parent in below}
        grown = not children <= below
        below |= children
    return sorted(below - {root})
