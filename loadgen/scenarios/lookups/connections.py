"""The connections of the scenario ``lookups``: one lists topics first, others look them up."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from limiter.clock import deadline
from loadgen.clients.answers import parse_answer
from loadgen.clients.connection import ClientConnection, lookup_frame, request_frame
from loadgen.clients.refusals import refusal_reason
from loadgen.clients.scheduled_client import ScheduledConnection
from loadgen.errors import LoadgenError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadgen.clients.answer_stream import Listing
    from loadgen.clients.context import ClientContext
    from loadgen.scenario import ClientPlan
    from loadgen.scenarios.lookups.scenario import LookupsScenario


def frame_in_turn(topics: Sequence[str], first: int, step: int, request_id: int) -> bytes:
    """Return a LOOKUP; a client's requests take every ``step``-th topic from number ``first``."""
    return lookup_frame(topics[(first + (request_id - 1) * step) % len(topics)], request_id)


class LookupConnection(ScheduledConnection):
    """A client's connection. Redirects count as answers and are not followed."""

    def command_received(self, command: pb.BaseCommand) -> None:
        """Settle the lookup that a response answers."""
        if command.type != pb.BaseCommand.LOOKUP_RESPONSE:
            return
        response = command.lookupTopicResponse
        if response.response == pb.CommandLookupTopicResponse.Failed:
            reason = refusal_reason(response.error, response.message)
            self.client.refused(response.request_id, reason)
        elif self.client.awaits(response.request_id):
            self.client.answered(response.request_id, command.ByteSize(), None)


class TopicListing(ClientConnection):
    """A connection that asks for the topics of one namespace. Mutable state: their names."""

    def __init__(self, plan: ClientPlan, context: ClientContext[LookupsScenario]) -> None:
        super().__init__(plan, context)
        self._topics: asyncio.Future[list[str]] = asyncio.get_running_loop().create_future()

    async def topics(self) -> list[str]:
        """Return the topics that can be looked up.

        Raises:
            LoadgenError: There are none, or the server does not say.
        """
        name, scenario = self.plan.namespace.name, self.context.scenario
        self.send(request_frame(name, scenario.pattern, 1))
        try:
            async with deadline(self.context.clock, scenario.timeout_seconds):
                topics = await self._topics
        except TimeoutError:
            raise LoadgenError(
                f"{name} cannot be listed: no complete answer in {scenario.timeout_seconds:g} s"
            ) from None
        if not topics:
            raise LoadgenError(f"{name} lists no topics to look up: check --namespace, --pattern")
        return topics

    def listing_received(self, listing: Listing) -> None:
        """Take the names."""
        if not self._topics.done():
            self._topics.set_result(list(parse_answer(listing.body.data()).topics))

    def refusal_received(self, request_id: int, reason: str) -> None:
        """Give up: without topics there is nothing to look up."""
        del request_id
        self._fail(reason)

    def ended(self, reason: str) -> None:
        """Give up: without topics there is nothing to look up."""
        self._fail(reason)

    def _fail(self, reason: str) -> None:
        if not self._topics.done():
            name = self.plan.namespace.name
            self._topics.set_exception(LoadgenError(f"{name} cannot be listed: {reason}"))
