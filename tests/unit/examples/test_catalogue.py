"""The example of a listing plug-in, in a broker."""

from pathlib import Path

import pytest

import proto.PulsarApi_pb2 as pb
from examples.catalogue import PATH_VARIABLE, topics_by_team
from server.errors import StartError
from tests.support.processes.cluster import cluster

KEYS = {
    "pulsarResourcesExtendedClassName": "examples.catalogue:Catalogue",
    "enableBrokerTopicListWatcher": "false",
}
PAID, SENT = "persistent://shop/orders/paid", "persistent://shop/orders/sent"
SEEN = "non-persistent://shop/orders/seen"
LINES = f"payments,{PAID}\nshipping,{SENT}\npayments,{SEEN}\npayments,persistent://shop/other/x\n"


@pytest.fixture
def catalogue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "teams.csv"
    path.write_text(LINES)
    monkeypatch.setenv(PATH_VARIABLE, str(path))
    return path


@pytest.mark.usefixtures("catalogue")
async def test_a_listing_by_team_returns_the_topics_of_the_team() -> None:
    async with cluster({"shop/orders": [PAID, SENT]}, broker=KEYS) as parts:
        client = parts.client("broker")

        async def listed(
            mode: pb.CommandGetTopicsOfNamespace.Mode.ValueType, **properties: str
        ) -> list[str]:
            found = await client.topics_of_namespace("shop/orders", mode, properties=properties)
            return list(found.topics)

        modes = pb.CommandGetTopicsOfNamespace
        team = {"catalogue.team": "payments", "build": "17"}
        assert await listed(modes.PERSISTENT, **team) == [PAID]
        assert await listed(modes.NON_PERSISTENT, **team) == [SEEN]
        assert await listed(modes.ALL, **team) == [SEEN, PAID]
        assert await listed(modes.PERSISTENT, **{"catalogue.team": "nobody"}) == []
        assert await listed(modes.PERSISTENT, build="17") == [PAID, SENT]


async def test_a_broker_without_a_file_names_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(PATH_VARIABLE, raising=False)
    with pytest.raises(StartError, match=f"ValueError: set {PATH_VARIABLE}"):
        async with cluster(broker=KEYS):
            pass


def test_an_invalid_line_is_named(catalogue: Path) -> None:
    catalogue.write_text(LINES + "payments\n")
    with pytest.raises(ValueError, match="line 5: expected team,topic"):
        topics_by_team(catalogue)
