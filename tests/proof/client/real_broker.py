"""A real broker with keys of broker.conf, by a command from the environment."""

import os
import shlex
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from tests.proof.result import ProofError

COMMAND = "REAL_PULSAR"
"""Variable for a command that takes ``key=value`` arguments, starts a broker, prints ``READY PID
...`` once the broker answers, and ends.
"""
PATIENCE_SECONDS = 150.0


@contextmanager
def real_broker(keys: Mapping[str, str]) -> Iterator[None]:
    """Run a real broker for a block.

    Raises:
        ProofError: The broker does not start.
    """
    command = [*shlex.split(os.environ[COMMAND]), *(f"{key}={keys[key]}" for key in keys)]
    started = subprocess.run(
        command, stdout=subprocess.PIPE, text=True, timeout=PATIENCE_SECONDS, check=False
    )
    ready, _, rest = started.stdout.partition(" ")
    if ready != "READY":
        raise ProofError(f"{COMMAND} started no broker: {started.stdout[:200]!r}")
    try:
        yield
    finally:
        os.kill(int(rest.split()[0]), signal.SIGTERM)
