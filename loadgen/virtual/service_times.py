"""The stated times: what a server's work takes while virtual time stands still for its code.

Floodgate's are such that its storms of small answers take as long in virtual time as over sockets
on two cores (``python -m tests.proof virtual_time`` compares); a real Pulsar's are from storms of
small answers against 4.2.4 on the same two cores.
"""

from __future__ import annotations

from loadgen.documents.service_times import ServiceTimes

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
_BY_WORD = {"floodgate": FLOODGATE, "pulsar": PULSAR}


def stated_times(said: str | ServiceTimes) -> ServiceTimes:
    """Return the times that a document's ``service_times`` means: of a word, or its own."""
    return said if isinstance(said, ServiceTimes) else _BY_WORD[said]
