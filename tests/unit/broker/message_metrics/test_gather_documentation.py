"""Every family has a sentence."""

import pytest

from broker.message_metrics.gather import documentation


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("pulsar_broker_msg_backlog", "Entries unacknowledged by subscriptions"),
        (
            "pulsar_entry_size_le_2_kb",
            "Bytes of entries: up to 2048",
        ),
        (
            "pulsar_storage_write_latency_overflow",
            "Milliseconds to store: above all bounds",
        ),
    ],
)
def test_a_metric_name_has_its_documentation_sentence(name: str, sentence: str) -> None:
    assert documentation(name) == sentence


def test_a_metric_name_without_documentation_raises_a_key_error() -> None:
    with pytest.raises(KeyError):
        documentation("pulsar_something_else")
