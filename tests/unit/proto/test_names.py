"""Names as judged by a real broker, with recorded sentences."""

import pytest

from proto.names import (
    InvalidNameError,
    NamespaceName,
    TopicName,
    is_blank,
    is_system_topic,
    namespace_of,
    partition_index,
    without_partition,
)


@pytest.mark.parametrize(
    ("text", "full"),
    [
        ("alpha-1", "persistent://public/default/alpha-1"),
        ("tenant/ns/local", "persistent://tenant/ns/local"),
        ("non-persistent://t/n/x", "non-persistent://t/n/x"),
        ("PERSISTENT://t/n/x", "persistent://t/n/x"),
        ("Non-Per\u017fistent://t/n/x", "non-persistent://t/n/x"),
        ("persistent://t/n/\u00a0", None),
        ("persistent://a-b=c:d.e_f/ns/tópico with spaces", None),
    ],
)
def test_a_topic_name_and_its_short_forms_are_parsed(text: str, full: str | None) -> None:
    name = TopicName.parse(text)
    assert str(name) == (full or text)
    assert TopicName.parse(str(name)) == name


@pytest.mark.parametrize(
    "name", ["persistent://t/n/x", "non-persistent://t/n/a/b://c/d/e", "compacted://t/n/x-1"]
)
def test_the_namespace_of_a_topic_name_is_extracted_without_parsing_the_name(name: str) -> None:
    assert namespace_of(name) == "t/n"
    assert namespace_of("t/n") != "t/n"


def test_trailing_slashes_of_a_namespace_are_kept_as_part_of_its_name() -> None:
    name = NamespaceName.parse_with_slashes("public/x//")
    assert (str(name), name.tenant) == ("public/x//", "public")
    assert NamespaceName.parse_with_slashes("public/x") == NamespaceName.parse("public/x")
    with pytest.raises(InvalidNameError):
        NamespaceName.parse_with_slashes("public//x")


def test_a_topic_name_provides_its_parts() -> None:
    name = TopicName.parse("persistent://tenant/ns/local-partition-12")
    assert (name.domain, name.persistent) == ("persistent", True)
    assert name.namespace == NamespaceName("tenant", "ns")
    assert name.partition_index == 12
    assert str(name.partitioned_name) == "persistent://tenant/ns/local"
    assert not TopicName.parse("non-persistent://t/n/x").persistent


V1 = (
    "V1 topic names (with cluster component) are no longer supported. Please use the V2 format: "
    "'<domain>://tenant/namespace/topic'. Got: persistent://public/standalone/gold/x"
)
SHORT = "it should be in the format of <tenant>/<namespace>/<topic> or <topic>"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("persistent://public//x", "Invalid topic name public//x"),
        ("", "Invalid topic name: . Topic local name must not be blank."),
        ("foo://public/default/x", "Invalid topic domain: 'foo'"),
        ("persistent://public/standalone/gold/x", V1),
        ("foo://public/standalone/gold/x", V1.replace("persistent://p", "foo://p")),
        ("persistent://public/go ld/x", "Invalid named entity: go ld"),
        ("persistent://public/default", "Invalid topic name persistent://public/default"),
        ("persistent:///public/default/x", "Invalid topic name /public/default/x"),
        ("persistent://public/default/x/", "Invalid topic name public/default/x/"),
        ("persistent//x/y", "Invalid topic name persistent//x/y"),
        (
            "persistent://public/default/ ",
            "Invalid topic name: persistent://public/default/ . "
            "Topic local name must not be blank.",
        ),
        ("public/x", f"Invalid short topic name 'public/x', {SHORT}"),
        ("a/b/c/d", f"Invalid short topic name 'a/b/c/d', {SHORT}"),
        ("a/b/c/", f"Invalid short topic name 'a/b/c/', {SHORT}"),
        ("a/b/c/d//", "Invalid topic name a/b/c/d//"),
        ("/a", "Invalid topic name /a"),
        ("persistent://a/b/c//d", V1.partition("Got:")[0] + "Got: persistent://a/b/c//d"),
    ],
)
def test_an_invalid_topic_name_is_refused_with_the_message_of_a_real_broker(
    text: str, sentence: str
) -> None:
    with pytest.raises(InvalidNameError) as caught:
        TopicName.parse(text)
    assert str(caught.value) == sentence


def test_blank_characters_are_equal_to_a_real_brokers() -> None:
    # Pulsar 4.2.4's answers to lookups of local names of one character
    recorded = "\t\n\x0b\f\r\x1c\x1d\x1e\x1f \u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006"
    recorded += "\u2008\u2009\u200a\u2028\u2029\u205f\u3000"
    assert "".join(filter(is_blank, map(chr, range(0x10000)))) == recorded
    assert is_blank("")
    assert is_blank(recorded)
    assert not is_blank(f"{recorded}\x85")


def test_a_namespace_consists_of_a_tenant_and_a_name() -> None:
    assert NamespaceName.parse("public/default") == NamespaceName("public", "default")
    assert str(NamespaceName("public", "default")) == "public/default"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("public", "Invalid namespace format. namespace: public"),
        ("public/standalone/gold", "Invalid namespace format"),
        ("a/b/c/d", "Invalid namespace format"),
        ("", "Invalid namespace format. namespace: "),
        ("public/go ld", "Invalid named entity: 'go ld' in namespace 'public/go ld'"),
        ("public/", "Invalid named entity: '' in namespace 'public/'"),
        ("público/ns", "Invalid named entity"),
        ("public/ns\n", "Invalid named entity"),
    ],
)
def test_an_invalid_namespace_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(InvalidNameError, match=sentence):
        NamespaceName.parse(text)


@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("x-partition-0", 0),
        ("x-partition-17", 17),
        ("x-partition-1-partition-2", 2),
        ("x-partition-2147483647", 2_147_483_647),
        ("x-partition-2147483648", -1),
        ("x-partition-99999999999", -1),
        pytest.param("x-partition-" + "9" * 5_000, -1, id="more digits than int() takes"),
        ("x-partition-01", -1),
        ("x-partition--1", -1),
        ("x-partition-", -1),
        ("x-partition-1x", -1),
        ("x-partition-1\n", -1),
        ("x", -1),
    ],
)
def test_a_partition_index_is_a_java_int_at_the_end_of_the_name(name: str, index: int) -> None:
    assert partition_index(name) == index
    expected = name if index < 0 else name[: name.rindex("-partition-")]
    assert without_partition(name) == expected


@pytest.mark.parametrize(
    "name",
    [
        "persistent://t/ns/__change_events",
        "persistent://t/ns/__change_events-partition-3",
        "non-persistent://t/ns/__change_events",
        "persistent://t/ns/__transaction_buffer_snapshot",
        "persistent://t/ns/__transaction_buffer_snapshot_segments",
        "persistent://t/ns/__transaction_buffer_snapshot_indexes",
        "persistent://pulsar/system/transaction_coordinator_assign-partition-7",
        "persistent://pulsar/system/__transaction_log_5",
        "persistent://t/ns/orders-sub__transaction_pending_ack",
        "persistent://t/ns/orders-sub__transaction_pending_ack-partition-0",
    ],
)
def test_system_topics_are_recognized(name: str) -> None:
    assert is_system_topic(name)


@pytest.mark.parametrize(
    "name",
    [
        "persistent://t/ns/orders",
        "persistent://t/ns/__change_events_too",
        "persistent://t/ns/my__change_events",
        "persistent://t/ns/transaction_coordinator_assign",
        "non-persistent://pulsar/system/resource-usage",
        "persistent://t/ns/__transaction_pending_ack_not",
    ],
)
def test_user_topics_are_not_recognized_as_system_topics(name: str) -> None:
    assert not is_system_topic(name)
