"""The package ``limiter``: exports, and the cost of importing."""

import subprocess
import sys

import pytest

import limiter
from tests.support.processes.server_process import REPOSITORY

MOST_SECONDS = 0.2
ABOVE = ("proto", "client", "server", "broker", "proxy", "loadgen")
DEAR = ("aiohttp", "numpy", "pyarrow", "google", "prometheus_client", "opentelemetry", "uvloop")


def test_every_exported_name_exists() -> None:
    assert [getattr(limiter, name).__name__ for name in limiter.__all__] == list(limiter.__all__)


def test_a_name_that_is_not_exported_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="'limiter' has no attribute 'nothing'"):
        _ = limiter.nothing


def test_the_package_imports_quickly_and_loads_no_higher_or_expensive_package() -> None:
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
