import pytest

from client.connection.service_url import ServiceUrl, parse_service_url
from client.exceptions import ConnectError


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("pulsar://a", ServiceUrl((("a", 6650),), tls=False)),
        ("pulsar+ssl://a", ServiceUrl((("a", 6651),), tls=True)),
        ("pulsar://a:1,b,[::1]:3/", ServiceUrl((("a", 1), ("b", 6650), ("::1", 3)), tls=False)),
        ("pulsar+ssl://a:1,b", ServiceUrl((("a", 1), ("b", 6651)), tls=True)),
    ],
)
def test_a_service_url_names_a_single_host_or_several_hosts(url: str, expected: ServiceUrl) -> None:
    assert parse_service_url(url) == expected


@pytest.mark.parametrize("url", ["", "a:1", "http://a:1", "pulsar://", "pulsar://a:1,,b:2"])
def test_an_invalid_service_url_is_refused(url: str) -> None:
    with pytest.raises(ConnectError, match="is not a service URL"):
        parse_service_url(url)
