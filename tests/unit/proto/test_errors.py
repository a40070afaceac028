"""Attribution of a fault, and the sentence about the fault."""

from proto.errors import (
    CommandTooLargeError,
    FrameTooLargeError,
    RemoteProtocolError,
)


def test_a_frame_above_the_limit_is_a_protocol_error_of_the_peer() -> None:
    error = FrameTooLargeError(5_253_117, 5_253_116)
    assert isinstance(error, RemoteProtocolError)
    assert (error.size_bytes, error.limit_bytes) == (5_253_117, 5_253_116)
    assert str(error) == (
        "a frame of 5253117 bytes is announced, at most 5253116 are allowed "
        "(maxMessageSize + 10236)"
    )


def test_a_command_above_its_bound_is_a_protocol_error_of_the_peer() -> None:
    error = CommandTooLargeError("LOOKUP", 70_000, 65_536)
    assert isinstance(error, RemoteProtocolError)
    assert str(error) == "LOOKUP of 70000 bytes, at most 65536 are parsed"
