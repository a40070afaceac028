import pytest

from proto.errors import RemoteProtocolError
from proto.parsing.varint import decode_varint, encode_varint


@pytest.mark.parametrize(
    ("value", "data"),
    [
        (0, "00"),
        (127, "7f"),
        (128, "8001"),
        (300, "ac02"),
        (2**32, "8080808010"),
        (2**64 - 1, "ffffffffffffffffff01"),
    ],
)
def test_a_varint_has_seven_bits_per_byte(value: int, data: str) -> None:
    assert encode_varint(value).hex() == data
    assert decode_varint(bytes.fromhex(data), 0) == (value, len(data) // 2)


def test_bits_beyond_64_are_cut_off() -> None:
    assert decode_varint(bytes.fromhex("ffffffffffffffffff7f"), 0) == (2**64 - 1, 10)


@pytest.mark.parametrize("data", ["", "80", "ffffffffffffffffffff01"])
def test_an_unterminated_varint_is_refused(data: str) -> None:
    with pytest.raises(RemoteProtocolError, match="cut off or longer than ten bytes"):
        decode_varint(bytes.fromhex(data), 0)


def test_a_negative_number_is_refused() -> None:
    with pytest.raises(ValueError, match="range"):
        encode_varint(-1)
