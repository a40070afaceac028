"""Create .venv from its lock; given a name, create the environment of that lock in .tools.

Runs under the system's interpreter, with only the standard library. Handles three obstacles: a
Debian without python3-venv (installed when this runs as root, otherwise a sentence requests it), an
incomplete environment (created again), and a machine without Java 17 (a runtime is installed as a
wheel).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OLDEST_PYTHON = (3, 11)
OLDEST_JAVA = 17


def main() -> None:
    """Create or complete the environments, or explain in a sentence why that is impossible."""
    if sys.version_info < OLDEST_PYTHON:
        found = ".".join(map(str, sys.version_info[:3]))
        sys.exit(
            f"Floodgate needs Python 3.11 or newer; this is {found}. Try: make PYTHON=python3.12"
        )
    for name in sys.argv[1:]:
        make_environment(tools := ROOT / ".tools" / name)
        install(tools, f"requirements-{name}.lock")
    if not sys.argv[1:]:
        set_up(ROOT / ".venv")


def set_up(environment: Path) -> None:
    """Create or complete the environment that the programs and tests of the checkout use."""
    make_environment(environment)
    install(environment, "requirements.lock")
    if java_version() < OLDEST_JAVA:
        print("No Java 17 or newer found: installing a runtime into .venv", flush=True)
        install(environment, "requirements-java.lock")
    python = str(environment / "bin" / "python")
    run([python, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "-e", "."])


def make_environment(environment: Path) -> None:
    """Create a virtual environment with pip, replacing an incomplete one."""
    if (environment / "bin" / "pip").exists():
        return
    print(f"Making {environment.relative_to(ROOT)}", flush=True)
    if not has_ensurepip():
        install_venv_package()
    shutil.rmtree(environment, ignore_errors=True)
    venv.create(environment, with_pip=True, symlinks=True)


def has_ensurepip() -> bool:
    """Return True if this interpreter can install pip (on Debian that is a separate package)."""
    return (
        subprocess.run([sys.executable, "-c", "import ensurepip"], capture_output=True).returncode
        == 0
    )


def install_venv_package() -> None:
    """Install the system package python3-venv if this runs as root; otherwise exit."""
    if os.geteuid() == 0 and shutil.which("apt-get"):
        package = f"python{sys.version_info.major}.{sys.version_info.minor}-venv"
        print(f"Installing the system package {package}", flush=True)
        run(["apt-get", "update", "-q"])
        run(["apt-get", "install", "-y", "-q", "--no-install-recommends", package])
    else:
        sys.exit("This Python cannot make environments. As root, run: apt-get install python3-venv")


def install(environment: Path, lock: str) -> None:
    """Install exactly the packages in a lock file, and check their hashes."""
    print(f"Installing {lock} (the first time takes some minutes)", flush=True)
    python = str(environment / "bin" / "python")
    run([python, "-m", "pip", "install", "-qq", "--require-hashes", "-r", str(ROOT / lock)])


def java_version() -> int:
    """Return the major version of the Java that Spark would use; 0 if there is none."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else "java"
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return 0
    found = re.search(r'version "(?:1\.)?(\d+)', answer.stderr)
    return int(found.group(1)) if found else 0


def run(command: list[str]) -> None:
    """Run a command; if it fails, exit with a sentence that has its exit code."""
    code = subprocess.run(command, cwd=ROOT).returncode
    if code != 0:
        sys.exit(f"Set-up failed (exit code {code}): {' '.join(command)}")


if __name__ == "__main__":
    main()
