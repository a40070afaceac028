"""A Python whose clock is ahead on one host: with libfaketime, where installed.

Spark's processes keep the clock of this machine: a JVM all but stands still with libfaketime.
"""

import shlex
import sys
from pathlib import Path

AHEAD_SECONDS = 3.0
_FOLDERS = ("/usr/lib", "/usr/lib64", "/usr/local/lib")
_SCRIPT = """\
#!/bin/sh
if [ "$(hostname)" = {host} ] && [ -n {library} ]; then
  export LD_PRELOAD={library} FAKETIME=+{seconds:g} FAKETIME_DONT_FAKE_MONOTONIC=1
fi
exec {python} "$@"
"""


def faketime() -> str:
    """Return the library that moves the clock of a process; empty if not installed."""
    found = (path for each in _FOLDERS for path in Path(each).glob("**/faketime/libfaketime.so.1"))
    return str(next(found, ""))


def written_python(path: Path, host: str) -> Path:
    """Write the script that runs Python on every host, ahead on one host."""
    words = {"host": host, "library": faketime(), "python": sys.executable}
    quoted = {name: shlex.quote(word) for name, word in words.items()}
    path.write_text(_SCRIPT.format(seconds=AHEAD_SECONDS, **quoted), encoding="utf-8")
    path.chmod(0o755)
    return path
