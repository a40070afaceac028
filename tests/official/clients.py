"""Official clients, each in an environment below ``out/official``.

An environment is built once, with the tools of its language. ``ClientMissingError`` names a missing
tool or registry in a sentence.
"""

import fcntl
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

HERE = Path(__file__).resolve().parent
ENVIRONMENTS = HERE.parents[1] / "out" / "official"
MAKING_SECONDS = 600
CURRENT_PYTHON_CLIENT = "3.13.0"
NODE_CLIENT = "1.18.0"
_NOT_IN_PYTHON = frozenset({"transactions"})
_IN_PYTHON_ONLY = frozenset({"seek_behind", "skipped", "stats", "terminated", "unloaded"})
"""Scenarios that only depend on the broker, run with a single client."""


class ClientMissingError(Exception):
    """A client is unavailable on this machine; a sentence."""


@dataclass(frozen=True)
class OfficialClient:
    """Client that can be started.

    Attributes:
        name: Language and version.
        command: Command line of its driver, without the driver's arguments.
        absent: Scenarios that the client does not support.
        own: Results that differ from other clients', on a real broker too.
    """

    name: str
    command: tuple[str, ...]
    absent: frozenset[str] = frozenset()
    own: Mapping[str, Mapping[str, object]] = field(default_factory=dict)


def python_client(
    version: str = CURRENT_PYTHON_CLIENT,
    absent: frozenset[str] = frozenset(),
    own: Mapping[str, Mapping[str, object]] | None = None,
) -> OfficialClient:
    """Return the Python client of a version.

    Raises:
        ClientMissingError: Its packages are unavailable.
    """
    name = f"Python {version}"
    python = sys.executable
    if metadata.version("pulsar-client") != version:
        python = _made_python(name, version)
    driver = str(HERE / "python" / "driver.py")
    # faulthandler: a crash of the client's native core names its thread
    command = (python, "-B", "-X", "faulthandler", driver)
    return OfficialClient(name, command, absent | _NOT_IN_PYTHON, own or {})


def _made_python(name: str, version: str) -> str:
    """Return the interpreter of an environment with a version of the client."""
    folder = ENVIRONMENTS / f"python-{version}"
    python = str(folder / "bin" / "python")
    with _made(folder) as already:
        if not already:
            run(name, sys.executable, "-m", "venv", "--without-pip", str(folder))
            packages = [f"pulsar-client=={version}", "fastavro"]
            pip = [sys.executable, "-m", "pip", "--python", python]
            run(name, *pip, "install", "-q", "--no-input", *packages)
    return python


def go_client() -> OfficialClient:
    """Return the Go client of ``go/go.mod``, compiled.

    Raises:
        ClientMissingError: Go or its modules are unavailable.
    """
    folder = ENVIRONMENTS / "go"
    needs("Go", "go")
    with _made(folder, *(HERE / "go").rglob("*")) as already:
        if not already:
            for program in ("", "loading", "faulted", "patient"):
                built = str(folder / (program or "driver"))
                run("Go", "go", "build", "-o", built, f"./{program}", cwd=HERE / "go")
    own = {"deduplicated": {"known": -1}}  # unknown to the client until its first send
    return OfficialClient("Go", (str(folder / "driver"),), _IN_PYTHON_ONLY, own)


def java_client() -> OfficialClient:
    """Return the Java client of ``java/pom.xml``, compiled.

    Raises:
        ClientMissingError: A Java compiler, Maven or the jars are unavailable.
    """
    folder = ENVIRONMENTS / "java"
    needs("Java", "javac", "mvn")
    sources = sorted((HERE / "java").glob("*.java"))
    with _made(folder, *sources, HERE / "java" / "pom.xml") as already:
        if not already:
            jars, classes = folder / "jars", folder / "classes"
            copied = ["dependency:copy-dependencies", "-DincludeScope=runtime"]
            pom = str(HERE / "java" / "pom.xml")
            run("Java", "mvn", "-q", "-B", "-f", pom, *copied, f"-DoutputDirectory={jars}")
            run("Java", "javac", "-d", str(classes), "-cp", f"{jars}/*", *map(str, sources))
    path = f"{folder / 'classes'}:{folder / 'jars'}/*"
    return OfficialClient("Java", ("java", "-Xmx512m", "-cp", path, "Driver"), _IN_PYTHON_ONLY)


def node_client() -> OfficialClient:
    """Explain the missing Node.js client: its package brings no compiled binding.

    Raises:
        ClientMissingError: Always; a package with a binding gets another sentence.
    """
    name = f"Node.js {NODE_CLIENT}"
    folder = ENVIRONMENTS / "node"
    needs(name, "npm", "tar")
    with _made(folder) as already:
        if not already:
            folder.mkdir(parents=True, exist_ok=True)
            package = f"pulsar-client@{NODE_CLIENT}"
            packed = run(name, "npm", "pack", "--silent", "--json", package, cwd=folder)
            files = [file["path"] for file in json.loads(packed)[0]["files"]]
            (folder / "files.json").write_text(json.dumps(files), encoding="utf-8")
    files = json.loads((folder / "files.json").read_text(encoding="utf-8"))
    if any(path.endswith(".node") for path in files):
        raise ClientMissingError(
            f"{name}: its package has a compiled binding now, but no driver here."
        )
    raise ClientMissingError(
        f"{name}: its package has no compiled binding, only the source of one."
    )


@contextmanager
def _made(folder: Path, *sources: Path) -> Iterator[bool]:
    """Yield whether an environment is complete and newer than its sources; mark it at the end."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    done = folder / ".done"
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        newest = max((source.stat().st_mtime for source in sources), default=0.0)
        already = done.exists() and done.stat().st_mtime >= newest
        if not already:
            shutil.rmtree(folder, ignore_errors=True)
        yield already
        if not already:
            done.touch()


def needs(name: str, *tools: str) -> None:
    """Require the tools of a language.

    Raises:
        ClientMissingError: A tool is missing.
    """
    for tool in tools:
        if shutil.which(tool) is None:
            raise ClientMissingError(f"{name}: there is no {tool} on this machine.")


def run(
    name: str, *command: str, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> str:
    """Run a tool of a language and return its output.

    Raises:
        ClientMissingError: The tool failed; with its last line.
    """
    try:
        done = subprocess.run(
            command,
            cwd=cwd,
            env=env,
            capture_output=True,
            text=True,
            timeout=MAKING_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ClientMissingError(
            f"{name}: {' '.join(command[:3])} did not work: {error}."
        ) from error
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip().splitlines()
        last = said[-1] if said else f"exit code {done.returncode}"
        raise ClientMissingError(f"{name}: {' '.join(command[:3])} did not work: {last}")
    return done.stdout
