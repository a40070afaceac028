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
def test_fields_that_are_read(reader: dict[str, object], writer: dict[str, object]) -> None:
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
def test_fields_that_are_not(reader: dict[str, object], writer: dict[str, object]) -> None:
    assert not reads(read(record(reader)), read(record(writer)))


def test_the_names_of_records_do_not_count() -> None:
    assert reads(read(record(field("a"), name="A")), read(record(field("a"), name="Z")))


def test_a_record_that_holds_itself_is_compared() -> None:
    definition = read(record(field("next", ["null", "A"], default=None)))
    assert reads(definition, definition)


@pytest.mark.parametrize("strategy", ["FULL", "FULL_TRANSITIVE"])
def test_the_new_one_is_written_first_then_read(strategy: str) -> None:
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
def test_many_fields_are_each_looked_up_once() -> None:
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
