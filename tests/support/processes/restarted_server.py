"""A server process that is killed and restarted with the same port and messages."""

import asyncio
import sys
from pathlib import Path
from typing import Self

from tests.support.processes.server_process import READY_SECONDS, REPOSITORY


class RestartedServer:
    """A server process.

    Args:
        module: ``broker`` or ``proxy``.
        keys: Its configuration.
        log: File for standard error.

    Attributes:
        service_url: ``pulsar://host:port``; unchanged by a restart.
    """

    def __init__(self, module: str, keys: dict[str, str], log: Path) -> None:
        self._module, self._log = module, log
        self._port_key = "brokerServicePort" if module == "broker" else "servicePort"
        self._keys = {
            "bindAddress": "127.0.0.1",
            "advertisedAddress": "127.0.0.1",
            "webServicePort": "0",
            self._port_key: "0",
            **keys,
        }
        self._process: asyncio.subprocess.Process | None = None
        self.service_url = ""

    async def start(self) -> None:
        """Start the process and return when it is ready."""
        settings = [one for pair in self._keys.items() for one in ("--set", "=".join(pair))]
        with self._log.open("ab") as errors:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                self._module,
                *settings,
                stdout=asyncio.subprocess.PIPE,
                stderr=errors,
                cwd=REPOSITORY,
            )
        try:
            line = await self._first_line(self._process)
            assert line.startswith("READY"), f"{line!r}: {self._log.read_text()[-2000:]}"
        except BaseException:
            await self.kill()
            raise
        self.service_url = line.split()[2]
        self._keys[self._port_key] = self.service_url.rpartition(":")[2]

    async def _first_line(self, process: asyncio.subprocess.Process) -> str:
        assert process.stdout is not None
        async with asyncio.timeout(READY_SECONDS):  # noqa: TID251 - a process is waited for
            return (await process.stdout.readline()).decode()

    async def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            await self._process.communicate()
            self._process = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.kill()


def restarted_broker(folder: Path) -> RestartedServer:
    """Return a broker with messages on disk."""
    keys = {"floodgateMessageStore": f"sqlite://{folder / 'messages.db'}?fsync=true"}
    return RestartedServer("broker", keys, folder / "broker.log")


def proxy_of(broker: RestartedServer, folder: Path) -> RestartedServer:
    """Return a proxy in front of the broker."""
    return RestartedServer("proxy", {"brokerServiceURL": broker.service_url}, folder / "proxy.log")
