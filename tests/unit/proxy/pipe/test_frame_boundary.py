"""Beginnings of frames in a stream cut at arbitrary places."""

import struct
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from proxy.pipe.faulty_pipe import FrameBoundary

BODIES = st.lists(st.binary(max_size=20), min_size=1, max_size=8)


def stream_of(bodies: list[bytes]) -> tuple[bytes, list[int]]:
    """Return frames, and their ends."""
    stream, ends = b"", []
    for body in bodies:
        stream += struct.pack(">I", len(body)) + body
        ends.append(len(stream))
    return stream, ends


@given(BODIES, st.lists(st.integers(0, 200), max_size=10))
def test_a_boundary_is_found_wherever_the_stream_is_cut(bodies, cuts) -> None:
    stream, ends = stream_of(bodies)
    edges = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    boundary = FrameBoundary()
    for begin, end in pairwise(edges):
        boundary.follow(stream[begin:end])
        assert boundary.reached is (end in ends)


@given(BODIES, st.integers(0, 200))
def test_following_to_the_next_boundary_takes_the_rest_of_the_frame(
    bodies: list[bytes], cut: int
) -> None:
    stream, ends = stream_of(bodies)
    cut = min(cut, len(stream))
    boundary = FrameBoundary()
    boundary.follow(stream[:cut])
    taken = boundary.follow_to_next(stream[cut:])
    assert cut + taken == min(end for end in (0, *ends) if end >= cut)
    assert boundary.reached


def test_a_chunk_that_ends_within_the_length_field_is_not_at_a_boundary() -> None:
    boundary = FrameBoundary()
    assert [boundary.follow_to_next(one) for one in (b"",)] == [0]
    boundary.follow(b"\0\0")
    assert boundary.follow_to_next(b"\0") == 1
    assert not boundary.reached
    assert boundary.follow_to_next(b"\1xyz") == 2
    assert boundary.reached
