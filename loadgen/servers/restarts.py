"""A server that can be killed and started again where it was, while clients are connected."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from loadgen.servers.processes import READY_SECONDS, await_ready, start, stop

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator

    from loadgen.servers.processes import ServerLaunch, ServerProcess

_PORT_KEYS = {"broker": "brokerServicePort", "proxy": "servicePort"}


class RestartableServer:
    """A running server; mutable state: its process, another one after each restart."""

    def __init__(self, launch: ServerLaunch, threads: ThreadPoolExecutor) -> None:
        self._launch = launch
        self._threads = threads
        self._process: subprocess.Popen[bytes] | None = None
        launch.log.parent.mkdir(parents=True, exist_ok=True)
        launch.log.write_bytes(b"")
        self.server = self._threads.submit(self._start).result()

    def restart(self) -> ServerProcess:
        """Kill it, start it on the same ports, and return it once it is ready.

        Raises:
            ServerStartError: It did not come up again.
        """
        self.stop(kill=True)
        urls = {
            _PORT_KEYS[self._launch.module]: self.server.service_url,
            "webServicePort": self.server.web_url,
        }
        ports = {key: str(urlsplit(url).port) for key, url in urls.items()}
        self._launch = replace(self._launch, settings={**self._launch.settings, **ports})
        # The kernel ends a server with the thread that started it: that has to outlive the restart.
        self.server = self._threads.submit(self._start).result()
        return self.server

    def stop(self, *, kill: bool = False) -> None:
        """End the process: let it drain, or kill it."""
        process, self._process = self._process, None
        if process is not None:
            if kill:
                process.kill()
            stop(process)

    def _start(self) -> ServerProcess:
        with self._launch.log.open("ab") as log:  # behind what a killed one wrote
            self._process = start(self._launch, log.fileno())
        try:
            return await_ready(self._process, self._launch, READY_SECONDS)
        except BaseException:
            self.stop()
            raise


@contextmanager
def restartable_server(launch: ServerLaunch) -> Iterator[RestartableServer]:
    """Start a server, hand it out when it is ready, stop it at the end of the block.

    Raises:
        ServerStartError: It ended, or said nothing, instead of becoming ready.
    """
    with ThreadPoolExecutor(1, thread_name_prefix=f"start-{launch.module}") as threads:
        server = RestartableServer(launch, threads)
        try:
            yield server
        finally:
            server.stop()
