"""The keys of property listings: plug-in, bounds, contradictions."""

import pytest

from broker.configuration.config import BrokerConfig
from broker.configuration.plugin_keys import UNBOUNDED, PropertyBounds
from server.errors import ConfigError

INDEX = "broker.property_index:PropertyIndex"
DEFAULT = "org.apache.pulsar.broker.DefaultPulsarResourcesExtended"


def config(**properties: str) -> BrokerConfig:
    return BrokerConfig.from_properties(properties)


def warnings(made: BrokerConfig) -> list[str]:
    return [
        notice.sentence
        for notice in made.notices
        if notice.level == "warning" and "ResourcesExtended" in notice.sentence
    ]


def test_the_plug_in_is_named_by_module_and_class() -> None:
    made = config(pulsarResourcesExtendedClassName=INDEX, floodgateResourcesTimeoutMs="1500")
    assert made.pulsar_resources_extended_class_name == INDEX
    assert made.resources_timeout_seconds == 1.5


def test_javas_default_name_is_the_default() -> None:
    assert config().pulsar_resources_extended_class_name == DEFAULT
    named = config(pulsarResourcesExtendedClassName=DEFAULT)
    assert named.pulsar_resources_extended_class_name == DEFAULT


def test_a_class_of_java_is_refused_with_what_is_expected() -> None:
    with pytest.raises(ConfigError, match=r"'com\.example\.Mine': expected module:Class of Python"):
        config(pulsarResourcesExtendedClassName="com.example.Mine")


def test_a_call_may_not_take_no_time_at_all() -> None:
    with pytest.raises(ConfigError, match="floodgateResourcesTimeoutMs"):
        config(floodgateResourcesTimeoutMs="0")


def test_a_plug_in_that_filters_is_not_announced_together_with_watches() -> None:
    made = config(pulsarResourcesExtendedClassName=INDEX)
    assert not made.announces_topic_watchers
    (sentence,) = warnings(made)
    assert f"pulsarResourcesExtendedClassName={INDEX}" in sentence
    assert "enableBrokerTopicListWatcher=true" in sentence


@pytest.mark.parametrize(
    ("keys", "announced"),
    [
        ({}, True),
        ({"enableBrokerTopicListWatcher": "false"}, False),
        ({"pulsarResourcesExtendedClassName": DEFAULT}, True),
        (
            {"pulsarResourcesExtendedClassName": INDEX, "enableBrokerTopicListWatcher": "false"},
            False,
        ),
        ({"pulsarResourcesExtendedClassName": INDEX, "floodgateProfile": "pulsar"}, True),
    ],
    ids=str,
)
def test_nothing_is_said_where_nothing_is_wrong(keys: dict[str, str], announced: bool) -> None:
    assert config(**keys).announces_topic_watchers is announced
    assert warnings(config(**keys)) == []


def test_properties_are_bounded_and_as_shipped_are_not() -> None:
    keys = {"floodgateMaxListingProperties": "7", "floodgateMaxListingPropertiesBytes": "0"}
    assert config().listing_properties == PropertyBounds(max_properties=100, max_bytes=16_384)
    assert config(floodgateProfile="pulsar").listing_properties == UNBOUNDED
    for profile in ("floodgate", "pulsar"):
        made = config(floodgateProfile=profile, **keys)
        assert made.listing_properties == PropertyBounds(max_properties=7, max_bytes=0)
