"""What tests of every kind may ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.postgresql import PostgresqlServer


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgresqlServer]:
    """The PostgreSQL server of this run, or of this worker of it."""
    from tests.support.postgresql import running_postgresql

    with running_postgresql() as server:
        yield server


@pytest.fixture
def postgresql_url(postgresql: PostgresqlServer) -> str:
    """An empty database."""
    return postgresql.emptied()
