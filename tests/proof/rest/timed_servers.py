"""A broker and the proxy before it in one loop whose turns are timed by processor time.

``python -m tests.proof.rest.timed_servers PROFILE few|many`` (partitions that a topic may have);
see ``benchmarks.controlled_process``.
"""

import asyncio
import os
import sys
from typing import Any

from benchmarks.command_lines import answer_commands
from broker.service import BrokerService
from client import Client
from limiter.clock import LoopClock, deadline
from proxy.service import ProxyService
from server.logs import LogFormat, LogLevel, configure_logs
from tests.proof.process_memory import resident_bytes
from tests.proof.rest.explained_turns import TimedTurns, timed_turns
from tests.support.processes.cluster import broker_config, no_errors_logged, proxy_config

_KEYS = {"floodgateFaultsEnabled": "true"}
FEW_PARTITIONS = {"maxNumPartitionsPerPartitionedTopic": "500"}
"""The collector scans all loaded topics in one turn: hence their small number."""
_DELETES = {"forceDeleteNamespaceAllowed": "true", "forceDeleteTenantAllowed": "true"}
_PATIENCE_SECONDS = 10.0


class TimedServers:
    def __init__(self, broker: BrokerService, proxy: ProxyService, turns: TimedTurns) -> None:
        self.broker = broker
        self.proxy = proxy
        self._turns = turns

    async def turn(self) -> dict[str, Any]:
        """Return the longest turns since the last take, with and without the collector."""
        turn, own = self._turns.take()
        return {
            "millis": turn.millis,
            "explained": str(turn),
            "collector_millis": turn.collector_millis,
            "own_millis": own.own_millis,
            "own_explained": str(own),
        }

    async def memory(self) -> dict[str, Any]:
        return {"bytes": resident_bytes(os.getpid())}

    async def fill(self, topic: str, messages: int) -> dict[str, Any]:
        """Send messages that stay."""
        async with deadline(LoopClock(), _PATIENCE_SECONDS):
            client = Client(self.broker.service_url)
            producer = await client.create_producer(topic)
            for number in range(messages):
                await producer.send(b"%d" % number)
            await client.close()
        return {}

    async def exchange(self, topic: str, subscription: str, messages: int) -> dict[str, Any]:
        """Send and receive messages, through the proxy and directly; return the number.

        Raises:
            TimeoutError: The messages did not arrive.
        """
        received = 0
        for url in (self.proxy.service_url, self.broker.service_url):
            async with deadline(LoopClock(), _PATIENCE_SECONDS):
                client = Client(url)
                consumer = await client.subscribe(topic, subscription)
                producer = await client.create_producer(topic)
                for number in range(messages):
                    await producer.send(b"%d" % number)
                    await consumer.acknowledge(await consumer.receive())
                    received += 1
                await client.close()
        return {"received": received}


async def serve(profile: str, few: str) -> None:
    most = FEW_PARTITIONS if few == "few" else {}
    keys = {**_KEYS, "floodgateProfile": profile}
    with timed_turns() as turns, no_errors_logged():
        async with BrokerService(broker_config({**keys, **_DELETES, **most})) as broker:
            keys["brokerServiceURL"] = broker.service_url
            keys["brokerWebServiceURL"] = broker.web_service_url
            async with ProxyService(proxy_config(keys)) as proxy:
                await _answer(TimedServers(broker, proxy, turns))


async def _answer(servers: TimedServers) -> None:
    await answer_commands(
        {"broker": servers.broker.web_service_url, "proxy": servers.proxy.web_service_url},
        {
            "turn": servers.turn,
            "memory": servers.memory,
            "fill": servers.fill,
            "exchange": servers.exchange,
        },
    )


if __name__ == "__main__":
    configure_logs(LogLevel.INFO, LogFormat.CONSOLE)
    asyncio.run(serve(*sys.argv[1:]))
