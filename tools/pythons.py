"""Run all tests on several versions of Python, each in a fresh clone with an empty home.

``requires-python`` includes every release from 3.11 on, also the early patch releases that
distributions ship. A type checker for 3.11 does not notice a feature of a later patch release
(3.11.4: ``extractall(filter=)``).
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHONS = ("python3.11", "python3.12", "python3.13")
LOGS = ROOT / "out" / "pythons"


def main() -> None:
    """Test the interpreters named on the command line, or PYTHONS; exit with 1 if one fails."""
    LOGS.mkdir(parents=True, exist_ok=True)
    versions = {python: version_of(python) for python in sys.argv[1:] or PYTHONS}
    failed = [python for python, version in versions.items() if not proved(python, version)]
    if failed:
        sys.exit(f"Not proved: {', '.join(failed)}; what was printed is in {LOGS}")


def version_of(python: str) -> str:
    """Return the version of a Python interpreter; empty if the interpreter does not exist."""
    asked = [python, "-c", "import platform; print(platform.python_version())"]
    try:
        return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def proved(python: str, version: str) -> bool:
    """Run all tests on an interpreter, print the result, and return True if they passed."""
    if not version:
        print(f"{python}: is not here", flush=True)
        return False
    log, began = LOGS / f"{version}.log", time.monotonic()
    with tempfile.TemporaryDirectory(prefix="pythons-") as folder:
        clone, home = Path(folder) / "clone", Path(folder) / "home"
        home.mkdir()
        subprocess.run(["git", "clone", "-q", str(ROOT), str(clone)], check=True)
        with log.open("wb") as output:
            done = subprocess.run(
                ["make", f"PYTHON={python}", "test"],
                cwd=clone,
                env={**clean_variables(), "HOME": str(home)},
                stdout=output,
                stderr=subprocess.STDOUT,
            )
    last = log.read_text(errors="replace").strip().splitlines()[-1].strip("= ")
    minutes = (time.monotonic() - began) / 60
    print(f"{version} ({python}): {last}; {minutes:.1f} minutes with the set-up", flush=True)
    return done.returncode == 0


def clean_variables() -> dict[str, str]:
    """Return this process's environment variables without those of its virtual environment."""
    own = str(ROOT / ".venv")
    places = os.environ.get("PATH", os.defpath).split(os.pathsep)
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTHON", "PYTEST", "VIRTUAL_ENV", "MAKE"))
    }
    return {**kept, "PATH": os.pathsep.join(one for one in places if not one.startswith(own))}


if __name__ == "__main__":
    main()
