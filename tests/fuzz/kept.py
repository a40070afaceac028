"""The kept corpus: a text file per target, with a base64 input per line."""

import base64
from collections.abc import Iterable
from pathlib import Path

FOLDER = Path(__file__).with_name("corpus")


def kept(name: str) -> list[bytes]:
    """Return the kept inputs of a target; a # begins the reason for an input."""
    path = FOLDER / f"{name}.txt"
    if not path.exists():
        return []
    lines = (line.partition("#")[0].strip() for line in path.read_text().splitlines())
    return [base64.b64decode(line) for line in lines if line]


def findings(name: str) -> list[str]:
    """Return the lines of a target with reasons, which stay whatever their coverage."""
    path = FOLDER / f"{name}.txt"
    lines = path.read_text().splitlines() if path.exists() else []
    return [line for line in lines if "#" in line]


def keep(name: str, inputs: Iterable[bytes]) -> None:
    """Write the corpus of a target: findings, then other inputs."""
    lines = findings(name)
    known = {line.partition("#")[0].strip() for line in lines}
    encoded = sorted({base64.b64encode(one).decode() for one in inputs} - known - {""})
    text = "\n".join([*lines, *encoded])
    (FOLDER / f"{name}.txt").write_text(f"{text}\n")
