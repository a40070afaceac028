from pathlib import Path
from tempfile import TemporaryDirectory

_FOLDERS: list[TemporaryDirectory[str]] = []


def scratch() -> Path:
    """Return the folder of this process, removed at its exit."""
    if not _FOLDERS:
        _FOLDERS.append(TemporaryDirectory(prefix="floodgate-fuzz-"))
    return Path(_FOLDERS[0].name)
