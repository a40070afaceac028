"""Fixtures that tests of every kind may ask for, and the order in which workers run files."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import typer.main
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadFileScheduling

import tests.support.clocks.hurried  # noqa: F401 - may let time run faster
from proto.transport import process_flow

if TYPE_CHECKING:
    from tests.support.processes.postgresql import PostgresqlServer
    from tests.support.runs.shared_spark import SharedSpark

# A run of the tests finds what the one before it found, so few examples suffice. Many new ones
# are the business of a proof, tests.proof.soaks.tests, which has the other profile. A
# slow machine fails none.
_PATIENT = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("repeatable", derandomize=True, max_examples=40, **_PATIENT)
settings.register_profile("searching", print_blob=True, database=None, **_PATIENT)
settings.load_profile("repeatable")

# PyArrow looks for this package, which few have, at each array that is made.
if find_spec("dateutil") is None:
    sys.modules["dateutil"] = None  # type: ignore[assignment]
# A program makes its commands once; tests run each program in their own process again and again.
typer.main.get_command = lru_cache(maxsize=8)(typer.main.get_command)

_shared: list[SharedSpark] = []


class _WholeFiles(LoadFileScheduling):
    """Gives a worker whole files, and to one worker all files that share a Spark session.

    Files keep their order: those that start processes come first, and many small ones last.
    """

    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        return "spark" if _needs_spark(self.config.rootpath / file) else file


@cache
def _needs_spark(file: Path) -> bool:
    return "pytest.mark.spark" in file.read_text(encoding="utf-8")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> LoadFileScheduling | None:
    if config.option.dist != "loadfile":
        return None
    config.option.loadscopereorder = False
    return _WholeFiles(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_collection() -> None:
    """Keep the collector off imports."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Keep the collector off the tests themselves, of which a session has fifteen thousand."""
    gc.enable()
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _turns_without_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """End a connection's turns by what is in them, however slow this machine is.

    Tests of what ends them by time set their own.
    """
    monkeypatch.setattr(process_flow, "TURN_SECONDS", 60.0)


@pytest.fixture
def seldom_collected() -> Iterator[None]:
    """Collect no garbage: a broker does so seldom (server.loop), and steps are measured."""
    gc.disable()
    yield
    gc.enable()


@pytest.fixture(scope="session")
def shared_spark() -> Iterator[SharedSpark]:
    """A Spark session for tests in a row."""
    from tests.support.runs.shared_spark import SharedSpark

    shared = SharedSpark()
    _shared.append(shared)
    yield shared
    shared.end()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """End Spark behind the last test in a row that needs it: its variables are not for others."""
    if item.get_closest_marker("spark") and not (nextitem and nextitem.get_closest_marker("spark")):
        for shared in _shared:
            shared.end()


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgresqlServer]:
    """The PostgreSQL server of this run, or of this worker of it."""
    from tests.support.processes.postgresql import running_postgresql

    with running_postgresql() as server:
        yield server


@pytest.fixture
def postgresql_url(postgresql: PostgresqlServer) -> str:
    """An empty database."""
    return postgresql.emptied()
