"""Properties follow names through all changes: selections equal a dict's."""

from collections.abc import Generator, Iterator, Mapping

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import proto.PulsarApi_pb2 as pb
from broker.stores.changes import TopicChanges
from broker.stores.plain_properties import PlainProperties
from broker.stores.property_rows import PropertyRows
from broker.stores.snapshots import namespace_properties, property_columns
from broker.stores.snapshots.namespace_properties import NamespaceProperties
from broker.stores.snapshots.snapshot import NamespaceSnapshot
from proto.topic_hash import java_order

ALL = pb.CommandGetTopicsOfNamespace.ALL
LOCAL_NAMES = ["a", "b-partition-0", "c", "d", "e", "f", "\u00e9", "\uff5e", "\U0001f600", "z"]
TOPICS = [
    *(f"persistent://t/n/{local}".encode() for local in LOCAL_NAMES),
    *(f"non-persistent://t/n/{local}".encode() for local in LOCAL_NAMES[:3]),
    b"persistent://t/n/__change_events",
]
PARTITIONED = [b"persistent://t/n/b", b"persistent://t/n/a", b"non-persistent://t/n/p"]
NAMES = [*TOPICS, *PARTITIONED]
TEXTS = st.sampled_from(["", "x", "y", "1:x"])
PROPERTIES = st.dictionaries(TEXTS, TEXTS, max_size=3)
CHANGES = st.builds(
    TopicChanges,
    st.lists(st.sampled_from(TOPICS), max_size=6),
    st.lists(st.sampled_from(TOPICS), max_size=4),
    st.dictionaries(st.sampled_from(PARTITIONED).map(bytes.decode), st.integers(0, 2), max_size=2),
    st.none()
    | st.dictionaries(st.sampled_from(NAMES), PROPERTIES, max_size=6).map(
        PropertyRows.from_mappings
    ),
)


@pytest.fixture(autouse=True, scope="module", params=[0, 256], ids=["looked up", "gone past"])
def small_segments(request: pytest.FixtureRequest) -> Iterator[None]:
    """Segments of three rows, and either way to find names."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(property_columns, "SEGMENT_ROWS", 3)
        patch.setattr(namespace_properties, "SEGMENTS_PER_STEP", 1)
        patch.setattr(namespace_properties, "NAMES_PER_SCAN", request.param)
        yield


def result(work: Generator[None, None, object]) -> object:
    try:
        while True:
            next(work)
    except StopIteration as done:
        return done.value


def told(
    model: dict[bytes, Mapping[str, str]], after: NamespaceSnapshot, step: TopicChanges
) -> None:
    """Apply a change of properties to a dict."""
    forgotten = [name.encode() for name, count in step.partitioned.items() if not count]
    for name in (*step.removed, *forgotten):
        model.pop(name, None)
    rows = step.properties or PropertyRows.from_mappings({})
    for row, name in enumerate(rows.names):
        if after.exists(name.decode()):
            model[name] = rows.of(row)


EVENTS = b"persistent://t/n/__change_events"


@example(
    [
        TopicChanges([EVENTS], [], {}, PropertyRows.from_mappings({EVENTS: {}})),
        TopicChanges([], [EVENTS], {}, None),
        TopicChanges([], [], {}, PropertyRows.from_mappings({EVENTS: {"x": "y"}})),
    ],
    {"x": "y"},
)
@given(st.lists(CHANGES, max_size=8), PROPERTIES.filter(bool))
@pytest.mark.parametrize("made", [NamespaceProperties, PlainProperties])
def test_topic_properties_equal_a_dict_after_any_changes(made, steps, wanted) -> None:
    snapshot, properties = NamespaceSnapshot(), made()
    model: dict[bytes, Mapping[str, str]] = {}
    for step in steps:
        counts = {
            name: count
            for name, count in step.partitioned.items()
            if count or name in snapshot.partitioned
        }
        change = TopicChanges(step.added, step.removed, counts, step.properties)
        after = snapshot.changed(change)
        properties, snapshot = properties.changed(snapshot, after, change), after
        told(model, after, change)
        assert [properties.of(snapshot, name) for name in NAMES] == [
            model.get(name, {}) for name in NAMES
        ]
        selected = result(properties.select(snapshot, ALL, wanted))
        assert [name.encode() for name in selected.names()] == sorted(
            (
                name
                for name, has in model.items()
                if wanted.items() <= has.items() and name in _listed(snapshot)
            ),
            key=java_order,
        )


def _listed(snapshot: NamespaceSnapshot) -> set[bytes]:
    return {*snapshot.persistent.names(), *snapshot.non_persistent.names()}
