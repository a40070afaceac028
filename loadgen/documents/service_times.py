"""The stated times of a server's work in virtual time, as a document has them or a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loadgen.documents.tree import parse_values
from loadgen.errors import UsageError, read_text
from loadgen.plan.fields import Moment, Part

if TYPE_CHECKING:
    from pathlib import Path

KEY = "service_times"
_LARGEST_BYTES = 1 << 16


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

    accept: Moment
    read: Moment
    write: Moment
    read_byte: Moment
    write_byte: Moment
    list_wait: Moment = 0.0
    list_name: Moment = 0.0
    match_name: Moment = 0.0
    first_lookup: Moment = 0.0


def read_service_times(file: Path) -> Any:  # noqa: ANN401 - not checked yet
    """Return the times that ``loadgen measure`` wrote into a file.

    Raises:
        UsageError: It cannot be read, or has none.
    """
    times = parse_values(read_text("the service times", file, _LARGEST_BYTES), file).at(KEY)
    if times is None or not isinstance(times.value, dict):
        raise UsageError(f"{file} has no {KEY}: name a file that loadgen measure has written")
    return times.plain()
