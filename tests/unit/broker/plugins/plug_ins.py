"""Listing plug-ins for tests: good plug-ins, and each kind of broken plug-in."""

from __future__ import annotations

import asyncio
import sys
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.plugins.plugin import BrokerContext
    from broker.stores.store import Mode
    from proto.names import NamespaceName

NOT_A_CLASS = "text"


class Scripted:
    """A plug-in with scripted answers.

    Attributes:
        asked: Requests in order.
        answer: Return value; an exception is raised.
        go_on: Set to let calls end.
    """

    def __init__(self) -> None:
        self.asked: list[tuple[str, int, dict[str, str]]] = []
        self.answer: object = []
        self.go_on = asyncio.Event()
        self.go_on.set()
        self.cancelled = 0
        self.context: BrokerContext | None = None
        self.closed = False

    def initialize(self, context: BrokerContext) -> None:
        self.context = context

    async def list_topics_of_namespace(
        self, namespace: NamespaceName, mode: Mode, properties: Mapping[str, str]
    ) -> object:
        self.asked.append((str(namespace), mode, dict(properties)))
        try:
            await self.go_on.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer

    def close(self) -> None:
        self.closed = True


class Asynchronous(Scripted):
    """Gets ready and closes with coroutines."""

    async def initialize(self, context: BrokerContext) -> None:
        await asyncio.sleep(0)
        self.context = context

    async def close(self) -> None:
        await asyncio.sleep(0)
        self.closed = True


class Stubborn(Scripted):
    """Ignores cancellation until the event is set."""

    async def list_topics_of_namespace(
        self, namespace: NamespaceName, mode: Mode, properties: Mapping[str, str]
    ) -> object:
        self.asked.append((str(namespace), mode, dict(properties)))
        while not self.go_on.is_set():
            try:
                await self.go_on.wait()
            except asyncio.CancelledError:
                self.cancelled += 1
        return self.answer


class AtOnce(Scripted):
    """Forgot the async."""

    def list_topics_of_namespace(self, *_: object) -> list[str]:
        return []


class Incomplete:
    """Lacks two of the three."""

    def initialize(self, context: BrokerContext) -> None:
        """Get ready."""


class Abstract(Scripted, ABC):
    """Not finished."""

    @abstractmethod
    def more(self) -> None:
        """Be finished somewhere else."""


class NotMade(Scripted):
    """Cannot be made."""

    def __init__(self) -> None:
        raise ValueError("no file")


class NotReady(Scripted):
    """Cannot get ready."""

    def initialize(self, context: BrokerContext) -> None:
        raise OSError("no database")


class Exits(Scripted):
    """Ends the process, or would like to."""

    def initialize(self, context: BrokerContext) -> None:
        sys.exit("bye")


class NeverReady(Scripted):
    """Never gets ready."""

    async def initialize(self, context: BrokerContext) -> None:
        await asyncio.Event().wait()


class NeverClosed(Scripted):
    """Never closes."""

    async def close(self) -> None:
        await asyncio.Event().wait()


class NotClosed(Scripted):
    """Raises in close."""

    def close(self) -> None:
        raise RuntimeError("stuck")
