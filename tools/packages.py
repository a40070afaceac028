"""Build the distributions, and measure their dependencies, size, import, start and memory.

    .venv/bin/python tools/packages.py            # prints a table; needs an index of packages
    .venv/bin/python tools/packages.py --build dist    # only writes the wheels
    .venv/bin/python tools/packages.py --check         # docs/install.md has the bounds

Each is installed alone into an empty environment, in the versions of requirements.lock. Exit
status 1: a figure is above its bound.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ROUNDS = 5
CLIENT, SERVERS, LOADGEN = (
    "pulsar-floodgate-client",
    "pulsar-floodgate",
    "pulsar-floodgate-loadgen",
)
BROKER = ("-m", "pulsar_floodgate", "--set=brokerServicePort=0", "--set=webServicePort=0")
_LOCKED = re.compile(r"^([\w.-]+==[^\\\n]+)", re.MULTILINE)
_IMPORT = """
import time
import asyncio
begun = time.process_time()
import {}
print(time.process_time() - begun)
"""


@dataclass(frozen=True)
class Row:
    """A distribution to install, and the bounds of its figures; None means no bound.

    Attributes:
        what: The requirement to install.
        imported: The module whose import is measured, beside asyncio.
        packages: The largest number of installed packages, including itself.
        megabytes: The largest installed size in megabytes, including compiled modules.
        import_seconds: The longest import, in seconds of processor time.
        start_seconds: The longest start of a broker until it prints READY.
        resident_megabytes: The largest memory of the broker after its start.
    """

    what: str
    imported: str
    packages: int | None = None
    megabytes: float | None = None
    import_seconds: float | None = None
    start_seconds: float | None = None
    resident_megabytes: float | None = None


ROWS = (
    Row(CLIENT, "pulsar_floodgate_client.client", 7, 12, 0.12),
    Row(f"{CLIENT}[all]", "pulsar_floodgate_client.client"),
    Row(SERVERS, "pulsar_floodgate.broker.service", 20, 90, None, 0.6, 70),
    Row(f"{SERVERS}[fast]", "pulsar_floodgate.broker.service"),
    Row(LOADGEN, "pulsar_floodgate_loadgen", None, 410),
    Row(f"{SERVERS}[all]", "pulsar_floodgate.broker.service"),
)
HEADS = ("packages", "MB", "import s", "start s", "resident MB")


class FailedError(Exception):
    """A step of building or measuring failed; the message is the end of its output."""


def build(folder: Path) -> list[Path]:
    """Build the wheels of all distributions; return their files."""
    command = (sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation")
    for name in (CLIENT, SERVERS, LOADGEN):
        run(*command, "-w", str(folder), "--config-settings", f"distribution={name}", str(ROOT))
    return sorted(folder.glob("pulsar_floodgate*.whl"))


def run(*command: str) -> str:
    """Run a command without this project's environment variables; return its output.

    Raises:
        FailedError: The command failed.
    """
    done = subprocess.run(command, env=variables(), capture_output=True, text=True, cwd="/")
    if done.returncode:
        raise FailedError(f"{' '.join(command)[-200:]}: {done.stderr[-500:]}")
    return done.stdout


def variables() -> dict[str, str]:
    """Return this process's environment variables without those of Python and pytest."""
    dropped = ("PYTHON", "PYTEST", "VIRTUAL_ENV")
    return {key: value for key, value in os.environ.items() if not key.startswith(dropped)}


def constraints(folder: Path) -> Path:
    """Write the locked versions as a constraints file for pip; return the file."""
    file = folder / "constraints.txt"
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    file.write_text("\n".join(_LOCKED.findall(lock)), encoding="utf-8")
    return file


def measured(row: Row, wheels: Path, folder: Path) -> list[float | None]:
    """Install a distribution into an empty environment, and return its figures."""
    venv.create(folder, with_pip=True, symlinks=True)
    python = str(folder / "bin" / "python")
    packages = next((folder / "lib").glob("python3.*")) / "site-packages"
    before, size = {*packages.iterdir()}, size_of(packages)
    pip = (python, "-m", "pip", "install", "-q", "--find-links", str(wheels))
    run(*pip, "-c", str(constraints(folder)), row.what)
    installed = {*packages.iterdir()} - before
    count = sum(place.suffix == ".dist-info" for place in installed)
    megabytes = (size_of(packages) - size) / 1e6
    imported = [float(run(python, "-c", _IMPORT.format(row.imported))) for _ in range(ROUNDS)]
    has_broker = not row.what.startswith(CLIENT)
    starts = [started(python) for _ in range(ROUNDS)] if has_broker else []
    seconds, resident = ([one[place] for one in starts] for place in (0, 1))
    median = statistics.median
    return [
        count,
        megabytes,
        min(imported),
        min(seconds) if seconds else None,
        median(resident) if resident else None,
    ]


def size_of(folder: Path) -> int:
    """Return the number of bytes in the files of a folder."""
    return sum(file.lstat().st_size for file in folder.rglob("*") if file.is_file())


def started(python: str) -> tuple[float, float]:
    """Start a broker; return the seconds until it prints READY, and its resident megabytes.

    Raises:
        FailedError: The broker did not start.
    """
    begun = time.perf_counter()
    with subprocess.Popen(
        [python, *BROKER],
        env=variables(),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=tempfile.gettempdir(),
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        seconds = time.perf_counter() - begun
        try:
            if not line.startswith("READY"):
                raise FailedError(f"{' '.join(BROKER)}: no broker")
            return seconds, resident_megabytes(process.pid)
        finally:
            process.terminate()


def resident_megabytes(pid: int) -> float:
    """Return the resident memory of a process in megabytes."""
    (status,) = re.findall(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return int(status) * 1024 / 1e6


def figures() -> dict[str, tuple[Row, list[float | None]]]:
    """Build all distributions; install and measure each of them."""
    with tempfile.TemporaryDirectory(prefix="packages-") as folder:
        wheels = Path(folder) / "wheels"
        build(wheels)
        return {
            row.what: (row, measured(row, wheels, Path(folder) / str(place)))
            for place, row in enumerate(ROWS)
        }


def bounds(row: Row) -> list[float | None]:
    """Return the bounds of a distribution, in the order of its figures."""
    return [
        row.packages,
        row.megabytes,
        row.import_seconds,
        row.start_seconds,
        row.resident_megabytes,
    ]


def above(row: Row, found: list[float | None]) -> list[str]:
    """Return a sentence for each figure of a distribution that is above its bound."""
    pairs = zip(HEADS, found, bounds(row), strict=True)
    return [
        f"{row.what}: {head} {figure:.2f} of at most {most}"
        for head, figure, most in pairs
        if figure is not None and most is not None and figure > most
    ]


def table(found: dict[str, tuple[Row, list[float | None]]]) -> str:
    """Return the figures of all distributions as a table, with their bounds."""
    lines = [f"{'':32}" + "".join(f"{head:>18}" for head in HEADS)]
    for what, (row, values) in found.items():
        cells = []
        for head, value, most in zip(HEADS, values, bounds(row), strict=True):
            digits = 2 if head.endswith(" s") else 0
            shown = "-" if value is None else f"{value:.{digits}f}"
            cells.append(f"{shown if most is None else f'{shown} (of {most})':>18}")
        lines.append(f"{what:32}" + "".join(cells))
    return "\n".join(lines)


def unsaid(page: str) -> list[str]:
    """Return the bounds of distributions that are missing in a page's table."""
    bounded = [row for row in ROWS if row.megabytes is not None]
    packages = {row.what: f"{row.packages} packages, " if row.packages else "" for row in bounded}
    ends = {row.what: f" | {packages[row.what]}{row.megabytes} MB |" for row in bounded}
    lines = page.splitlines()
    return [
        f"{what}{end}"
        for what, end in ends.items()
        if not any(line.startswith(f"| `{what}` |") and line.endswith(end) for line in lines)
    ]


def main() -> None:
    """Build the wheels, check the page, or measure and print, as the command line says."""
    parser = argparse.ArgumentParser(description="Build and measure the distributions.")
    parser.add_argument("--build", type=Path, metavar="FOLDER", help="only write the wheels")
    parser.add_argument("--check", action="store_true", help="only check docs/install.md")
    asked = parser.parse_args()
    if asked.check:
        missing = unsaid((ROOT / "docs" / "install.md").read_text(encoding="utf-8"))
        sys.exit(f"docs/install.md does not say: {'; '.join(missing)}" if missing else 0)
    try:
        if asked.build:
            print("\n".join(map(str, build(asked.build.resolve()))))
            return
        found = figures()
    except FailedError as error:
        sys.exit(str(error))
    print(table(found))
    sys.exit("\n".join(line for one in found.values() for line in above(*one)) or 0)


if __name__ == "__main__":
    main()
