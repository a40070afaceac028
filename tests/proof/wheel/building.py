"""Makes and installs wheels by the ordinary tools."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

from benchmarks.processes import ROOT
from tests.proof.result import ProofError

CLIENT, SERVERS, LOADGEN = DISTRIBUTIONS = (
    "pulsar-floodgate-client",
    "pulsar-floodgate",
    "pulsar-floodgate-loadgen",
)
PATIENCE_SECONDS = 400.0
CONSTRAINTS = "constraints.txt"
_LOCKED = re.compile(r"^([\w.-]+)==([^\\\n]+)", re.MULTILINE)
_LOWEST = re.compile(r"^([\w.-]+)>=([\d.]+)", re.MULTILINE)
_BUILD_SOURCE = """
import os, sys
os.chdir(sys.argv[2])
sys.path.insert(0, "packaging")
import wheel_backend
wheel_backend.build_sdist(sys.argv[1])
"""


def build_wheels(folder: Path, source: Path = ROOT) -> list[Path]:
    """Build the wheels of a checkout, or of a source distribution; return their files."""
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation"]
    for name in DISTRIBUTIONS:
        settings = ("--config-settings", f"distribution={name}")
        run(command, "-w", str(folder), *settings, str(source))
    return sorted(folder.glob("*.whl"))


def build_source(folder: Path) -> Path:
    """Build the source distribution of the checkout; return its file."""
    run([sys.executable, "-c", _BUILD_SOURCE], str(folder), str(ROOT))
    return next(folder.glob("*.tar.gz"))


def write_constraints(folder: Path, *, lowest: bool = False) -> Path:
    """Write a constraints file for pip, and return it: the lock's versions, or the lowest allowed.

    Of a lowest version, such as protobuf 5.27, pip takes the last repair.
    """
    named, pairs = ("pyproject.toml", _LOWEST) if lowest else ("requirements.lock", _LOCKED)
    text = (ROOT / named).read_text(encoding="utf-8")
    if lowest:
        text = "\n".join(tomllib.loads(text)["project"]["dependencies"])
    end = ".*" if lowest else ""
    file = folder / CONSTRAINTS
    lines = [f"{name}=={version.strip()}{end}" for name, version in pairs.findall(text)]
    file.write_text("\n".join(lines), encoding="utf-8")
    return file


def clean_variables() -> dict[str, str]:
    """Return this process's variables without references to our modules."""
    return {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("PYTHON", "PYTEST", "VIRTUAL_ENV"))
    }


def run(command: list[str], *words: str) -> None:
    """Run a step of the preparation.

    Raises:
        ProofError: The step failed.
    """
    done = subprocess.run(
        [*command, *words],
        env=clean_variables(),
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    if done.returncode:
        raise ProofError(f"{' '.join([*command[-2:], *words])[:200]}: {done.stderr[-500:]}")
