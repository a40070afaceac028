"""The base class of groups of clients, which has the keys that all behaviours share.

A behaviour is a subclass with further fields and a coroutine, ``client``, which each client runs,
over sockets and in virtual time.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, Field

from loadgen.plan.arrivals import Arrivals, AtOnce
from loadgen.plan.fields import Bytes, Count, Duration, Moment, Name, Part, Share, Speed, Whole

_SHORTEST_PERIOD = 0.1
_LEAST_BUFFER = 1152
"""Linux doubles SO_RCVBUF, and gives 2,304 bytes for all smaller values."""


def _some(rate: float) -> float:
    """Refuse a reading speed of 0, which could mean either no limit or no reading."""
    if not rate:
        raise ValueError(
            "must be more than 0: leave it out (or say null) to read as fast as it comes; "
            "never: true reads nothing"
        )
    return rate


def _given_by_linux(buffer: int) -> int:
    if 0 < buffer < _LEAST_BUFFER:
        raise ValueError(
            f"must be at least {_LEAST_BUFFER:,} bytes, the least that Linux has, or 0 for its own"
        )
    return buffer


class Reader(Part):
    """How clients read from their connections: speed, buffer and pauses.

    Attributes:
        rate: Bytes a second that each client reads at most; None is unlimited.
        buffer: Size of each connection's receive buffer (SO_RCVBUF); 0 keeps the kernel's default.
        never: Clients read no bytes after the handshake.
        stall_at, stall: Delay from the client's start until reading stops, and for how long.
    """

    rate: Annotated[Speed, AfterValidator(_some)] | None = None
    buffer: Annotated[Bytes, AfterValidator(_given_by_linux)] = 0
    never: bool = False
    stall_at: Moment = 0.0
    stall: Moment = 0.0


def _once_or_rarely(period: float) -> float:
    """Refuse a period of connection drops in which clients could not reconnect."""
    if 0 < period < _SHORTEST_PERIOD:
        raise ValueError(f"must be 0 (once) or at least {_SHORTEST_PERIOD:g}")
    return period


class Drops(Part):
    """Times at which clients drop their connections, which the next request opens again.

    Attributes:
        at: The first time, counted from the agreed start of the run.
        every: Time between two drops; 0 drops the connections only once.
        jitter: Share of a period by which each client is earlier or later, at random.
        share: Share of the group's clients that drop their connections.
    """

    at: Moment
    every: Annotated[Moment, AfterValidator(_once_or_rarely)] = 0.0
    jitter: Share = 0.0
    share: Annotated[Share, Field(gt=0)] = 1.0


class Group(Part):
    """A group of clients with the same behaviour.

    Attributes:
        name: Name of the group in reports and expectations.
        count: Number of clients.
        namespaces: The range of the run's namespaces that the clients use: number of the first, and
            number after the last; None is all. Client *i* of the group uses namespace *i* modulo
            their count.
        arrive: When each client starts.
        after: Seconds that are added to the start moments of all clients.
        read: How the clients read from their connections.
        drop: When the clients drop their connections; None is never.
        timeout: Seconds that a client waits for an answer.
    """

    operations: ClassVar[tuple[str, ...]]
    """Operations of the requests, as in the rows; the first is the behaviour's main operation."""
    opens: ClassVar[bool] = False
    """True if clients open a watch, producer or consumer before they stop reading."""
    changes_topics: ClassVar[bool] = False
    """True if the behaviour creates or deletes topics of its namespaces."""
    virtual: ClassVar[bool] = True
    """True if the behaviour runs in virtual time: without HTTP and messages."""

    name: Name
    count: Count
    namespaces: tuple[Whole, Whole] | None = None
    arrive: Arrivals = AtOnce()
    after: Moment = 0.0
    read: Reader = Reader()
    drop: Drops | None = None
    timeout: Duration = 30.0

    @property
    def family(self) -> str:
        """The client library whose requests and retries the group imitates; empty if none."""
        return ""

    @property
    def connections_each(self) -> int:
        """The largest number of connections that one client has at a time, if it uses a proxy.

        Each connection to a broker is a tunnel through the proxy.
        """
        return 2 if self.opens else 1

    def namespace_of(self, index: int, namespaces: int) -> int:
        """Return the index of a client's namespace, given the client's index in the group."""
        return index % namespaces

    def requests_each(self, seconds: float) -> float:
        """Return an estimate of the number of requests that one client sends in ``seconds``."""
        every = getattr(self, "every", 0.0)
        return max(1, math.ceil(seconds / every)) if every else 1.0

    @property
    def lasts(self) -> bool:
        """True if clients continue until the run ends, even after being served completely."""
        return True

    @property
    def countable(self) -> bool:
        """True if the number of the clients' requests is known before the run."""
        return False

    async def ready(self, me: Any) -> None:  # noqa: ANN401 - a LoadClient, of a higher floor
        """Connect a client before the run starts.

        This is also the place for work that would block the event loop during the run.
        """
        await me.service.ready()

    async def client(self, me: Any) -> None:  # noqa: ANN401 - a LoadClient, of a higher floor
        """Run a client until it is done; the run's end cancels it."""
        raise NotImplementedError
