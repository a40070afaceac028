"""Producer names from a broker: short, and new after each start."""

import pytest

from tests.support.processes.cluster import cluster


@pytest.mark.parametrize("profile", ["floodgate", "pulsar"])
async def test_generated_names_contain_the_start_count_of_the_store(profile: str, tmp_path) -> None:
    keys, names = {"metadataStoreUrl": f"sqlite:///{tmp_path}/topics.db"}, []
    for _ in range(2):
        async with cluster(profile=profile, broker=keys) as parts:
            names += [parts.broker.messaging.producer_names.generate() for _ in range(2)]
    assert names == ["standalone-0-0", "standalone-0-1", "standalone-1-0", "standalone-1-1"]


@pytest.mark.parametrize(("profile", "most"), [("floodgate", 99_999), ("pulsar", 0)])
async def test_with_a_memory_store_the_start_number_in_a_name_is_short(profile, most) -> None:
    async with cluster(profile=profile) as parts:
        name = parts.broker.messaging.producer_names.generate()
    assert 0 <= int(name.split("-")[1]) <= most
