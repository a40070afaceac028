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


def test_javas_default_class_name_is_the_default_plug_in() -> None:
    assert config().pulsar_resources_extended_class_name == DEFAULT
    named = config(pulsarResourcesExtendedClassName=DEFAULT)
    assert named.pulsar_resources_extended_class_name == DEFAULT


def test_a_java_class_name_is_refused_with_the_expected_form() -> None:
    with pytest.raises(ConfigError, match=r"'com\.example\.Mine': expected module:Class of Python"):
        config(pulsarResourcesExtendedClassName="com.example.Mine")


def test_a_plug_in_timeout_of_0_is_refused() -> None:
    with pytest.raises(ConfigError, match="floodgateResourcesTimeoutMs"):
        config(floodgateResourcesTimeoutMs="0")


def test_a_filtering_plug_in_turns_off_topic_watchers_with_a_warning() -> None:
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
def test_compatible_plug_in_and_watcher_keys_cause_no_warning(
    keys: dict[str, str], announced: bool
) -> None:
    assert config(**keys).announces_topic_watchers is announced
    assert warnings(config(**keys)) == []


def test_listing_properties_are_unbounded_only_by_default_in_profile_pulsar() -> None:
    keys = {"floodgateMaxListingProperties": "7", "floodgateMaxListingPropertiesBytes": "0"}
    assert config().listing_properties == PropertyBounds(max_properties=100, max_bytes=16_384)
    assert config(floodgateProfile="pulsar").listing_properties == UNBOUNDED
    for profile in ("floodgate", "pulsar"):
        made = config(floodgateProfile=profile, **keys)
        assert made.listing_properties == PropertyBounds(max_properties=7, max_bytes=0)
