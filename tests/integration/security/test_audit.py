"""Each change over HTTP leaves a line in the log: role, change, address."""

import logging
from collections.abc import Iterator
from typing import Any

import aiohttp
import pytest

from server.logs import request_fields
from server.seeing.audit import logger
from tests.support.processes.cluster import cluster

TOPICS = "/admin/v2/persistent/public/default"

READS = (TOPICS, f"{TOPICS}/old/partitions?checkAllowAutoCreation=true", "/metrics/")
KEYS = {"floodgateFaultsEnabled": "true", "allowAutoTopicCreationType": "partitioned"}
PEEKED = f"{TOPICS}/old/subscription/new/position/1"


class Lines(logging.Handler):
    """Records log messages with their fields."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[str] = []
        self.fields: list[dict[str, Any]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.told.append(record.getMessage())
        self.fields.append(dict(request_fields.get()))


@pytest.fixture
def lines() -> Iterator[Lines]:
    handler, level = Lines(), logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield handler
    logger.removeHandler(handler)
    logger.setLevel(level)


async def ask(url: str, method: str, path: str) -> int:
    headers = {"X-Request-Id": "asked-1", "Content-Type": "application/json"}
    async with (
        aiohttp.ClientSession(url, headers=headers) as session,
        session.request(method, path) as answer,
    ):
        return answer.status


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("PUT", f"{TOPICS}/t", 204),
        ("PUT", f"{TOPICS}/old/subscription/s", 204),
        ("DELETE", f"{TOPICS}/old", 204),
        ("POST", "/admin/v2/brokers/configuration/maxTenants/5", 200),
        ("DELETE", "/admin/v2/brokers/configuration/maxTenants", 200),
        ("POST", "/admin/v2/namespaces/public/default/permissions/bob", 400),
        ("GET", READS[1], 200),
        ("GET", f"{TOPICS}/new/partitions?checkAllowAutoCreation=true", 200),
        ("GET", PEEKED, 404),
        ("GET", "/admin/v2/brokers/backlog-quota-check", 204),
        ("DELETE", "/admin/v2/floodgate/faults", 204),
        ("PUT", f"{TOPICS}/old", 409),
        ("GET", READS[0], 200),
        ("GET", READS[2], 200),
    ],
)
@pytest.mark.parametrize("profile", ["floodgate", "pulsar"])
async def test_a_change_is_logged_once_and_a_request_without_a_change_is_not(
    method: str, path: str, status: int, profile: str, lines: Lines
) -> None:
    topics = {"public/default": ["persistent://public/default/old"]}
    async with cluster(topics, profile, KEYS) as parts:
        assert await ask(parts.broker.web_service_url, method, path) == status
    is_change = status < 300 and path not in READS
    is_change |= path == PEEKED  # PEEKED made a subscription without a message
    assert len(lines.told) == is_change
    if is_change:
        assert lines.told[0].startswith(f"changed by somebody, without authentication: {method} /")
        fields = {"request_id": "asked-1", "address": "127.0.0.1"}
        assert lines.fields[0].items() >= fields.items()
