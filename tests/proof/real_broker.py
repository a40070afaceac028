"""A real broker with keys of broker.conf, by a command from the environment."""

import os
import shlex
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from tests.proof.result import ProofError

COMMAND = "REAL_PULSAR"
"""Variable for a command that takes ``key=value`` arguments, starts a broker, prints ``READY PID
...`` once the broker answers, and ends.
"""
PATIENCE_SECONDS = 150.0
_STOP_SECONDS = 20.0


@contextmanager
def real_broker(keys: Mapping[str, str]) -> Iterator[int]:
    """Run a real broker for a block; yield its process id.

    Raises:
        ProofError: The broker does not start.
    """
    command = [*shlex.split(os.environ[COMMAND]), *(f"{key}={keys[key]}" for key in keys)]
    with tempfile.TemporaryDirectory(prefix="real-", ignore_cleanup_errors=True) as folder:
        started = subprocess.run(
            command,
            stdout=subprocess.PIPE,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
            env={**os.environ, "TMPDIR": folder},
        )
        ready, _, rest = started.stdout.partition(" ")
        if ready != "READY":
            raise ProofError(f"{COMMAND} started no broker: {started.stdout[:200]!r}")
        pid = int(rest.split()[0])
        try:
            yield pid
        finally:
            _end(pid)


def _end(pid: int) -> None:
    os.kill(pid, signal.SIGTERM)
    give_up = time.monotonic() + _STOP_SECONDS
    with suppress(ProcessLookupError):
        while time.monotonic() < give_up:
            os.kill(pid, 0)
            time.sleep(0.2)
        os.kill(pid, signal.SIGKILL)
