"""The parameters that every scenario has: which server is asked for what, by how many clients.

A scenario is a value. The schedule is a pure function of it: client *i* asks for the same
namespace at the same moment whatever executor runs it and over however many tasks it is split.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address
from typing import Annotated, ClassVar
from urllib.parse import urlsplit

import re2
import regex
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator

TLS_SCHEME = "pulsar+ssl"
_DEFAULT_PORTS = {"pulsar": 6650, TLS_SCHEME: 6651}
# About 28,000 ports are free for one pair of source and destination address (Linux's default
# range), some of them taken by others: every further 20,000 clients get a source of their own.
CLIENTS_PER_SOURCE_ADDRESS = 20_000
_FIRST_EXTRA_SOURCE = IPv4Address("127.0.0.2")

ReadRate = Annotated[float, Field(ge=0)]
BufferSize = Annotated[int, Field(ge=0, le=1 << 30)]
Duration = Annotated[float, Field(gt=0, le=86_400)]
Moment = Annotated[float, Field(ge=0, le=86_400)]


def _expression(pattern: str) -> str:
    """Return a pattern that a broker's engine has: RE2, or for the rest a backtracking one.

    Raises:
        ValueError: It is no regular expression.
    """
    options = re2.Options()
    options.log_errors = False
    try:
        re2.compile(pattern, options)
    except re2.error:
        try:
            regex.compile(pattern)
        except regex.error as error:
            raise ValueError(
                f"no broker has this regular expression: {error}; all topics are .*"
            ) from None
    return pattern


Pattern = Annotated[str, AfterValidator(_expression)]
"""A regular expression of topics' names."""


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


class Scenario(BaseModel):
    """The base of all scenarios: clients that connect to an address and ask for namespaces.

    Each field but ``kind`` is an option of ``loadgen run``, and its description the help. A name
    that ends in ``_bytes`` is a size, in ``_bytes_per_second`` a speed, in ``namespaces`` a list.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    more_time: ClassVar[str]
    """The option to change when the generator is too busy, as ``more --spread-seconds``."""
    tunnels: ClassVar[bool] = False
    """True if a proxy passes all its connections on to brokers, which each task looks up first."""

    kind: str
    service_url: str = Field(
        description="Address of the broker or proxy: pulsar://host:port, or pulsar+ssl://. "
        "Scenarios that do not require it start their own servers."
    )
    # Client i asks for number i modulo their count.
    namespaces: tuple[NamespaceExpectation, ...] = Field(
        min_length=1,
        description="Namespace to list (tenant/namespace); may be repeated. Without --corpus "
        "answers are checked against their own hash and each other.",
    )
    clients: int = Field(description="Number of clients.")
    read_rate_bytes_per_second: ReadRate = Field(
        description="Bytes a second that each client reads; 0: no limit."
    )
    receive_buffer_bytes: BufferSize = Field(
        description="SO_RCVBUF of each connection, bytes; 0: the kernel's own."
    )
    pattern: Pattern | None = Field(
        default=None, description="Regular expression of topic names, applied by the server."
    )
    timeout_seconds: Duration = Field(description="Timeout of a client for one request.")

    @field_validator("service_url")
    @classmethod
    def _readable_service_url(cls, service_url: str) -> str:
        if service_url or cls.model_fields["service_url"].is_required():
            parse_service_url(service_url)
        return service_url

    @property
    def address(self) -> tuple[str, int]:
        """Host and port of the service URL."""
        return parse_service_url(self.service_url)

    @property
    def speaks_tls(self) -> bool:
        """True if the service URL is one of TLS."""
        return self.service_url.startswith(f"{TLS_SCHEME}:")

    @property
    def planned_requests(self) -> int | None:
        """Number of requests that the schedule holds; None where the answers decide it."""
        return None

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences on what is possible and hardly meant, each with its remedy."""
        return ()

    @property
    def connections(self) -> int:
        """Number of connections that the whole run has at once."""
        return self.clients

    @property
    def connecting(self) -> int:
        """Number of connections before the agreed start."""
        return self.connections


@dataclass(frozen=True, slots=True)
class ClientPlan:
    """One client's part of the schedule.

    Attributes:
        client: Its number, from 0.
        intended_start_seconds: When it asks first, relative to the agreed T0.
        source_address: Local address to connect from, or None for the kernel's choice.
    """

    client: int
    namespace: NamespaceExpectation
    intended_start_seconds: float
    source_address: str | None


def parse_service_url(service_url: str) -> tuple[str, int]:
    """Return host and port of ``pulsar://host[:port]`` or ``pulsar+ssl://host[:port]``.

    Raises:
        ValueError: Another scheme, several hosts, no host, or a port that is none.
    """
    form = "not of the form pulsar://host:port"
    try:
        parts = urlsplit(service_url)
        port = parts.port
    except ValueError:
        raise ValueError(form) from None
    default = _DEFAULT_PORTS.get(parts.scheme)
    if default is None or not parts.hostname or "," in parts.netloc:
        raise ValueError(form)
    return parts.hostname, default if port is None else port


def source_address(client: int) -> str | None:
    """Return the loopback address that a client connects from; None leaves it to the kernel."""
    group = client // CLIENTS_PER_SOURCE_ADDRESS
    return str(_FIRST_EXTRA_SOURCE + (group - 1)) if group else None
