"""Settings shared by groups are refused where a kernel or a reader could not comply."""

import socket

import pytest
from pydantic import ValidationError

from loadgen.plan.group import Reader


def test_a_receive_buffer_below_the_minimum_of_linux_is_refused() -> None:
    with socket.socket() as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        least = one.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) // 2
    assert Reader(buffer=least).buffer == least
    assert Reader().buffer == 0
    with pytest.raises(ValidationError, match="at least 1,152 bytes"):
        Reader(buffer=least - 1)


def test_a_missing_read_rate_is_unlimited_and_a_rate_of_zero_is_refused() -> None:
    assert Reader().rate is Reader(rate=None).rate is None
    with pytest.raises(ValidationError, match="never: true reads nothing"):
        Reader(rate=0)
