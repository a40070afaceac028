"""client.admin.url: addresses, paths and queries of the admin REST."""

import pytest

from client.admin.errors import AdminUrlError
from client.admin.url import checked_url, properties_text, query, shown_url, topic_path
from proto.names import TopicName


def test_a_trailing_slash_of_the_url_is_removed() -> None:
    assert checked_url("http://broker:8080/") == "http://broker:8080"
    assert checked_url("https://gate/pulsar/") == "https://gate/pulsar"


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost:8080",
        "http://",
        "ftp://x",
        "http://x:port",
        "http://x?a=b",
        "http://[x",
        "http://a..b",
        "http://x/\udcff",
        f"http://{'x' * 70}",
    ],
)
def test_an_invalid_web_address_is_refused_with_a_valid_example(url: str) -> None:
    with pytest.raises(AdminUrlError, match=r"such as http://localhost:8080"):
        checked_url(url)


def test_a_password_in_a_url_is_not_shown() -> None:
    assert shown_url("http://ann:se@cret@broker:8080/x") == "http://broker:8080/x"
    assert shown_url("http://broker:8080") == "http://broker:8080"


def test_a_binary_protocol_url_is_refused_with_the_web_port_as_a_hint() -> None:
    with pytest.raises(AdminUrlError, match=r"web port, such as http://broker:8080"):
        checked_url("pulsar://broker:6650")


def test_special_characters_of_a_topic_name_are_percent_encoded_in_its_path() -> None:
    topic = TopicName.parse("persistent://a/b/x +%?#é")
    assert topic_path(topic) == "/admin/v2/persistent/a/b/x%20%2B%25%3F%23%C3%A9"


def test_unset_parameters_are_omitted_from_the_query() -> None:
    assert query(bundle=None, properties="", force=False) == ""
    assert query(force=True, properties="a=b,c=d") == "?force=true&properties=a%3Db%2Cc%3Dd"


def test_separators_within_a_property_value_are_percent_encoded() -> None:
    assert properties_text({"k": "1", "l": "a,b=c%"}) == "k=1,l=a%2Cb%3Dc%25"


@pytest.mark.parametrize("url", ["http://ann:planted@b?a=b", "pulsar://ann:planted@b:6650"])
def test_a_password_in_an_invalid_url_is_not_repeated_in_the_error(url: str) -> None:
    with pytest.raises(AdminUrlError) as refused:
        checked_url(url)
    assert "planted" not in str(refused.value)
