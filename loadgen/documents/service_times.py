"""Service times: how long a simulated server's work takes in virtual time.

There, the code itself takes no time.

Floodgate's times make storms of small answers take as long in virtual time as over sockets on two
cores (``python -m tests.proof virtual_time`` compares); a real Pulsar's are from storms of small
answers against 4.2.4 on the same two cores.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from loadgen.plan.fields import Moment, Part, Spoken

KEY = "service_times"


class ServiceTimes(Part):
    """How long each kind of a simulated server's work takes, in seconds.

    Attributes:
        accept: A connection, from the kernel's queue to the protocol.
        read: A frame or piece that was read.
        write: A write handed to the kernel.
        read_byte, write_byte: Each byte that goes through the kernel.
        list_wait: A listing's wait for the metadata store, shared by listings that arrive
            meanwhile;
            0: the topics are in memory.
        list_name: Reading a name of 100 bytes for a listing outside memory; other names, here and
            below, in proportion to their length.
        match_name: A list pattern's evaluation on a name.
        watch_name: The same for a watch.
        answer_name: A name's part of an answer: hash and bytes, made for each request.
        threads: Threads, or cores, for names, patterns and answers, beside all other work.
        first_lookup: The first lookup of a namespace, in addition: a broker just started has to
            acquire the bundle's ownership.
        band: The factor by which all times may be longer: a cold or busy broker's, or another
            machine's. Recorded: 1.7 in a first storm, 2.3 on a slower machine.
    """

    accept: Moment
    read: Moment
    write: Moment
    read_byte: Moment
    write_byte: Moment
    list_wait: Moment = 0.0
    list_name: Moment = 0.0
    match_name: Moment = 0.0
    watch_name: Moment = 0.0
    answer_name: Moment = 0.0
    threads: Annotated[int, Field(ge=1, le=1_024)] = 1
    first_lookup: Moment = 0.0
    band: Annotated[float, Field(ge=1, le=20)] = 3.0

    def scaled(self, factor: float) -> ServiceTimes:
        """Return the times that a processor needs that is slower by ``factor``."""
        numbers = ("threads", "band")
        seconds = {name: factor * each for name, each in self if name not in numbers}
        return self.model_copy(update=seconds)


FLOODGATE = ServiceTimes(
    accept=90e-6, read=40e-6, write=12e-6, read_byte=0.15e-9, write_byte=0.25e-9
)
# Of a 4.2.4 on two cores, for names of 100 bytes, from three machines, between whose figures these
# lie. Processor time of lists of 2,000 to 16,000 names of 60 and 118 bytes, 1 to 64 at once: 0.9 to
# 1.6 us for each listing made (several requests for a namespace share a listing), 0.5 to 0.8 us for
# each answer. A pattern behind persistent://tenant/namespace/ is evaluated for each request: 4 to 8
# us a name of a list (lists of 10,000 names; by stack samples, on three threads; a JVM just started
# takes the longer: whole storms of five clusters are nearest with 7), 4 to 8 us of a watch. First
# lookups: 400 clients on as many namespaces were back after 4.7 s, and after 2.6 s the second time;
# on other machines 6 to 20 ms each, one after the other.
PULSAR = ServiceTimes(
    accept=150e-6,
    read=60e-6,
    write=20e-6,
    read_byte=0.3e-9,
    write_byte=0.5e-9,
    list_wait=1e-3,
    list_name=1.6e-6,
    match_name=7e-6,
    watch_name=7.7e-6,
    answer_name=0.7e-6,
    threads=2,
    first_lookup=10e-3,
)
SERVICE_TIMES = {"floodgate": FLOODGATE, "pulsar": PULSAR}
"""Service times by their name in a document's ``service_times``."""


def _named(value: Any) -> Any:  # noqa: ANN401 - not checked yet
    if not isinstance(value, str):
        return value
    if value not in SERVICE_TIMES:
        raise ValueError(f"must be {', '.join(sorted(SERVICE_TIMES))}, a file, or seconds by name")
    return SERVICE_TIMES[value]


StatedTimes = Annotated[ServiceTimes, Spoken({"enum": sorted(SERVICE_TIMES)}, _named)]
"""A document's service times: a name of ``SERVICE_TIMES``, or each time in seconds."""
