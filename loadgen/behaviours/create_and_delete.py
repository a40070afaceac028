"""Clients that create topics through the admin REST API and delete each one later.

A topic's name contains the due times of its creation and deletion, so a watch on another task or
host can compute the delay of a notification.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, ClassVar, Literal

import proto.PulsarApi_pb2 as pb
from client.admin.errors import AdminError
from client.discovery.schedule import Unanswered
from loadgen.access import admin_of
from loadgen.engine.link import CUT
from loadgen.engine.rows import Failed, masked
from loadgen.plan.fields import Duration
from loadgen.plan.group import Group
from proto.names import TopicName

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from client.admin.pulsar_admin import PulsarAdmin
    from loadgen.engine.client import LoadClient

_PREFIX = "loadgen-churn"


class CreateAndDelete(Group):
    """Create topics at intervals through the admin REST API, and delete each after its lifetime.

    Attributes:
        every: Time between two creations by a client.
        lifetime: Time from the creation of a topic to its deletion.
    """

    operations: ClassVar[tuple[str, ...]] = ("create", "delete")
    changes_topics: ClassVar[bool] = True
    virtual: ClassVar[bool] = False

    do: Literal["create-and-delete"] = "create-and-delete"
    every: Duration = 1.0
    lifetime: Duration = 2.0

    def requests_each(self, seconds: float) -> float:
        """Return an estimate of a client's number of requests in ``seconds``."""
        return 2 * super().requests_each(seconds)

    async def ready(self, me: LoadClient) -> None:
        """Connect the client before the run starts.

        The REST client is imported too: an import during the run would delay other clients.
        """
        await super().ready(me)
        from client.admin import pulsar_admin  # noqa: F401 - a tenth of a second, for who needs it

    async def client(self, me: LoadClient) -> None:
        """Create topics on schedule, and wait until each is deleted, even after the run's end."""
        lives: list[asyncio.Task[None]] = []
        with me.not_idle():
            async with admin_of(me.context.admin_url, self.timeout) as admin:
                async for due in me.ticks(self.every):
                    lives.append(me.spawn(self._live(me, admin, len(lives), due)))
                    me.back()
                await asyncio.gather(*lives)

    async def _live(self, me: LoadClient, admin: PulsarAdmin, number: int, due: float) -> None:
        """Create a topic, and delete it at the end of its lifetime."""
        ends = due + self.lifetime
        name = f"{_PREFIX}-{me.plan.number}-{number}-{_ms(due)}-{_ms(ends)}"
        topic = TopicName.parse(f"persistent://{me.namespace}/{name}")
        if await self._call(me, "create", admin.topics.create, topic, due):
            await me.until(ends)
            await self._call(me, "delete", admin.topics.delete, topic, ends)

    async def _call(
        self,
        me: LoadClient,
        operation: str,
        call: Callable[[TopicName], Awaitable[object]],
        topic: TopicName,
        due: float,
    ) -> bool:
        row = me.begin_row(operation, due, item=str(topic))
        row.sent = me.now()
        failed = CUT.failed
        try:
            await call(topic)
            failed = None
        except AdminError as error:
            status = getattr(error, "status", None)
            code = Unanswered.UNREACHABLE if status is None else pb.UnknownError
            failed = Failed(code, masked(str(error)))
        finally:
            me.end_row(row, failed)
        return failed is None


def _ms(seconds: float) -> int:
    return round(seconds * 1000)


def due_of(topic: str, *, created: bool) -> float | None:
    """Return when a topic's creation or deletion was due, as read from the topic's name.

    The time is in seconds since the run's start; None if the topic is not from
    ``create-and-delete``.
    """
    parts = topic.rpartition("/")[2].removeprefix(f"{_PREFIX}-").split("-")
    if f"/{_PREFIX}-" not in topic or len(parts) != 4:
        return None
    return int(parts[2 if created else 3]) / 1000
