"""Requests at which a real broker's REST fails, or seemed to: profile pulsar does as it does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.peers.rest_client import rest_client
from tests.support.processes.cluster import cluster
from tools.record_rest_failures import MADE

LINES = (Path(__file__).parents[2] / "data" / "rest_failures.jsonl").read_text().splitlines()
RECORDED = [json.loads(line) for line in LINES]


@pytest.mark.parametrize("profile", ["pulsar", "floodgate"])
async def test_profile_pulsar_fails_where_a_real_broker_does_and_floodgate_nowhere(
    profile: str,
) -> None:
    async with cluster(profile=profile) as parts, rest_client(parts.broker) as rest:
        for method, path, body in MADE:
            await rest.done(method, f"/admin/v2/{path}", body or None)
        found = []
        for line in RECORDED:
            answer = await rest.ask(
                line["method"], f"/admin/v2/{line['path']}", line["body"] or None
            )
            found.append(line | {"status": answer.status})
    if profile == "pulsar":
        assert found == RECORDED
    else:
        assert not [line for line in found if line["status"] >= 500]
