"""Make a release in dist/: source archive, wheels, an SBOM for each wheel, checksums.

    python -m tools.release --tag v0.2.0

Wheels are built from the source archive, and again from the checkout: both must have the same
bytes. Each wheel is installed with the locked versions of its dependencies; its SBOM (CycloneDX)
lists these.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import venv
import zipfile
from email.parser import Parser
from pathlib import Path
from typing import TYPE_CHECKING

from proto.version import VERSION
from tools.locked_part import normal, part_of

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*")
_BUILD = "import pathlib, sys, wheel_backend; wheel_backend.build(pathlib.Path(sys.argv[1]))"


def main() -> None:
    """Make the release, or explain in a sentence why it cannot be made."""
    parser = argparse.ArgumentParser(description="Make a release in dist/.")
    parser.add_argument("--tag", default=f"v{VERSION}", help="the tag that the release is made for")
    if wrong := list(disagreements(ROOT, parser.parse_args().tag)):
        sys.exit(f"No release of version {VERSION}: {'; '.join(wrong)}")
    shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir()
    wheels = built()
    run("-m", "twine", "check", "--strict", *map(str, sorted(DIST.iterdir())))
    for wheel in wheels:
        write_sbom(wheel, wheels)
    files = sorted(DIST.iterdir())
    (DIST / "SHA256SUMS").write_text(checksums(files), encoding="ascii")
    print(f"{len(files)} files and their checksums are in {DIST.relative_to(ROOT)}")


def disagreements(root: Path, tag: str) -> Iterable[str]:
    """Yield words on each file or tag that does not have the version of the release."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    if tag != f"v{VERSION}":
        yield f"the tag is {tag[:40]}"
    if project["version"] != VERSION:
        yield f"pyproject.toml has {project['version']}"
    places = {
        "CHANGELOG.md": rf"^## {re.escape(VERSION)} - \d{{4}}-\d\d-\d\d$",
        "CITATION.cff": rf"^version: {re.escape(VERSION)}$",
    }
    for name, line in places.items():
        if not re.search(line, (root / name).read_text(encoding="utf-8"), re.MULTILINE):
            yield f"{name} does not have it"


def built() -> list[Path]:
    """Build the source archive, and the wheels twice; return the wheels."""
    run("-m", "build", "--sdist", "--no-isolation", "--outdir", str(DIST), str(ROOT))
    (archive,) = DIST.glob("*.tar.gz")
    with tempfile.TemporaryDirectory(prefix="release-") as folder:
        with tarfile.open(archive) as packed:
            packed.extractall(folder, filter="data")
        (source,) = Path(folder).iterdir()
        build_wheels(source, DIST)
        again = Path(folder, "again")
        again.mkdir()
        build_wheels(ROOT, again)
        wheels = sorted(DIST.glob("*.whl"))
        differ = [one.name for one in wheels if one.read_bytes() != (again / one.name).read_bytes()]
    if differ:
        sys.exit(f"Two builds of the same sources differ: {', '.join(differ)}")
    return wheels


def build_wheels(source: Path, folder: Path) -> None:
    """Build all wheels of a source tree with its own build backend and fixed file times."""
    variables = {"SOURCE_DATE_EPOCH": "1577836800", "PYTHONPATH": str(source / "packaging")}
    run("-c", _BUILD, str(folder), cwd=source, variables=variables)


def write_sbom(wheel: Path, wheels: list[Path]) -> None:
    """Install a wheel with locked dependencies, and write a list of what was installed."""
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    ours, others = needed(wheel, wheels)
    with tempfile.TemporaryDirectory(prefix="release-") as folder:
        environment, part = Path(folder, "installed"), Path(folder, "part.lock")
        part.write_text(part_of(lock, others), encoding="utf-8")
        venv.create(environment, symlinks=True)
        python = str(environment / "bin" / "python")
        pip = ("-m", "pip", "--python", python)
        run(*pip, "install", "-qq", "--require-hashes", "-r", str(part))
        run(*pip, "install", "-qq", "--no-deps", *map(str, ours))
        run(*pip, "check")
        project = Path(folder, "pyproject.toml")
        name, version = wheel.name.split("-")[:2]
        rows = {"name": normal(name), "version": version, "dependencies": required(wheel)}
        lines = (f"{key} = {json.dumps(value)}\n" for key, value in rows.items())
        project.write_text("[project]\n" + "".join(lines), encoding="utf-8")
        target = DIST / f"{name}-{version}.cdx.json"
        how = ("--output-reproducible", "--pyproject", str(project), "--output-file", str(target))
        run("-m", "cyclonedx_py", "environment", *how, python)


def needed(wheel: Path, wheels: list[Path]) -> tuple[list[Path], set[str]]:
    """Return a wheel with those of ``wheels`` that it needs, and the names of other packages."""
    by_name = {normal(one.name.split("-")[0]): one for one in wheels}
    ours, names, new = [wheel], set[str](), requirements(wheel)
    while new:
        names |= new
        ours += (
            found := [by_name[name] for name in new & by_name.keys() if by_name[name] not in ours]
        )
        new = {name for one in found for name in requirements(one)} - names
    return ours, names - by_name.keys()


def requirements(wheel: Path) -> set[str]:
    """Return the names of the packages that a wheel requires."""
    return {normal(_NAME.findall(row)[0]) for row in required(wheel)}


def required(wheel: Path) -> list[str]:
    """Return the requirements in a wheel's metadata, without those of its extras."""
    with zipfile.ZipFile(wheel) as packed:
        (path,) = (name for name in packed.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = Parser().parsestr(packed.read(path).decode())
    return [row for row in metadata.get_all("Requires-Dist", []) if "extra ==" not in row]


def checksums(files: Iterable[Path]) -> str:
    """Return the checksums of files as lines that ``sha256sum --check`` reads."""
    return "".join(f"{hashlib.sha256(one.read_bytes()).hexdigest()}  {one.name}\n" for one in files)


def run(*arguments: str, cwd: Path = ROOT, variables: dict[str, str] | None = None) -> None:
    """Run this Python with arguments; if that fails, print its output and exit."""
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        env={**os.environ, **(variables or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode:
        sys.exit(f"{done.stdout}\nNo release: python {' '.join(arguments)[:200]} failed")


if __name__ == "__main__":
    main()
