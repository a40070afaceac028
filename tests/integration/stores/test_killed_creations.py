"""kill -9 of the broker during creations: acknowledged topics survive."""

from pathlib import Path

import pytest

from loadgen.places.server_process import ServerLaunch
from tests.support.stores.killed_creations import create_and_kill, kill_points

TOPICS = 400
KILLS = 2


@pytest.mark.processes
@pytest.mark.parametrize("store", ["sqlite", "postgresql"])
def test_every_acknowledged_creation_survives_a_kill(
    store: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url = f"sqlite:///{tmp_path}/topics.db"
    if store == "postgresql":
        url = request.getfixturevalue("postgresql_url")
    keys = {"metadataStoreUrl": url, "bindAddress": "127.0.0.1", "webServicePort": "0"}
    settings = {**keys, "brokerServicePort": "0", "advertisedAddress": "127.0.0.1"}
    found = create_and_kill(
        lambda start: ServerLaunch("broker", settings, tmp_path / f"{start}.log"),
        TOPICS,
        kill_points(TOPICS, KILLS),
    )
    assert found.kills == KILLS
    assert len(found.acknowledged) == TOPICS
    assert not found.lost
    assert not found.unknown
