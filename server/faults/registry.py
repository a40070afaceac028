"""Registry of a server's active faults: sets, lists, clears and counts them."""

from __future__ import annotations

import asyncio
from itertools import count
from random import Random
from typing import TYPE_CHECKING

from server.faults.selection import Selection

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from server.faults.fault import Fault, When


class Schedule:
    """Decides which of the successive matching commands a fault affects.

    Attributes:
        seen: Number of matching commands so far.
        fired: Number of commands that the fault has affected.
    """

    def __init__(self, when: When) -> None:
        self._when = when
        self._random = Random(when.seed)
        self.seen = 0
        self.fired = 0

    @property
    def over(self) -> bool:
        """True if the fault has already affected as many commands as it may."""
        return self._when.times is not None and self.fired >= self._when.times

    def due(self) -> bool:
        """Count a matching command, and return True if the fault affects it."""
        when, index = self._when, self.seen - self._when.after
        self.seen += 1
        if self.over or index < 0 or index % when.every:
            return False
        if when.probability < 1.0 and self._random.random() >= when.probability:
            return False
        self.fired += 1
        return True


MAX_FAULTS = 100
"""Most active faults: each frame is checked against all."""


class TooManyFaultsError(Exception):
    """No fault can be set, as MAX_FAULTS are active."""

    def __init__(self) -> None:
        super().__init__(f"{MAX_FAULTS} faults are set, the most there may be: clear some")


class SetFault:
    """An active fault, with the numbers of commands that matched and that were affected.

    Attributes:
        fault_id: The id by which the fault is awaited and cleared.
        fault: The document that describes the fault.
        kinds: The affected types of commands; None for all.
        cleared: True once the fault is not active any more.
    """

    def __init__(self, fault_id: str, fault: Fault) -> None:
        self.fault_id = fault_id
        self.fault = fault
        self.kinds = fault.kinds
        self.selection = Selection(fault.where)
        self.schedule = Schedule(fault.when)
        self.cleared = False
        self._when_cleared: dict[Callable[[], object], None] = {}
        self._waits: dict[asyncio.Future[None], int] = {}

    def about(self, kind: int | None) -> bool:
        """Return True if the fault affects commands of this type."""
        return self.kinds is None or kind in self.kinds

    def when_cleared(self, callback: Callable[[], object]) -> None:
        """Register a callback, called once when the fault is cleared, to end its delays."""
        self._when_cleared[callback] = None

    def forget(self, callback: Callable[[], object]) -> None:
        """Unregister a callback that ``when_cleared`` registered."""
        self._when_cleared.pop(callback, None)

    def fired(self) -> None:
        """Wake the requests that wait for as many actions of the fault as have now happened."""
        for wait, hits in self._waits.items():
            if not wait.done() and self.schedule.fired >= hits:
                wait.set_result(None)

    @property
    def waits(self) -> int:
        """Number of requests that wait for actions of the fault."""
        return len(self._waits)

    def settled(self, hits: int) -> bool:
        """Return True if the fault has acted ``hits`` times, or was cleared."""
        return self.cleared or self.schedule.fired >= hits

    async def wait(self, hits: int) -> None:
        """Wait until the fault has acted ``hits`` times, or was cleared."""
        if self.settled(hits):
            return
        wait = asyncio.get_running_loop().create_future()
        self._waits[wait] = hits
        try:
            await wait
        finally:
            del self._waits[wait]

    def clear(self) -> None:
        """Deactivate the fault, and end the delays that it caused."""
        self.cleared = True
        for wait in self._waits:
            if not wait.done():
                wait.set_result(None)
        waiting, self._when_cleared = self._when_cleared, {}
        for callback in waiting:
            callback()

    def as_json(self) -> dict[str, object]:
        """Return the fault's document, with its id and counts, as a JSON object."""
        schedule = self.schedule
        counts = {"seen": schedule.seen, "fired": schedule.fired, "over": schedule.over}
        return {"id": self.fault_id, **self.fault.as_json(), **counts}


class FaultRegistry:
    """The active faults of a server, of which there are at most MAX_FAULTS.

    Attributes:
        acted: Number of affected commands since startup, by action.
    """

    def __init__(self) -> None:
        self._faults: dict[str, SetFault] = {}
        self._numbers = count(1)
        self.acted: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._faults)

    @property
    def waits(self) -> int:
        """Number of requests that wait for actions of any fault."""
        return sum(one.waits for one in self)

    def __iter__(self) -> Iterator[SetFault]:
        return iter(tuple(self._faults.values()))

    def set(self, fault: Fault) -> SetFault:
        """Activate a fault, which affects commands from the next frame on.

        Raises:
            TooManyFaultsError: The limit of active faults is reached.
        """
        if len(self._faults) >= MAX_FAULTS:
            raise TooManyFaultsError
        found = SetFault(f"fault-{next(self._numbers)}", fault)
        self._faults[found.fault_id] = found
        return found

    def get(self, fault_id: str) -> SetFault | None:
        """Return the active fault with an id, or None if no such fault is active."""
        return self._faults.get(fault_id)

    def clear(self, fault_id: str) -> bool:
        """Deactivate the fault with an id; return False if no such fault is active."""
        found = self._faults.pop(fault_id, None)
        if found is not None:
            found.clear()
        return found is not None

    def clear_all(self) -> None:
        """Deactivate all faults."""
        for one in self:
            self.clear(one.fault_id)

    def count(self, action: str) -> None:
        """Count a command that an action of a fault affected."""
        self.acted[action] = self.acted.get(action, 0) + 1
