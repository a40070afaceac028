"""A server of the installed wheel, started by its program."""

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.proof.result import ProofError
from tests.proof.wheel.building import clean_variables
from tests.proof.wheel.environment import CleanEnvironment

STOP_SECONDS = 20.0


@contextmanager
def started(
    environment: CleanEnvironment, out: Path, role: str, settings: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """Run ``floodgate-broker`` or ``floodgate-proxy``; yield its two URLs.

    Raises:
        ProofError: The server did not start.
    """
    log = out / f"wheel-{role}.log"
    words = [f"--set={each}" for each in settings]
    with (
        log.open("wb") as errors,
        subprocess.Popen(
            environment.command(f"floodgate-{role}", *words),
            cwd=environment.project,
            env=clean_variables(),
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        ) as process,
    ):
        try:
            assert process.stdout is not None
            ready = process.stdout.readline().split()
            if ready[:1] != ["READY"]:
                raise ProofError(f"floodgate-{role}: {log.read_text(encoding='utf-8')[-500:]}")
            yield ready[2], ready[3]
            process.terminate()
            process.wait(STOP_SECONDS)
        finally:
            process.kill()
