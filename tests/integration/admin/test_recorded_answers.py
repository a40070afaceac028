"""A real broker's recorded REST answers, expected of both profiles.

Where it failed, or seemed to, only the status is recorded.
"""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.support.peers.rest_client import RestClient, rest_client
from tests.support.processes.cluster import cluster
from tools.record_rest_failures import MADE as SUBJECTS


def lines_of(file: str) -> list[dict[str, Any]]:
    text = (Path(__file__).parents[2] / "data" / file).read_text()
    return list(map(json.loads, text.splitlines()))


RECORDED, FAILURES = lines_of("rest_answers.jsonl"), lines_of("rest_failures.jsonl")
MADE = [(created, shown) for created, shown in pairwise(RECORDED) if created["method"] == "PUT"]
"""Namespaces created with policies, and their shown policies."""
STRICTER = {
    "clusterDispatchRate": 501,
    "latency_stats_sample_rate": 501,
    "migrated": 501,
    "resource_group_name": 501,
    '"limitSize":1000}': 400,
    '"limitSize":1099511627776': 412,
    '{"other":': 412,
    '"max_producers_per_topic":-3': 412,
    '"compaction_threshold":-1': 412,
    '["nope"]}': 400,
    '"topicType":"nope"': 412,
    "entryFilters": 400,
    "offload_policies": 412,
    # A real broker creates the namespace, and cannot write its policies.
    '"nope":{': 400,
}
"""By part of the body: policies refused here, as when set alone."""
OTHERWISE = {
    "v2/brokers/internal-configuration": "the real one's store is elsewhere",
    "v2/broker-stats/load-report": "not built here",
    "v2/broker-stats/allocator-stats/nope": "not built here",
    "v2/resource-quotas/public/default/0x00000000_0x40000001": "the sentence names the range",
}
NO_ACTIONS = '{"namespace_auth":{"r":["nope"]}}'
"""Grants of an unknown action: kept, as when granted alone."""


async def answer(rest: RestClient, line: dict[str, Any]) -> tuple[int, Any]:
    found = await rest.ask(line["method"], f"/admin/{line['path']}", line["body"] or None)
    try:
        return found.status, found.value
    except ValueError:
        return found.status, None


@pytest.mark.parametrize("profile", ["pulsar", "floodgate"])
async def test_disabled_features_and_missing_resources_answer_as_recorded(profile: str) -> None:
    async with cluster(profile=profile) as parts, rest_client(parts.broker) as rest:
        for line in RECORDED:
            if "/made-" not in line["path"] and line["path"] not in OTHERWISE:
                found = await answer(rest, line)
                if line["answer"] is None and found[0] >= 400:
                    found = found[0], None
                assert found == (line["status"], line["answer"]), line["path"]


async def test_a_broker_shows_its_owned_bundles_and_its_metadata_store_url() -> None:
    async with cluster() as parts, rest_client(parts.broker) as rest:
        own = parts.broker.urls.web_address
        await rest.done("PUT", "/admin/v2/persistent/public/default/t/subscription/s")
        owned = await rest.ask("GET", f"/admin/v2/brokers/standalone/{own}/ownedNamespaces")
        internals = await rest.ask("GET", "/admin/v2/brokers/internal-configuration")
        topics = await rest.ask("GET", "/admin/v2/broker-stats/topics")
    [heartbeat, bundle] = sorted(owned.value, reverse=True)[::-1]
    assert {heartbeat.partition("/0x")[0], bundle.partition("/0x")[0]} == {
        f"pulsar/{own}",
        "public/default",
    }
    assert internals.value["metadataStoreUrl"] == "memory:local"
    assert topics.status == 501


@pytest.mark.parametrize("profile", ["pulsar", "floodgate"])
async def test_a_namespace_has_the_policies_that_it_is_created_with(profile: str) -> None:
    async with cluster(profile=profile) as parts, rest_client(parts.broker) as rest:
        for created, shown in MADE:
            body = created["body"]
            refused = [
                status
                for part, status in STRICTER.items()
                if part in body and NO_ACTIONS not in body
            ]
            found, policies = await answer(rest, created), await answer(rest, shown)
            if refused or created["status"] == 400:
                assert (found[0], policies[0]) == (refused[0] if refused else 400, 404), body
            else:
                assert found[0] == created["status"], (body, found)
                assert policies == (shown["status"], shown["answer"]), body


@pytest.mark.parametrize("profile", ["pulsar", "floodgate"])
async def test_a_namespace_created_with_copied_policies_shows_equal_policies(profile: str) -> None:
    async with cluster(profile=profile) as parts, rest_client(parts.broker) as rest:
        for created, shown in MADE:
            if (await answer(rest, created))[0] == 204:
                one = await rest.ask("GET", f"/admin/{shown['path']}")
                await rest.done("PUT", f"/admin/{shown['path']}-copy", one.text)
                copy = await rest.ask("GET", f"/admin/{shown['path']}-copy")
                assert copy.value == one.value


@pytest.mark.parametrize("profile", ["pulsar", "floodgate"])
async def test_profile_pulsar_fails_as_recorded_and_floodgate_never_answers_5xx(profile) -> None:
    async with cluster(profile=profile) as parts, rest_client(parts.broker) as rest:
        for method, path, body in SUBJECTS:
            await rest.done(method, f"/admin/v2/{path}", body or None)
        found = []
        for line in FAILURES:
            answer = await rest.ask(
                line["method"], f"/admin/v2/{line['path']}", line["body"] or None
            )
            found.append(line | {"status": answer.status})
    if profile == "pulsar":
        assert found == FAILURES
    else:
        assert not [line for line in found if line["status"] >= 500]
