"""Counts of the frames that a server's connections receive and accept."""

from typing import Any

from proto.frames import Frame
from tests.fuzz.driving.broker_world import Doors


def count_frames(doors: Doors, port_key: str, figures: dict[str, int]) -> None:
    """Count frames from now on, as ``frames`` and ``valid``."""
    made = doors.factories[port_key]

    def counted() -> Any:
        cnx = made()
        handle = cnx.frame_received

        def frame_received(frame: Frame) -> None:
            figures["frames"] += 1
            handle(frame)
            figures["valid"] += 1

        cnx.frame_received = frame_received
        return cnx

    doors.factories[port_key] = counted
