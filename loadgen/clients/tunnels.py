"""The brokers that a proxy is to pass connections on to: a lookup of each topic tells them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import proto.PulsarApi_pb2 as pb
from limiter.clock import LoopClock, deadline
from loadgen.clients.connection import ClientConnection
from loadgen.clients.context import ClientContext
from loadgen.clients.records import RequestCounters
from loadgen.clients.refusals import refusal_reason
from loadgen.errors import LoadgenError
from loadgen.scenario import ClientPlan
from proto.frames import encode_command

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadgen.clients.connect import Connects
    from loadgen.scenario import Scenario


async def tunnels_to(
    connector: Connects, scenario: Scenario, topics: Sequence[str]
) -> dict[str, str]:
    """Return ``host:port`` of the broker of each topic, if the service URL is a proxy's.

    A broker is asked once, for the first topic, and the result is empty: it is connected to itself.

    Raises:
        LoadgenError: There is no answer, or a refusal.
    """
    context = ClientContext(scenario, RequestCounters(), on_finished=lambda: None)
    asking = _Asking(ClientPlan(0, scenario.namespaces[0], 0.0, None), context)
    failure = await connector.connect(asking, 0)
    if failure is not None:
        raise LoadgenError(f"{scenario.service_url} cannot be reached: {failure}")
    try:
        async with deadline(LoopClock(), scenario.timeout_seconds):
            first = await asking.broker_of(topics[0])
            if first is None:
                return {}
            found = await asyncio.gather(*map(asking.broker_of, topics))
    except TimeoutError:
        raise LoadgenError(
            f"{scenario.service_url} answered no lookup within {scenario.timeout_seconds:g} s"
        ) from None
    finally:
        asking.close()
    return {topic: broker for topic, broker in zip(topics, found, strict=True) if broker}


class _Asking(ClientConnection):
    """A connection that looks topics up; mutable state: what it has asked."""

    def __init__(self, plan: ClientPlan, context: ClientContext[Scenario]) -> None:
        super().__init__(plan, context)
        self._asked: dict[int, tuple[str, asyncio.Future[str | None]]] = {}
        self._requests = 0

    async def broker_of(self, topic: str) -> str | None:
        """Return the broker of a topic behind a proxy; None where there is no proxy.

        Raises:
            LoadgenError: It was refused, or the connection was lost.
        """
        self._requests += 1
        answer: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        self._asked[self._requests] = topic, answer
        lookup = pb.CommandLookupTopic(topic=topic, request_id=self._requests, authoritative=False)
        self.send(encode_command(pb.BaseCommand(type=pb.BaseCommand.LOOKUP, lookupTopic=lookup)))
        return await answer

    def command_received(self, command: pb.BaseCommand) -> None:
        """Settle the lookup that a response answers."""
        if command.type != pb.BaseCommand.LOOKUP_RESPONSE:
            return
        response = command.lookupTopicResponse
        if response.response == pb.CommandLookupTopicResponse.Failed:
            reason = refusal_reason(response.error, response.message)
            self.refusal_received(response.request_id, reason)
        elif response.request_id in self._asked:
            _, answer = self._asked.pop(response.request_id)
            broker = urlsplit(response.brokerServiceUrl).netloc
            if not answer.done():
                answer.set_result(broker if response.proxy_through_service_url else None)

    def refusal_received(self, request_id: int, reason: str) -> None:
        """Fail the lookup that was refused."""
        topic, answer = self._asked.pop(request_id, ("", None))
        if answer is not None and not answer.done():
            answer.set_exception(LoadgenError(f"{topic} cannot be looked up: {reason}"))

    def ended(self, reason: str) -> None:
        """Fail all that is not answered."""
        for request_id in tuple(self._asked):
            self.refusal_received(request_id, reason)
