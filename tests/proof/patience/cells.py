"""One error at one step beneath one client: set, triggered, cleared; then the client is used."""

import asyncio
from typing import Any, NamedTuple

from client import Client
from loadgen.places.server_process import ServerProcess
from tests.proof.faults.beside_clients import FAULTS
from tests.proof.patience.program import OK, Program
from tests.proof.servers import rest

TIMES = 2
ACTING_SECONDS = 5.0
LOOK_SECONDS = 0.2
ERRORS = (
    "TooManyRequests",
    "ServiceNotReady",
    "MetadataError",
    "PersistenceError",
    "UnknownError",
    "AuthorizationError",
    "AuthenticationError",
    "TopicNotFound",
    "NotAllowedError",
    "ConsumerBusy",
    "ConsumerAssignError",
)
CONNECT = "CONNECT"
ASKED = {"GET_LAST_MESSAGE_ID": "last", "SEEK": "seek"}
"""Steps that the attached program runs on command."""
STEPS = (CONNECT, "LOOKUP", "PARTITIONED_METADATA", "SUBSCRIBE", "PRODUCER", *ASKED)
FIRST, AGAIN = "first", "again"
GOES_ON, ENDED, NOT_ASKED = "goes on", "ended", "not asked"


class Cell(NamedTuple):
    """An error at a step.

    Attributes:
        when: At the first attachment, or after its loss.
    """

    when: str
    step: str
    error: str

    @property
    def kind(self) -> str:
        """The kind of client object."""
        return "producer" if self.step == "PRODUCER" else "consumer"


CELLS = tuple(
    Cell(when, step, error) for when in (FIRST, AGAIN) for step in STEPS for error in ERRORS
)


class Place:
    """A broker with faults, and a client that publishes to it."""

    def __init__(self, server: ServerProcess) -> None:
        self.server = server
        self.free = asyncio.Lock()
        self._publishing = Client(server.service_url)

    async def ask(self, method: str, document: object = None, path: str = "") -> Any:
        """Send a REST request about faults, or to another path."""
        return await asyncio.to_thread(rest, self.server.web_url, method, path or FAULTS, document)

    async def connect(self) -> None:
        """Open the publishing connection."""
        await self._publishing.connect()

    async def publish(self, topic: str) -> None:
        async with await self._publishing.create_producer(topic) as producer:
            await producer.send(b"x")

    async def close(self) -> None:
        await self._publishing.close()


class Playing:
    """A cell with a program."""

    def __init__(self, place: Place, program: Program, cell: Cell) -> None:
        self._place = place
        self._program = program
        self._cell = cell
        self._name = "-".join((program.name, *cell))
        self._topic = f"persistent://public/default/{self._name}"
        self._fault = ""

    async def outcome(self) -> str:
        """Return the client's reaction."""
        await self._place.connect()
        first = self._cell.when == FIRST
        try:
            if first and self._cell.step not in ASKED:
                await self._set()
                return await self._used(await self._attach())
            if (said := await self._attach()) != OK:
                return f"without an error: {said}"
            await self._set()
            if not first:
                await self._lose()
            if (verb := ASKED.get(self._cell.step)) is not None:
                return await self._used(await self._program.ask(self._name, verb))
            await self._acting()
            return await self._used(OK)
        finally:
            await self._clear()
            await self._program.ask(self._name, "close")

    async def _attach(self) -> str:
        url = self._place.server.service_url
        return await self._program.ask(self._name, self._cell.kind, url, self._topic)

    async def _set(self) -> None:
        document = {
            "on": [self._cell.step],
            "where": {} if self._cell.step == CONNECT else {"topic": self._topic},
            "when": {"times": TIMES},
            "do": {"action": "error", "error": self._cell.error},
        }
        self._fault = (await self._place.ask("POST", document))["id"]

    async def _lose(self) -> None:
        """Close the attachment from the broker; for CONNECT, the connection."""
        if self._cell.step != CONNECT:
            path = self._topic.replace("://", "/")
            await self._place.ask("PUT", None, f"{path}/unload")
            return
        lost = {
            "on": ["MESSAGE"],
            "direction": "sent",
            "when": {"times": 1},
            "do": {"action": "disconnect"},
        }
        set_fault = await self._place.ask("POST", lost)
        await self._place.publish(self._topic)
        await self._acting(set_fault["id"], 1)

    async def _fired(self, fault: str) -> int:
        found = await self._place.ask("GET")
        return next((int(one["fired"]) for one in found if one["id"] == fault), 0)

    async def _acting(self, fault: str = "", times: int = TIMES) -> None:
        """Wait until a fault has triggered its maximum number of times, or for a while."""
        for _ in range(int(ACTING_SECONDS / LOOK_SECONDS)):
            if await self._fired(fault or self._fault) >= times:
                return
            await asyncio.sleep(LOOK_SECONDS)

    async def _clear(self) -> None:
        if self._fault:
            await self._place.ask("DELETE", None, f"{FAULTS}/{self._fault}")
            self._fault = ""

    async def _used(self, said: str) -> str:
        """Use the client after the error is cleared; return the result."""
        fired = await self._fired(self._fault)
        await self._clear()
        if said != OK:
            return f"raises {said}"
        if self._cell.kind == "consumer":
            await self._place.publish(self._topic)
        used = await self._program.ask(self._name, "use")
        if used == "Timeout":
            return ENDED
        if used != OK:
            return f"ended: {used}"
        return GOES_ON if fired else NOT_ASKED
