"""Clients that list the topics of their namespace, once or at intervals, without retries."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from loadgen.plan.arrivals import Concurrency
from loadgen.plan.fields import Moment, Pattern, Whole
from loadgen.plan.group import Group

if TYPE_CHECKING:
    from loadgen.engine.client import LoadClient
    from loadgen.engine.link import Answer


class List(Group):
    """List the topics of the client's namespace.

    Attributes:
        pattern: Local part of the topics pattern; without a pattern the whole namespace is listed.
        properties: Properties that the client sends with each list request (PIP-452).
        pipelined: Number of list requests that a client sends together.
        every: Time between two lists, whatever the outcome; 0 lists only once.
    """

    operations: ClassVar[tuple[str, ...]] = ("list",)

    do: Literal["list"] = "list"
    pattern: Pattern | None = None
    properties: dict[str, str] = Field(default_factory=dict)
    pipelined: Annotated[Whole, Field(ge=1, le=100_000)] = 1
    every: Moment = 0.0

    def requests_each(self, seconds: float) -> float:
        """Return an estimate of a client's number of requests in ``seconds``."""
        return self.pipelined * super().requests_each(seconds)

    @property
    def lasts(self) -> bool:
        """True if clients continue until the run ends, even after the first lists."""
        return self.every > 0

    @property
    def countable(self) -> bool:
        """True if the number of the clients' requests is known before the run."""
        return not self.every and not isinstance(self.arrive, Concurrency)

    async def client(self, me: LoadClient) -> None:
        """List topics at each scheduled time; after the first answers the client is served."""
        settling: asyncio.Task[None] | None = None
        pattern = None if self.pattern is None else f"persistent://{me.namespace}/{self.pattern}"
        async for due in me.ticks(self.every):
            asked = [
                me.spawn(me.list_topics(pattern=pattern, properties=self.properties, due=due))
                for _ in range(self.pipelined)
            ]
            settling = settling or me.spawn(self._settle(me, asked))
        if settling is not None:
            await settling

    async def _settle(self, me: LoadClient, first: list[asyncio.Task[Answer]]) -> None:
        failed = [answer.failed for answer in await asyncio.gather(*first) if answer.failed]
        if failed:
            me.gave_up(failed[0])
        else:
            me.back()
