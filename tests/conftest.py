"""Fixtures that tests of every kind may ask for."""

import gc
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

import tests.support.clocks.hurried  # noqa: F401 - may let time run faster
from proto.transport import process_flow
from tests.support.processes.postgresql import PostgresqlServer

# A run of the tests finds what the one before it found. New examples are the business of a proof,
# tests.proof.soaks.tests, which runs them under the other profile. A slow machine fails none.
_PATIENT = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("repeatable", derandomize=True, **_PATIENT)
settings.register_profile("searching", print_blob=True, database=None, **_PATIENT)
settings.load_profile("repeatable")


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
def postgresql() -> Iterator[PostgresqlServer]:
    """The PostgreSQL server of this run, or of this worker of it."""
    from tests.support.processes.postgresql import running_postgresql

    with running_postgresql() as server:
        yield server


@pytest.fixture
def postgresql_url(postgresql: PostgresqlServer) -> str:
    """An empty database."""
    return postgresql.emptied()
