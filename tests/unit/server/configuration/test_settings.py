"""A row reads its key; a group is changed in place, for all who hold it."""

from server.configuration.key_types import KnownKey
from server.configuration.known_keys import CheckedKeys, KnownKeys
from server.configuration.settings import Group, Key, Read, Settings, milliseconds

TABLE = KnownKeys(
    [
        KnownKey("floodgateProfile", "Profile", "floodgate", values=("floodgate", "pulsar")),
        KnownKey("timeMs", "int", "1500"),
        KnownKey("bound", "int", None),
        KnownKey("shut", "boolean", "false"),
    ]
)


class Inner(Settings):
    bound: int = Key("bound", floodgate=7, pulsar=0, dynamic=True)


class Outer(Settings):
    seconds: float = Key("timeMs", milliseconds)
    inner: Inner = Group(Inner)
    both: tuple[int, bool] = Read(lambda keys: (keys.integer("timeMs"), keys.flag("shut")), "shut")
    absent: int = Key("noSuchKey", elsewhere=3)


def read(**properties: str) -> tuple[Outer, CheckedKeys]:
    checked = TABLE.check(properties)
    return Outer.of(checked), checked


def test_a_default_is_read_from_the_key_table_unless_a_row_overrides_the_default() -> None:
    found, checked = read()
    assert found == Outer(seconds=1.5, inner=Inner(bound=7), both=(1500, False), absent=3)
    assert (checked.shown("bound"), checked.shown("shut")) == ("7", "false")
    assert read(floodgateProfile="pulsar")[0].inner.bound == 0


def test_dynamic_keys_are_listed() -> None:
    assert tuple(Outer.dynamic_keys()) == ("bound", "shut")


def test_a_changed_group_is_seen_by_its_holders_but_not_by_copies() -> None:
    (found, _), (other, _) = read(), read(timeMs="2", bound="9")
    held, copied = found.inner, found.copied()
    found.become(other)
    assert (held.bound, found.seconds) == (9, 0.002)
    assert copied == read()[0]
