"""Clients that look up topics at intervals: they ask which broker serves a topic."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from loadgen.plan.fields import Duration
from loadgen.plan.group import Group

if TYPE_CHECKING:
    from loadgen.engine.client import LoadClient


class Lookup(Group):
    """Ask, at intervals, which broker serves a topic, and follow redirects.

    Attributes:
        every: Time between two lookups of a client.
        topic: Local part of the topic's name; ``{n}`` stands for the number of the lookup. The
            topic need not exist: a broker owns bundles, not topics.
    """

    operations: ClassVar[tuple[str, ...]] = ("lookup",)

    do: Literal["lookup"] = "lookup"
    every: Duration = 1.0
    topic: str = "loadgen-{n}"

    async def client(self, me: LoadClient) -> None:
        """Look up the broker of a topic at each scheduled time."""
        number = 0
        async for due in me.ticks(self.every):
            topic = f"persistent://{me.namespace}/{self.topic.replace('{n}', str(number))}"
            me.spawn(me.look_up(topic, due))
            number += 1
