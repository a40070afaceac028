from pathlib import Path
from tempfile import TemporaryDirectory

_FOLDERS: list[TemporaryDirectory[str]] = []


def scratch(name: str) -> Path:
    """Return a folder of this process, removed at its exit."""
    if not _FOLDERS:
        _FOLDERS.append(TemporaryDirectory(prefix="floodgate-fuzz-"))
    folder = Path(_FOLDERS[0].name, name)
    folder.mkdir(exist_ok=True)
    return folder
