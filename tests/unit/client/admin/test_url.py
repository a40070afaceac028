"""client.admin.url: addresses, paths and queries of the admin REST."""

import pytest

from client.admin.errors import AdminUrlError
from client.admin.url import checked_url, properties_text, query, shown_url, topic_path
from proto.names import TopicName


def test_a_slash_at_the_end_makes_no_difference() -> None:
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
def test_what_is_no_web_address_is_refused_with_one_that_is(url: str) -> None:
    with pytest.raises(AdminUrlError, match=r"such as http://localhost:8080"):
        checked_url(url)


def test_a_password_is_not_shown() -> None:
    assert shown_url("http://ann:se@cret@broker:8080/x") == "http://broker:8080/x"
    assert shown_url("http://broker:8080") == "http://broker:8080"


def test_the_binary_port_is_told_from_the_web_port() -> None:
    with pytest.raises(AdminUrlError, match=r"web port, such as http://broker:8080"):
        checked_url("pulsar://broker:6650")


def test_what_a_name_may_hold_stays_within_its_segment() -> None:
    topic = TopicName.parse("persistent://a/b/x +%?#é")
    assert topic_path(topic) == "/admin/v2/persistent/a/b/x%20%2B%25%3F%23%C3%A9"


def test_only_what_is_given_is_asked() -> None:
    assert query(bundle=None, properties="", force=False) == ""
    assert query(force=True, properties="a=b,c=d") == "?force=true&properties=a%3Db%2Cc%3Dd"


def test_separators_within_a_property_are_told_from_those_between() -> None:
    assert properties_text({"k": "1", "l": "a,b=c%"}) == "k=1,l=a%2Cb%3Dc%25"


@pytest.mark.parametrize("url", ["http://ann:planted@b?a=b", "pulsar://ann:planted@b:6650"])
def test_a_password_in_a_wrong_address_is_not_said_again(url: str) -> None:
    with pytest.raises(AdminUrlError) as refused:
        checked_url(url)
    assert "planted" not in str(refused.value)
