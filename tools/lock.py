"""Resolve the dependencies in pyproject.toml again, and write the lock files."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SEPARATE = {
    "fuzz": "Coverage-guided fuzzing, for make fuzz.",
    "java": "A Java runtime for machines without one.",
    "docs": "The documentation as a site, for make site.",
    "release": "What builds and audits releases, for make release and make audit.",
}
OPTIONS = ["--universal", "--python-version", "3.11", "--generate-hashes", "--no-header"]


def resolve(arguments: list[str], stdin: str, target: str, title: str) -> None:
    """Run the resolver, and write its output below a title to a lock file."""
    command = [sys.executable, "-m", "uv", "pip", "compile", "--quiet", *OPTIONS, *arguments]
    answer = subprocess.run(command, cwd=ROOT, input=stdin, capture_output=True, text=True)
    if answer.returncode != 0:
        sys.exit(f"{target} could not be resolved:\n{answer.stderr}")
    (ROOT / target).write_text(f"# {title} Made by: make lock\n{answer.stdout}")


def main() -> None:
    """Write requirements.lock (everything), and a lock file for each rarely needed extra."""
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "uv"], check=True)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    everything = "Every dependency, pinned with its hashes."
    extras = [word for name in ("dev", "spark", "postgresql") for word in ("--extra", name)]
    resolve([*extras, "pyproject.toml"], "", "requirements.lock", everything)
    for name, title in SEPARATE.items():
        wanted = "\n".join(project["optional-dependencies"][name])
        resolve(["-"], wanted, f"requirements-{name}.lock", title)


if __name__ == "__main__":
    main()
