"""Base class of broker and proxy: a server that listens, reports readiness, and shuts down."""

from __future__ import annotations

import asyncio
import gc
import logging
from abc import ABC, abstractmethod
from functools import partial
from typing import TYPE_CHECKING, Self

from limiter.clock import deadline
from limiter.permits.ledger import UnbalancedLedgerError, check_all_balanced
from server.faults.connection import ConnectionFaults, OutgoingFaults
from server.faults.holds import Incoming
from server.http import ProcessState
from server.parts import CnxT
from server.tls.handshakes import AcceptedTls
from server.web_port import WebPort

if TYPE_CHECKING:
    from collections.abc import Callable

logger = logging.getLogger(__name__)


class ServerService(WebPort[CnxT], ABC):
    """Base class of a server that ``async with`` starts, and drains at the block's end.

    Several servers can share a process, as they have no globals.

    Raises:
        TlsFilesError: Certificates cannot be used.
    """

    @abstractmethod
    async def _start(self) -> None:
        """Prepare the server and open its ports, by ``_serve_http`` and ``_serve_clients``.

        Raises:
            StartError: The start failed; the error is a sentence.
        """

    async def __aenter__(self) -> Self:
        try:
            await self._start()
        except BaseException:
            await self._exits.aclose()
            raise
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        await self._drain()
        try:
            check_all_balanced(self.ledgers.values())
        except UnbalancedLedgerError as error:
            logger.error("after the drain %s", error)
            if kind is None:
                raise

    async def _serve_clients(
        self,
        factory: Callable[[AcceptedTls | None], CnxT],
        port: int | None,
        port_key: str,
    ) -> None:
        """Accept clients on the plaintext port and the TLS port, and report readiness.

        Args:
            factory: Makes a connection, with its TLS layer if any.
            port: The plaintext (non-TLS) port; None for none.
            port_key: The port's configuration key; the TLS port's has Tls appended.
        """
        # Objects created so far are permanent: exclude them from garbage collection.
        gc.collect()
        gc.freeze()
        urls, tls, tls_port = self.urls, self.tls, self._server_config.service_port_tls
        if port is not None:
            found = await self._accept(lambda: factory(None), port, port_key)
            urls = urls._replace(service=self._url("pulsar", found))
        if tls is not None and tls_port is not None:
            found = await self._accept(
                lambda: factory(AcceptedTls(tls.layer(), self.handshakes)),
                tls_port,
                f"{port_key}Tls",
            )
            urls = urls._replace(service_tls=self._url("pulsar+ssl", found))
        self.urls = urls
        self._readiness.state = ProcessState.READY

    async def _accept(self, factory: Callable[[], CnxT], port: int, port_key: str) -> int:
        config = self._server_config
        listener = await self._listen(
            factory if self.faults is None else partial(self._made_with_faults, factory),
            config.bind_address,
            port,
            port_key=port_key,
            send_buffer_bytes=config.socket_send_buffer_bytes,
        )
        self._listeners.append(listener)
        self._exits.callback(listener.close)
        return listener.port

    def _made_with_faults(self, factory: Callable[[], CnxT]) -> CnxT:
        cnx = factory()
        if self.faults is not None:
            cnx.faults = ConnectionFaults(self.faults, self._clock, cnx, Incoming(cnx))
            OutgoingFaults(self.faults, self._clock, cnx)
        return cnx

    async def _send_clients_away(self) -> None:
        """Give up this server's topics, and tell clients to reconnect to other servers.

        Does not wait for any client.
        """

    def _served(self) -> str:
        return f"connections: {len(self.connections)}"

    async def _drain(self) -> None:
        """Shut down in the order below; when the time limit is reached, abort what is unfinished.

        1. Report the drain at the readiness endpoint and stop accepting connections.
        2. Tell clients to reconnect elsewhere; requests are still accepted.
        3. Accept no more requests, finish in-flight requests and send queued responses.
        4. Close the remaining connections, then the resources of the start, newest first.
        """
        began, grace = self._clock.now(), self._drain_seconds
        logger.info("the drain begins (%s); it may take %g s", self._served(), grace)
        self._readiness.state = ProcessState.DRAINING
        for listener in self._listeners:
            listener.close()
        self.handshakes.abort_all()
        self.flow.slow_peers.drain()
        try:
            async with deadline(self._clock, self._drain_seconds):
                await self._send_clients_away()
                for cnx in self.connections:
                    cnx.begin_drain()
                await asyncio.gather(*[cnx.drain() for cnx in self.connections])
                for cnx in list(self.connections):
                    await cnx.wait_closed()
        except TimeoutError:
            logger.warning("%d connections did not end in time", len(self.connections))
        left = self._served()
        for cnx in list(self.connections):
            cnx.abort()
            await cnx.wait_closed()
        self.limiter.close()
        await self._exits.aclose()
        took = self._clock.now() - began
        logger.info("the drain ended after %.1f s; left were (%s)", took, left)
