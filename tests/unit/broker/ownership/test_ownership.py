"""A broker's bundles, as seen by lookups."""

from hypothesis import given
from hypothesis import strategies as st

from broker.bundles import BundleRange
from broker.ownership.ownership import Bundle, OwnedBundles, bundle_of_topic
from proto.names import NamespaceName, TopicName

SPACE = NamespaceName.parse("tenant/ns")
TOPIC = TopicName.parse("persistent://tenant/ns/topic")


def test_a_topic_is_owned_with_its_bundle() -> None:
    owned = OwnedBundles()
    bundle = bundle_of_topic(TOPIC, 4)
    assert not owned.holds(TOPIC)
    owned.add(bundle, 4)
    assert owned.holds(TOPIC)
    assert bundle in owned
    assert list(owned) == [bundle]
    assert not owned.holds(TopicName.parse("persistent://tenant/other/topic"))
    assert owned.discard(bundle)
    assert not owned.holds(TOPIC)
    assert not owned.discard(bundle)
    assert len(owned) == 0


def test_taking_all_bundles_ends_the_ownership_of_their_topics() -> None:
    owned = OwnedBundles()
    bundles = [Bundle(SPACE, BundleRange(0, 2**31)), Bundle(SPACE, BundleRange(2**31, 2**32))]
    for bundle in bundles:
        owned.add(bundle, 2)
    taken = owned.take_all()
    assert taken == bundles
    assert not owned.holds(TOPIC)


def test_a_bundle_is_written_with_its_namespace() -> None:
    assert str(Bundle(SPACE, BundleRange(0, 2**30))) == "tenant/ns/0x00000000_0x40000000"


@given(st.text(min_size=1, max_size=20), st.integers(1, 65_536), st.integers(1, 65_536))
def test_a_topic_belongs_to_exactly_its_own_bundle(local: str, count: int, other: int) -> None:
    topic = TopicName("persistent", SPACE, local.encode("utf-8", "replace").decode())
    bundle, owned = bundle_of_topic(topic, count), OwnedBundles()
    owned.add(bundle, count)
    assert bundle.holds(topic)
    assert owned.holds(topic)
    assert owned.discard(bundle_of_topic(topic, other)) == (bundle_of_topic(topic, other) == bundle)
