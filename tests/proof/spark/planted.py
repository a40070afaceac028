"""Secrets of a cluster: tokens in files, and the search for them in all output and processes."""

import base64
import hmac
import json
import os
import re
import threading
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Self
from urllib.parse import quote

_KEY = "Planted" + "9f86d081884c7d659a2feaa0c55ad015" * 2
_LEAST_BYTES = 12
"""A part of a secret of this length is a find."""
_LOOK_SECONDS = 0.02
_SHOWN_BYTES = 60


class Planted:
    """A key, and tokens that it signed, as files.

    Args:
        folder: Folder of the files; excluded from the search.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.secret_key = folder / "secret.key"
        self.secret_key.write_text(_KEY, encoding="utf-8")
        self._words = {"the key": _KEY}
        for role in ("admin", "gate"):
            claims = {"sub": role, "exp": int(time.time() + 3600)}
            parts = ({"alg": "HS256"}, claims)
            said = ".".join(_base64url(json.dumps(one).encode()) for one in parts)
            signature = _base64url(hmac.digest(_KEY.encode(), said.encode(), "sha256"))
            self._words[f"the token of {role}"] = signature
            (folder / f"{role}.jwt").write_text(f"{said}.{signature}", encoding="utf-8")

    def where(self, role: str) -> str:
        """Return the reference to a token."""
        return f"file:{self.folder / role}.jwt"

    def forms(self) -> dict[bytes, str]:
        """Return the searched forms with their secret's name."""
        found: dict[bytes, str] = {}
        for name, word in self._words.items():
            plain = word.encode()
            found |= dict.fromkeys(
                (plain, quote(word, safe="").encode(), plain.hex().encode()), name
            )
            # Within other text base64 begins at one of three offsets.
            for shift in range(3):
                base = base64.b64encode(b"x" * shift + plain)
                found[base[4 if shift else 0 : -4]] = name
            # Also truncated: a log's excerpt is a find as well.
            found[plain[: _LEAST_BYTES + len("Planted")]] = name
            found[plain[-_LEAST_BYTES:]] = name
        return found


def _base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


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

    def text(self, place: str, content: bytes) -> None:
        self.places += 1
        self.bytes_searched += len(content)
        for found in {match.group(): match for match in self._any.finditer(content)}.values():
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
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(_LOOK_SECONDS):
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
