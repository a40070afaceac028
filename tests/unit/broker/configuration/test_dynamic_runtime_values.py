"""Effective values are shown, including those chosen by profile or machine."""

import pytest

from broker.configuration.config import BrokerConfig
from broker.configuration.dynamic import runtime_values
from server.configuration.file import parse_properties


def shown(text: str) -> dict[str, str]:
    """Return the effective values of a configuration file."""
    return runtime_values(BrokerConfig.from_properties(parse_properties(text, "broker.conf")), {})


@pytest.mark.parametrize(
    ("profile", "megabytes"), [("pulsar", "3014"), ("floodgate", "256")], ids=str
)
def test_the_effective_publish_buffer_size_depends_on_the_profile(
    profile: str, megabytes: str
) -> None:
    found = shown(f"floodgateProfile={profile}")
    assert found["maxMessagePublishBufferSizeInMB"] == megabytes


def test_the_bound_and_fsync_of_a_database_are_shown_as_effective_values() -> None:
    found = shown("floodgateMessageStore=sqlite:///var/lib/floodgate/messages.db?fsync=true")
    assert found["floodgateMessageStoreMaxMB"] == "10240"
    assert found["floodgateMessageStoreFsync"] == "true"
