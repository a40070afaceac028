"""The package ``limiter``: exports, and the cost of importing."""

import subprocess
import sys

import pytest

import limiter
from tests.support.processes.server_process import REPOSITORY

MOST_SECONDS = 0.2
ABOVE = ("proto", "client", "server", "broker", "proxy", "loadgen")
DEAR = ("aiohttp", "numpy", "pyarrow", "google", "prometheus_client", "opentelemetry", "uvloop")


def test_everything_that_is_offered_is_there() -> None:
    assert [getattr(limiter, name).__name__ for name in limiter.__all__] == list(limiter.__all__)


def test_what_is_not_offered_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="'limiter' has no attribute 'nothing'"):
        _ = limiter.nothing


def test_all_of_it_is_imported_quickly_and_loads_nothing_above_it() -> None:
    # Processor time, because other processes must not make this test fail
    program = (
        "import sys, time; begun = time.process_time(); from limiter import *; "
        f"spent = time.process_time() - begun; found = [one for one in {ABOVE + DEAR!r} "
        "if one in sys.modules]; print(found); print(spent)"
    )
    done = [
        subprocess.run(
            [sys.executable, "-c", program],
            cwd=REPOSITORY,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.splitlines()
        for _ in range(3)
    ]
    assert {loaded for loaded, _ in done} == {"[]"}
    assert min(float(spent) for _, spent in done) < MOST_SECONDS
