"""The interface of operators' listing plug-ins (PIP-452), and the loading of a plug-in.

``pulsarResourcesExtendedClassName=module:Class`` selects a plug-in; Java's default class name
selects the default. Also shipped: ``broker.property_index:PropertyIndex``.
"""

from __future__ import annotations

import inspect
import logging
from abc import ABC, abstractmethod
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from broker.configuration.plugin_keys import CLASS_KEY, DEFAULT_CLASS_NAME
from broker.topic_lists.sequence import EMPTY_LISTING, TopicListing
from limiter.clock import Clock, deadline
from server.configuration.loaded_class import UnusableClassError, loaded_class, told
from server.errors import StartError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence

    from broker.configuration.config import BrokerConfig
    from broker.stores.store import MetadataStore, Mode
    from proto.names import NamespaceName

logger = logging.getLogger(__name__)

CLOSE_SECONDS = 5.0
"""Time limit of ``close``."""
_METHODS = ("initialize", "list_topics_of_namespace", "close")


@dataclass(frozen=True, slots=True)
class BrokerContext:
    """The broker's topics and configuration, passed to a plug-in (Pulsar: PulsarService).

    Attributes:
        store: The broker's topics; ``select`` pushes a filter down to an index.
        config: The broker's configuration.
    """

    store: MetadataStore
    config: BrokerConfig


class PulsarResourcesExtended(ABC):
    """The interface of a listing plug-in, whose class need not inherit from this one.

    Source: PIP-452, PulsarResourcesExtended.
    """

    @abstractmethod
    def initialize(self, context: BrokerContext) -> Awaitable[None] | None:
        """Prepare the plug-in, before the broker serves clients.

        May be ``async`` or not. An exception ends the broker's start.
        """

    @abstractmethod
    async def list_topics_of_namespace(
        self, namespace: NamespaceName, mode: Mode, properties: Mapping[str, str]
    ) -> TopicListing | Sequence[str]:
        """Return the topics that a client with the given properties is shown.

        The method runs on the broker's event loop: it may wait but must not compute for long or
        block. Run blocking code with ``asyncio.to_thread``.

        Args:
            namespace: The namespace, existing or not.
            mode: PERSISTENT, NON_PERSISTENT or ALL.
            properties: The client's, untrusted and never empty: requests without properties bypass
                the plug-in.

        Returns:
            Full names of the namespace and mode, each partition separately, as a list in any order;
                or
            a TopicListing, used unchecked.
        """

    @abstractmethod
    def close(self) -> Awaitable[None] | None:
        """Release the plug-in's resources when the broker shuts down.

        May be ``async`` or not.
        """


class DefaultPulsarResourcesExtended(PulsarResourcesExtended):
    """The default plug-in: it lists all topics of the namespace, ignoring client properties.

    Source: upstream DefaultPulsarResourcesExtended.
    """

    def __init__(self) -> None:
        self._store: MetadataStore | None = None

    def initialize(self, context: BrokerContext) -> None:
        """Remember the broker's store of topics."""
        self._store = context.store

    @property
    def store(self) -> MetadataStore:
        """The broker's store of topics.

        Raises:
            RuntimeError: Before ``initialize``.
        """
        if self._store is None:
            raise RuntimeError("initialize was not called")
        return self._store

    async def list_topics_of_namespace(
        self, namespace: NamespaceName, mode: Mode, properties: Mapping[str, str]
    ) -> TopicListing | Sequence[str]:
        """Return all topics of the namespace and mode, whatever the client's ``properties``.

        See PulsarResourcesExtended.
        """
        snapshot = await self.store.snapshot(namespace)
        return snapshot.listing(mode) if snapshot is not None else EMPTY_LISTING

    def close(self) -> None:
        """Do nothing: the broker closes its store itself."""


@asynccontextmanager
async def open_resources(
    name: str, context: BrokerContext, timeout_seconds: float, clock: Clock
) -> AsyncIterator[PulsarResourcesExtended]:
    """Load a plug-in, keep it initialized while the ``async with`` block runs, then close it.

    Args:
        name: pulsarResourcesExtendedClassName.
        context: The parts of the broker available to the plug-in.
        timeout_seconds: Time limit of ``initialize``.
        clock: The source of time.

    Raises:
        StartError: The plug-in fails to load or to initialize.
    """
    resources = _loaded(name)
    try:
        async with deadline(clock, timeout_seconds):
            await _done(resources.initialize(context))
    except TimeoutError:
        text = f"initialize took more than {timeout_seconds:g} s"
        raise StartError(f"{CLASS_KEY}={name}: {text}") from None
    except (Exception, SystemExit) as error:
        raise StartError(f"{CLASS_KEY}={name}: initialize failed: {told(error)}") from error
    try:
        yield resources
    finally:
        await _closed(resources, name, clock)


async def _closed(resources: PulsarResourcesExtended, name: str, clock: Clock) -> None:
    """Close a plug-in; errors are only logged, so that the broker can shut down."""
    try:
        async with deadline(clock, CLOSE_SECONDS):
            await _done(resources.close())
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the broker ends all the same
        logger.warning("%s=%s: close failed: %s", CLASS_KEY, name, told(error))


async def _done(result: Awaitable[None] | None) -> None:
    if inspect.isawaitable(result):
        await result


def _loaded(name: str) -> PulsarResourcesExtended:
    if name == DEFAULT_CLASS_NAME:
        return DefaultPulsarResourcesExtended()
    try:
        return _made(loaded_class(name, object, _METHODS))
    except UnusableClassError as error:
        raise StartError(f"{CLASS_KEY}={name}: {error}") from error.__cause__


def _made(found: type[Any]) -> PulsarResourcesExtended:
    try:
        made: PulsarResourcesExtended = found()  # Duck-typed: inheritance is optional.
    except (Exception, SystemExit) as error:
        raise UnusableClassError(f"{found.__name__}() failed: {told(error)}") from error
    return made
