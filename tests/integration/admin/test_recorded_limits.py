"""A real broker's recorded answers at its web port's limits, expected of both profiles."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from tests.support.clocks.manual_clock import ManualClock
from tests.support.processes.cluster import cluster

LINES = (Path(__file__).parents[2] / "data" / "limits.jsonl").read_text().splitlines()
RECORDED = {line["case"]: line for line in map(json.loads, LINES)}
KEYS = {name: text for name, text in RECORDED["keys"]["keys"].items() if name.startswith("http")}
TENANTS, JSON = "/admin/v2/tenants", {"Content-Type": "application/json"}
BODY = b'{"allowedClusters":["standalone"]}'
DEVIATIONS = {
    ("floodgate", "a body of 1001 bytes"): 413,
    ("floodgate", "a body without a length"): 411,
    ("floodgate", "a line of 3000 bytes"): 431,
    ("pulsar", "a line of 3000 bytes"): 431,
}
"""The list in docs/profiles.md."""


async def unsized() -> AsyncIterator[bytes]:
    yield BODY


@pytest.mark.parametrize("profile", ["floodgate", "pulsar"])
async def test_oversized_and_too_frequent_requests_are_answered_as_recorded(profile: str) -> None:
    clock = ManualClock()
    requests = {
        "a body of 1000 bytes": ("PUT", f"{TENANTS}/a", BODY.ljust(1000), JSON),
        "a body of 1001 bytes": ("PUT", f"{TENANTS}/b", BODY.ljust(1001), JSON),
        "a body without a length": ("PUT", f"{TENANTS}/c", unsized(), JSON),
        "a header of 3000 bytes": ("GET", TENANTS, None, {"X-Long": "x" * 3000}),
        "a line of 3000 bytes": ("GET", f"{TENANTS}?x={'x' * 3000}", None, {}),
    }
    async with (
        cluster(profile=profile, broker=KEYS, clock=clock) as parts,
        aiohttp.ClientSession(parts.broker.web_service_url) as session,
    ):
        for case, (method, path, body, headers) in requests.items():
            async with session.request(method, path, data=body, headers=headers) as answer:
                found = answer.status
            assert found == DEVIATIONS.get((profile, case), RECORDED[case]["status"]), case
        for path in (TENANTS, "/metrics/", "/status.html"):
            clock.advance(1.5)
            refused = []
            for _ in range(8):
                async with session.get(path) as answer:
                    refused.append(answer.status == 429)
            assert refused == [False] * 6 + [True] * 2
            # The recording took time, during which the rate recovered.
            assert RECORDED[f"eight requests of {path}"]["refused"].index(True) >= 6
