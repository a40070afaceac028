import pytest

from broker.policies.values import (
    BadBodyError,
    JsonNumber,
    Member,
    boolean,
    long_number,
    number,
    object_of,
    one_of,
    real_number,
    set_of_texts,
)


@pytest.mark.parametrize(
    ("given", "read"),
    [(None, 0), (JsonNumber("5"), 5), (JsonNumber("5.7"), 5), (JsonNumber("-1"), -1), ("7", 7)],
)
def test_numbers_are_read_as_by_javas_parser(given: object, read: int) -> None:
    assert number(given) == read


@pytest.mark.parametrize(
    "given", [True, [], {}, "x", "NaN", "Infinity", JsonNumber("2147483648"), JsonNumber("1e99999")]
)
def test_a_value_that_is_no_32_bit_number_is_refused(given: object) -> None:
    with pytest.raises(BadBodyError):
        number(given)


def test_long_and_real_numbers_have_their_own_bounds() -> None:
    assert long_number(JsonNumber("9223372036854775807")) == 2**63 - 1
    with pytest.raises(BadBodyError):
        long_number(JsonNumber("9223372036854775808"))
    assert real_number(JsonNumber("2")) == 2.0
    for endless in ("1e400", "-1e400"):
        with pytest.raises(BadBodyError, match="1e400"):
            real_number(JsonNumber(endless))


@pytest.mark.parametrize(("given", "read"), [(None, False), (True, True), ("TRUE", True)])
def test_booleans_may_be_strings_and_not_numbers(given: object, read: bool) -> None:
    assert boolean(given) is read
    with pytest.raises(BadBodyError):
        boolean(JsonNumber("1"))


def test_an_unknown_enum_name_has_the_fallback_value() -> None:
    read = one_of(("A", "B"), "other")
    assert [read(one) for one in ("A", "C", None)] == ["A", "other", "other"]


def test_an_enum_value_may_be_its_index() -> None:
    read = one_of(("A", "B"), "other")
    places = JsonNumber("1"), "0", "01", JsonNumber("2"), JsonNumber("-1")
    assert [read(one) for one in places] == ["B", "A", *["other"] * 3]
    for neither in (JsonNumber("1.0"), True, []):
        with pytest.raises(BadBodyError, match="one of: A, B"):
            read(neither)


def test_a_set_of_strings_keeps_its_order_without_duplicates() -> None:
    assert set_of_texts(["b", "a", "b"]) == ["b", "a"]
    assert set_of_texts(None) is None


def test_an_object_has_only_its_known_members_in_order_with_defaults() -> None:
    read = object_of(Member("a", number, 3), Member("b", boolean), Member("c", number, 0))
    found = read({"c": JsonNumber("1"), "x": 1, "a": None})
    assert list(found.items()) == [("a", 3), ("c", 1)]
    with pytest.raises(BadBodyError):
        read([])
