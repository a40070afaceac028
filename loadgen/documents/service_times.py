"""The stated times: what a server's work takes while virtual time stands still for its code.

Floodgate's are such that its storms of small answers take as long in virtual time as over sockets
on two cores (``python -m tests.proof virtual_time`` compares); a real Pulsar's are from storms of
small answers against 4.2.4 on the same two cores.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field
from pydantic_core.core_schema import no_info_before_validator_function

from loadgen.plan.fields import Part

if TYPE_CHECKING:
    from pydantic import GetJsonSchemaHandler
    from pydantic_core import CoreSchema

Seconds = Annotated[float, Field(ge=0, le=10)]


class ServiceTimes(Part):
    """The times of one process. Units: seconds.

    Attributes:
        accept: A connection, from the kernel's queue to the protocol.
        read: A frame or piece that was read.
        write: A write that the kernel was given.
        read_byte, write_byte: Each byte that goes through the kernel.
        list_wait: A listing's wait for the metadata store, in which others come; 0: its topics
            are in memory.
        list_name: Each name of a listing that is not.
        match_name: Each name that a pattern is evaluated on, of the same.
        first_lookup: The first of a namespace beside all that: the ownership of its bundle, which
            a broker has not taken since it started.
    """

    accept: Seconds
    read: Seconds
    write: Seconds
    read_byte: Seconds
    write_byte: Seconds
    list_wait: Seconds = 0.0
    list_name: Seconds = 0.0
    match_name: Seconds = 0.0
    first_lookup: Seconds = 0.0

    def scaled(self, factor: float) -> ServiceTimes:
        """Return the times of a processor that takes so many times as long."""
        return ServiceTimes(**{name: factor * seconds for name, seconds in self})


FLOODGATE = ServiceTimes(
    accept=90e-6, read=40e-6, write=12e-6, read_byte=0.15e-9, write_byte=0.25e-9
)
# Names: 7.7 to 10 ms for a listing of 10,000, one at a time, and 35 ms for one of 40,000, against a
# 4.2.4 that had 1 GB of heap and was not warm, with the clients on the same two cores. Patterns:
# 14 to 38 ms for 10,000 names, by pattern, of a warm one. First lookups: 400 clients
# on as many namespaces were back after 4.7 s, and after 2.6 s when they came again; of 400 that
# only list the last was answered after 0.45 and 0.38 s.
PULSAR = ServiceTimes(
    accept=150e-6,
    read=60e-6,
    write=20e-6,
    read_byte=0.3e-9,
    write_byte=0.5e-9,
    list_wait=1e-3,
    list_name=0.8e-6,
    match_name=2.6e-6,
    first_lookup=5e-3,
)
SERVICE_TIMES = {"floodgate": FLOODGATE, "pulsar": PULSAR}
"""By the word of a document's ``service_times``."""


class _Word:
    """Reads a word as the times that it stands for; in the schema for editors it may be one."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> CoreSchema:  # noqa: ANN401
        """Return how a field of this type is read."""
        return no_info_before_validator_function(_named, handler(source))

    def __get_pydantic_json_schema__(
        self, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """Return the schema of a field of this type."""
        return {"anyOf": [{"enum": sorted(SERVICE_TIMES)}, handler(core_schema)]}


def _named(value: Any) -> Any:  # noqa: ANN401 - not checked yet
    if not isinstance(value, str):
        return value
    if value not in SERVICE_TIMES:
        raise ValueError(f"must be {' or '.join(sorted(SERVICE_TIMES))}, or seconds by name")
    return SERVICE_TIMES[value]


StatedTimes = Annotated[ServiceTimes, _Word()]
"""Times of a document: a word, or each of them."""
