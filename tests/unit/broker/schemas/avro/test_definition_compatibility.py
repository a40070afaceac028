"""Which schema reads which, as recorded of a real broker."""

from time import process_time

import pytest

from broker.schemas.avro.definition import IncompatibleDefinitionsError, check, read, reads
from tests.support.schemas import field, optional, record


def enum(*symbols: str, name: str = "E") -> dict[str, object]:
    return {"type": "enum", "name": name, "symbols": symbols}


@pytest.mark.parametrize(
    ("reader", "writer"),
    [
        (field("a", "long"), field("a", "int")),
        (field("a", "bytes"), field("a", "string")),
        (field("a", ["null", "int"]), field("a", "int")),
        (field("new", "int", default=1), field("a", "int")),
        (field("new", "int", aliases=["a"]), field("a", "int")),
        (field("a", enum("X")), field("a", enum("X", "Y"))),
        (
            field("a", {"type": "array", "items": "long"}),
            field("a", {"type": "array", "items": "int"}),
        ),
    ],
)
def test_compatible_fields_are_readable(
    reader: dict[str, object], writer: dict[str, object]
) -> None:
    assert reads(read(record(reader)), read(record(writer)))


@pytest.mark.parametrize(
    ("reader", "writer"),
    [
        (field("a", "int"), field("a", "long")),
        (field("a", "int"), field("a", ["null", "int"])),
        (field("new", "int"), field("a", "int")),
        (field("a", enum("X")), field("a", enum("X", name="F"))),
        (field("a", "string"), field("a", "int")),
    ],
)
def test_incompatible_fields_are_not_readable(
    reader: dict[str, object], writer: dict[str, object]
) -> None:
    assert not reads(read(record(reader)), read(record(writer)))


def test_record_names_do_not_affect_compatibility() -> None:
    assert reads(read(record(field("a"), name="A")), read(record(field("a"), name="Z")))


def test_a_recursive_record_is_compatible_with_itself() -> None:
    definition = read(record(field("next", ["null", "A"], default=None)))
    assert reads(definition, definition)


@pytest.mark.parametrize("strategy", ["FULL", "FULL_TRANSITIVE"])
def test_a_full_check_tries_the_new_schema_as_writer_first_and_then_as_reader(
    strategy: str,
) -> None:
    new, old = read(record(field("c"))), read(record(field("a")))
    with pytest.raises(IncompatibleDefinitionsError) as caught:
        check(new, [old], strategy)
    assert (caught.value.writer, caught.value.reader) == (new, old)
    # And where the old schema can read the new:
    lenient = read(record(optional("a")))
    with pytest.raises(IncompatibleDefinitionsError) as caught:
        check(new, [lenient], strategy)
    assert (caught.value.writer, caught.value.reader) == (lenient, new)


def test_the_newest_version_is_compared_first() -> None:
    new = read(record(field("c")))
    newest, oldest = read(record(field("b"))), read(record(field("a")))
    with pytest.raises(IncompatibleDefinitionsError) as caught:
        check(new, [newest, oldest], "BACKWARD_TRANSITIVE")
    assert caught.value.writer is newest


@pytest.mark.usefixtures("seldom_collected")
def test_the_time_of_a_comparison_does_not_grow_with_the_square_of_the_fields() -> None:
    small, large = (
        read(record(*(optional(f"field_{index}") for index in range(count))))
        for count in (500, 5_000)
    )
    begun = process_time()
    assert reads(small, small)
    took = process_time() - begun
    begun = process_time()
    assert reads(large, large)
    # Ten times the fields are not a hundred times the work.
    assert process_time() - begun < 50 * took
