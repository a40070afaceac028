"""Clients that list their namespace, sleep, and list it again with a pattern."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from loadgen.plan.fields import Duration, Pattern
from loadgen.plan.group import Group

if TYPE_CHECKING:
    from loadgen.engine.client import LoadClient


class ListAgain(Group):
    """List the topics of a namespace twice, the second time with a pattern.

    Attributes:
        pattern: Local part of the topics pattern of the second list; the first list has none.
        pause: Time from the answer to the first list until the second request.
    """

    operations: ClassVar[tuple[str, ...]] = ("list",)

    do: Literal["list-again"] = "list-again"
    pattern: Pattern
    pause: Duration = 1.0

    def requests_each(self, seconds: float) -> float:
        """Return 2, the number of list requests that each client sends."""
        del seconds
        return 2.0

    @property
    def lasts(self) -> bool:
        """False: the run may end when all clients have received both lists."""
        return False

    async def client(self, me: LoadClient) -> None:
        """List the namespace's topics, sleep, and list them again with the pattern."""
        first = await me.list_topics(due=me.started)
        if first.failed is not None:
            me.gave_up(first.failed)
            return
        await me.sleep(self.pause)
        second = await me.list_topics(pattern=f"persistent://{me.namespace}/{self.pattern}")
        if second.failed is not None:
            me.gave_up(second.failed)
            return
        me.back()
