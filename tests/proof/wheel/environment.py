"""A clean environment, with wheels and a program's packages of the same names as ours."""

from __future__ import annotations

import runpy
import shutil
import subprocess
import tomllib
import venv
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from benchmarks.processes import ROOT
from server.module_names import IN_WHEELS
from tests.proof.result import ProofError
from tests.proof.wheel.building import (
    CONSTRAINTS,
    PATIENCE_SECONDS,
    clean_variables,
    run,
    write_constraints,
)

THEIR_PACKAGES = ("client", "server", "proto")
TESTED = ("tests/unit/limiter", "tests/unit/client", "tests/support", "tests/golden", "docs")
_NOT_TAKEN = shutil.ignore_patterns("__pycache__")
# These tests read the repository itself, or texts with the names of modules.
NOT_IN_THE_WHEEL = (
    "tests/unit/limiter/test_package.py",
    "tests/unit/client/test_package.py",
    "tests/unit/client/consumers/test_upstream_faults.py::test_every_fault_has_its_test",
)
# These tests have a broker or its modules, which the client's distribution does not have.
WITH_A_BROKER = (
    "tests/unit/limiter/metrics/test_prometheus.py",
    "tests/unit/client/connection/test_cnx.py",
    "tests/unit/client/connection/test_pool.py",
    "tests/unit/client/test_pulsar_client.py",
)


@dataclass(frozen=True)
class CleanEnvironment:
    """An environment isolated from this repository, and a project to work in.

    Attributes:
        folder: Folder of environment and project.
        wheels: Folder of our wheels.
    """

    folder: Path
    wheels: Path

    @classmethod
    def make(cls, folder: Path, wheels: Path, *, lowest: bool = False) -> CleanEnvironment:
        """Make an empty environment in an empty folder, for the newest or the lowest versions."""
        shutil.rmtree(folder, ignore_errors=True)
        made = cls(folder, wheels)
        venv.create(folder / "venv", with_pip=True, symlinks=True)
        for name in THEIR_PACKAGES:
            package = made.project / name
            package.mkdir(parents=True)
            (package / "__init__.py").write_text('OWNER = "theirs"\n', encoding="utf-8")
        write_constraints(folder, lowest=lowest)
        return made

    @property
    def project(self) -> Path:
        """The folder of the project, where all commands run."""
        return self.folder / "project"

    @property
    def bin(self) -> Path:
        return self.folder / "venv" / "bin"

    @property
    def packages(self) -> Path:
        return next((self.folder / "venv" / "lib").glob("python3.*")) / "site-packages"

    def install(self, *what: str) -> None:
        """Install packages in the versions of the constraints, ours from ``wheels``."""
        options = ("-c", str(self.folder / CONSTRAINTS), "--find-links", str(self.wheels))
        run([str(self.bin / "pip"), "install", "-q", *options], *what)

    def lend(self, package: str) -> Path:
        """Link a package of this process's environment into the clean one; return the link."""
        found = find_spec(package)
        if found is None or found.origin is None:
            raise ProofError(f"{package} is not installed here")
        place = self.packages / package
        place.symlink_to(Path(found.origin).parent)
        return place

    def command(self, *words: str) -> list[str]:
        """Return the command of a program of the environment, or of a module with ``-m``."""
        if words[0] == "-m":
            return [str(self.bin / "python"), *words]
        return [str(self.bin / words[0]), *words[1:]]

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a program in the project, and return the result."""
        return subprocess.run(
            self.command(*words),
            cwd=self.project,
            env=clean_variables(),
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )

    def take_tests(self) -> None:
        """Copy the unit tests of limiter and client, their imports rewritten as in the wheel."""
        rewritten = runpy.run_path(str(ROOT / "packaging" / "first_party.py"))["rewritten"]
        for name in TESTED:
            shutil.copytree(ROOT / name, self.project / name, ignore=_NOT_TAKEN, dirs_exist_ok=True)
        for name in ("tests/__init__.py", "tests/conftest.py", "tests/unit/__init__.py"):
            if (ROOT / name).exists():
                shutil.copy(ROOT / name, self.project / name)
        for file in (self.project / "tests").rglob("*.py"):
            source = file.read_text(encoding="utf-8")
            file.write_text(rewritten(source, str(file), IN_WHEELS), encoding="utf-8")
        shutil.copy(ROOT / "pyproject.toml", self.project)

    def test_packages(self) -> list[str]:
        """Return the tests' packages, without packages for builds and checks."""
        project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        wanted = ("avro", "hypothesis", "pytest", "pulsar-client", "trustme")
        found = project["optional-dependencies"]["dev"] + project["dependencies"]
        return [each for each in found if each.startswith(wanted)]
