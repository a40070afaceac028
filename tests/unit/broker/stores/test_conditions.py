"""Knowledge of existing topics needed by an addition."""

import pytest

from broker.stores.changes import TopicChanges
from broker.stores.conditions import growing
from tests.support.stores.topic_stores import base, topic


@pytest.mark.parametrize(
    ("there", "asked"),
    [
        ([], {base("t"), base("u")}),
        ([topic("t-partition-2")], {base("u")}),
        ([topic("t-partition-2"), topic("u-partition-0")], set()),
    ],
)
def test_properties_are_read_only_of_existing_topics_with_new_partitions(there, asked) -> None:
    added = [topic("t-partition-2"), topic("u-partition-0"), topic("v-partition-0"), topic("w")]
    changes = TopicChanges(
        added, partitioned={base("t"): 3, base("u"): 1, base("v"): 1}, adds_only=True
    )
    assert growing(changes, {base("t"): 2, base("u"): 4}, set(there)) == asked
