"""A drain under faults: the process ends in spite of held work."""

import json

import pytest

from limiter.clock import LoopClock
from tests.support.peers.frames import ping
from tests.support.peers.raw_peer import lookup_command
from tests.support.peers.rest_client import rest_client
from tests.support.processes.cluster import cluster, until

FAULTS = "/admin/v2/floodgate/faults"
TOPIC = "persistent://public/default/held"
HOUR_MS = 3_600_000


@pytest.mark.parametrize("way", ["broker", "proxy", "pipe"])
@pytest.mark.parametrize(
    "fault",
    [
        {"on": ["LOOKUP"], "do": {"action": "delay", "delayMs": HOUR_MS}},
        {"on": ["LOOKUP"], "do": {"action": "stopReading"}},
        {"on": ["LOOKUP"], "do": {"action": "drain", "bytesPerSecond": 1}},
        {
            "on": ["LOOKUP_RESPONSE"],
            "direction": "sent",
            "do": {"action": "delay", "delayMs": HOUR_MS},
        },
    ],
    ids=["overtaken", "unread", "slow", "unsaid"],
)
async def test_a_drain_ends_in_time_despite_commands_held_by_a_fault(way, fault, caplog) -> None:
    async with cluster(both={"floodgateFaultsEnabled": "true"}, clock=LoopClock()) as parts:
        role = "broker" if way == "broker" else "proxy"
        server = parts.part(role)
        async with rest_client(server) as rest:
            target = parts.broker.service_url.removeprefix("pulsar://") if way == "pipe" else None
            peer = await parts.peer(role, target=target)
            answer = await rest.ask("POST", FAULTS, json.dumps(fault))
            assert answer.status == 200, answer
            await peer.send(lookup_command(1, TOPIC), ping())
            await until(lambda: server.faults.acted)
        await server.__aexit__(None, None, None)
        assert "did not end in time" not in caplog.text
        peer.close()
