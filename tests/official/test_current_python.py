"""The current official Python client, unmodified, against a broker and through a proxy."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.official.clients import ClientMissingError, OfficialClient, python_client
from tests.official.runs import run_client, run_restart
from tests.official.servers import Servers, floodgate

pytestmark = [pytest.mark.official, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def client() -> OfficialClient:
    try:
        return python_client()
    except ClientMissingError as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="module", params=["pulsar", "floodgate"])
def servers(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Servers]:
    with floodgate(request.param, tmp_path_factory.mktemp(request.param)) as running:
        yield running


@pytest.mark.parametrize("role", ["direct", "through_proxy"])
def test_every_scenario_has_the_results_of_a_real_broker(servers, client, role, tmp_path) -> None:
    run = run_client(client, getattr(servers, role), tmp_path)
    assert not run.differences, os.linesep.join(run.differences)
    assert set(run.absent) == client.absent


@pytest.mark.parametrize("servers", ["floodgate"], indirect=True)
@pytest.mark.parametrize("role", ["direct", "through_proxy"])
def test_no_message_is_lost_when_the_broker_of_a_client_is_killed(
    servers: Servers, client: OfficialClient, role: str, tmp_path: Path
) -> None:
    run = run_restart(client, getattr(servers, role), tmp_path, servers.kill_and_start)
    assert not run.differences, os.linesep.join(run.differences)
