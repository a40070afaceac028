"""The stated times: what a server's work takes while virtual time stands still for its code.

Floodgate's were measured by ``python -m loadgen.virtual.calibrate`` on one core of a machine with
two; a real Pulsar's are from storms of small answers against 4.2.4 on the same two cores.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ServiceTimes:
    """The times of one process. Units: seconds.

    Attributes:
        accept: A connection, from the kernel's queue to the protocol.
        read: A frame or piece that was read.
        write: A write that the kernel was given.
        read_byte, write_byte: Each byte that goes through the kernel.
    """

    accept: float
    read: float
    write: float
    read_byte: float
    write_byte: float


FLOODGATE = ServiceTimes(
    accept=90e-6, read=40e-6, write=12e-6, read_byte=0.15e-9, write_byte=0.25e-9
)
PULSAR = ServiceTimes(accept=150e-6, read=60e-6, write=20e-6, read_byte=0.3e-9, write_byte=0.5e-9)
