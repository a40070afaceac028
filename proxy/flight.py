"""A flight: one request to the broker, and the clients that wait for its answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Hashable

    import proto.PulsarApi_pb2 as pb
    from client.cnx import ClientCnx
    from limiter.dual import SharedOwner
    from limiter.lookups import LookupPermit
    from proto.topic_listing import TopicsAnswer
    from proto.transport import Connection
    from proxy.brokers import Address, BrokerConnections
    from proxy.errors import RequestError


class Requester:
    """One client's request that waits for a flight's answer."""

    __slots__ = ("cnx", "failed", "permit", "request_id")

    def __init__(
        self,
        cnx: Connection,
        request_id: int,
        permit: LookupPermit,
        failed: Callable[[int, RequestError], object],
    ) -> None:
        self.cnx = cnx
        self.request_id = request_id
        self.permit = permit
        self.failed = failed


class Flight:
    """One broker request and who waits for it.

    Attributes:
        owner: Those who wait for it, as the one holder of what is held for it; afterwards, those
            to whom its answer is on the way.
    """

    def __init__(
        self,
        key: Hashable,
        request: pb.CommandGetTopicsOfNamespace,
        brokers: BrokerConnections,
        address: Address,
        owner: SharedOwner,
    ) -> None:
        self.key = key
        self.request = request
        self.owner = owner
        self.waiting: dict[Connection, list[Requester]] = {}
        self.task: asyncio.Task[None] | None = None
        self.broker: ClientCnx | None = None
        self._brokers = brokers
        self._address = address

    def __repr__(self) -> str:
        return f"<Flight {self.request.namespace} for {len(self.waiting)} clients>"

    async def ask(self, admit: Callable[[int], bool] | None) -> TopicsAnswer:
        """Ask the broker; see ClientCnx.topics_raw."""
        self.broker = await self._brokers.get(self._address)
        return await self.broker.topics_raw(self.request, admit)
