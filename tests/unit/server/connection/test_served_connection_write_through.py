"""Frames past the queue, on a client's connection."""

from tests.unit.server.connection.test_served_connection import ANSWER, Served


def nothing() -> None:
    """Departure callback of a frame."""


async def test_in_profile_pulsar_no_frame_bypasses_the_queue() -> None:
    served = Served(as_shipped=True)
    assert not served.cnx.write_through(ANSWER, lambda: nothing, 0)
    assert served.takes() == b""


async def test_a_frame_that_bypasses_the_queue_pauses_a_peer_that_does_not_read() -> None:
    # A high mark of 1,000 bytes
    served = Served()
    assert served.cnx.write_through(ANSWER, lambda: nothing, 0)
    assert not served.cnx.gate.open
    assert served.takes() == ANSWER
    assert served.cnx.gate.open


async def test_a_frame_that_bypasses_the_queue_starts_the_watch_of_its_peer() -> None:
    served = Served()
    before = len(served.slow_peers)
    served.cnx.write_through(ANSWER, lambda: nothing, 0)
    assert (before, len(served.slow_peers)) == (0, 1)
