"""A JSON array of names that arrives in pieces."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from client.admin.errors import AdminAnswerError
from client.admin.rest import MAX_STRING_BYTES, StringArray


def decoded(*pieces: bytes) -> list[str]:
    array = StringArray()
    names = [name for piece in pieces for name in array.feed(piece)]
    array.close()
    return names


def cut(data: bytes, places: list[int]) -> list[bytes]:
    ends = sorted({place % (len(data) + 1) for place in places})
    return [data[a:b] for a, b in zip([0, *ends], [*ends, len(data)], strict=True)]


@given(
    st.lists(st.text(alphabet=st.sampled_from('a",\\[]é\n☃𝄞 :'), max_size=6), max_size=8),
    st.lists(st.integers(0, 10_000), max_size=6),
    st.booleans(),
    st.sampled_from([None, 2]),
)
def test_names_are_decoded_wherever_the_array_is_split(names, places, ascii_only, indent) -> None:
    data = json.dumps(names, ensure_ascii=ascii_only, indent=indent).encode()
    assert decoded(*cut(data, places)) == names


def test_each_name_is_yielded_as_soon_as_its_end_arrives() -> None:
    array = StringArray()
    assert array.feed(b'["one","tw') == ["one"]
    assert array.feed(b'o"') == ["two"]
    assert array.feed(b"]") == []


@pytest.mark.parametrize(
    "data",
    [
        b"", b"[", b'["a"', b'["a",', b'["a"]]', b"{}", b'{"reason":"no"}', b'"a"', b"[1]",
        b'[["a"]]', b'["a",["b"]]', b'["a" "b"]', b'["a",,"b"]', b"<html>", b'["a"]["b"]',
        b'["\xff"]', b'["a",1,"b"]', b'["a",null]',
    ],
)  # fmt: skip
def test_data_that_is_no_array_of_strings_is_refused(data: bytes) -> None:
    with pytest.raises(AdminAnswerError):
        decoded(data)


def test_an_endless_name_is_refused_at_the_size_limit() -> None:
    array = StringArray()
    assert array.feed(b'["' + bytes(MAX_STRING_BYTES - 2)) == []
    with pytest.raises(AdminAnswerError, match=f"more than {MAX_STRING_BYTES} bytes"):
        array.feed(b"x")
