"""What a run is: who asks for what, from where and when; first of all, what a storm is.

A scenario is a value. The schedule is a pure function of it: client *i* asks for the same
namespace at the same moment whatever executor runs it and over however many tasks it is split.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from ipaddress import IPv4Address
from typing import TYPE_CHECKING, Annotated, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, field_validator

if TYPE_CHECKING:
    from collections.abc import Iterator

DEFAULT_BINARY_PORT = 6650
# About 28,000 ports are free for one pair of source and destination address (Linux's default
# range), some of them taken by others: every further 20,000 clients get a source of their own.
CLIENTS_PER_SOURCE_ADDRESS = 20_000
_FIRST_EXTRA_SOURCE = IPv4Address("127.0.0.2")


class NamespaceExpectation(BaseModel):
    """A namespace and, where known, what a right listing of it holds.

    Attributes:
        name: ``tenant/namespace``.
        topics: Number of listed names, or None when unknown.
        hash: Pulsar's topics hash of the names, or None when unknown.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    topics: Annotated[int, Field(ge=0)] | None = None
    hash: Annotated[str, Field(pattern="^[0-9a-f]{8}$")] | None = None

    @field_validator("name")
    @classmethod
    def _tenant_and_namespace(cls, name: str) -> str:
        parts = name.split("/")
        if len(parts) != 2 or not all(parts):
            raise ValueError(f"namespace {name!r} is not of the form tenant/namespace")
        return name


class ListingScenario(BaseModel):
    """What every run has: clients that list topics at an address.

    Attributes:
        service_url: ``pulsar://host:port`` of a broker or proxy.
        namespaces: What is asked for; client *i* asks for number *i* modulo their count.
        pattern: Topics pattern sent with each request, or None.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    service_url: str
    namespaces: Annotated[tuple[NamespaceExpectation, ...], Field(min_length=1)]
    pattern: str | None = None

    @field_validator("service_url")
    @classmethod
    def _readable_service_url(cls, service_url: str) -> str:
        parse_service_url(service_url)
        return service_url

    @property
    def address(self) -> tuple[str, int]:
        """Host and port of the service URL."""
        return parse_service_url(self.service_url)


class StormScenario(ListingScenario):
    """A restart storm: many clients, one listing each, no retries.

    Attributes:
        clients: Number of connections.
        read_rate_bytes_per_second: How fast each client reads its answer; 0 reads unlimited.
        receive_buffer_bytes: SO_RCVBUF of each connection, set before it connects; 0 leaves
            the kernel's own.
        requests_per_client: Listings that one client asks for, each when the last is settled.
        spread_seconds: Intended starts are spread evenly over this time; 0 starts all at once.
        timeout_seconds: How long a client waits for an answer before it leaves.
        seed: Decides the order in which clients start when starts are spread.
    """

    kind: Literal["storm"] = "storm"
    clients: Annotated[int, Field(ge=1, le=1_000_000)] = 1000
    read_rate_bytes_per_second: Annotated[float, Field(ge=0)] = 100_000.0
    receive_buffer_bytes: Annotated[int, Field(ge=0, le=1 << 30)] = 65_536
    requests_per_client: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    spread_seconds: Annotated[float, Field(ge=0, le=86_400)] = 0.0
    timeout_seconds: Annotated[float, Field(gt=0, le=86_400)] = 120.0
    seed: int = 1


@dataclass(frozen=True, slots=True)
class ClientPlan:
    """One client's part of the schedule.

    Attributes:
        client: Number of the client, from 0.
        namespace: What it asks for.
        intended_start_seconds: When it asks first, relative to the agreed T0.
        source_address: Local address to connect from, or None for the kernel's choice.
    """

    client: int
    namespace: NamespaceExpectation
    intended_start_seconds: float
    source_address: str | None


def parse_service_url(service_url: str) -> tuple[str, int]:
    """Return host and port of ``pulsar://host[:port]``.

    Raises:
        ValueError: Another scheme, several hosts, no host, or a port that is none.
    """
    form = "not of the form pulsar://host:port"
    try:
        parts = urlsplit(service_url)
        port = parts.port
    except ValueError:
        raise ValueError(form) from None
    if parts.scheme != "pulsar" or not parts.hostname or "," in parts.netloc:
        raise ValueError(form)
    return parts.hostname, DEFAULT_BINARY_PORT if port is None else port


def client_plans(
    scenario: StormScenario, task: int, tasks: int, *, loopback: bool = False
) -> Iterator[ClientPlan]:
    """Yield the clients of one task: every ``tasks``-th client, from number ``task``.

    Args:
        scenario: The storm.
        task: Number of the task, from 0.
        tasks: Number of tasks that share the storm.
        loopback: Whether the server is reached over 127.0.0.0/8, where more source addresses
            than one are at hand.
    """
    start_places = _start_places(scenario)
    for client in range(task, scenario.clients, tasks):
        yield ClientPlan(
            client=client,
            namespace=scenario.namespaces[client % len(scenario.namespaces)],
            intended_start_seconds=start_places[client]
            * (scenario.spread_seconds / scenario.clients),
            source_address=source_address(client) if loopback else None,
        )


def source_address(client: int) -> str | None:
    """Return the loopback address that a client connects from; None leaves it to the kernel."""
    group = client // CLIENTS_PER_SOURCE_ADDRESS
    return str(_FIRST_EXTRA_SOURCE + (group - 1)) if group else None


def _start_places(scenario: StormScenario) -> list[int]:
    places = list(range(scenario.clients))
    # Not cryptography: the same seed has to give the same storm everywhere.
    random.Random(scenario.seed).shuffle(places)
    return places
