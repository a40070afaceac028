"""A broker's redirect is followed, with the right method."""

import pytest
from yarl import URL

from proxy.forwarding.headers import (
    RedirectError,
    is_redirect,
    redirected_method,
    redirected_url,
)

ASKED = URL("http://one:8080/admin/v2/x?y=1", encoded=True)


@pytest.mark.parametrize(
    ("status", "method", "expected"),
    [
        (307, "POST", "POST"),
        (308, "DELETE", "DELETE"),
        (301, "PUT", "PUT"),
        (302, "POST", "GET"),
        (303, "PUT", "GET"),
        (303, "HEAD", "HEAD"),
        (302, "GET", "GET"),
    ],
)
def test_the_status_of_a_redirect_decides_the_method_of_the_next_request(
    status: int, method: str, expected: str
) -> None:
    assert redirected_method(status, method) == expected


def test_only_a_redirect_status_with_a_location_is_a_redirect() -> None:
    assert is_redirect(307, {"Location": "/x"})
    assert not is_redirect(307, {})
    assert not is_redirect(304, {"Location": "/x"})
    assert not is_redirect(201, {"Location": "/x"})


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ("http://two:8081/admin/a%2Fb", "http://two:8081/admin/a%2Fb"),
        ("/other", "http://one:8080/other"),
    ],
)
def test_a_location_may_be_absolute_or_relative(location: str, expected: str) -> None:
    assert str(redirected_url(ASKED, location)) == expected


def test_a_redirect_from_https_to_http_is_refused() -> None:
    asked = URL("https://one:8443/admin/v2/x", encoded=True)
    assert str(redirected_url(asked, "https://two:8443/y")) == "https://two:8443/y"
    assert str(redirected_url(asked, "/y")) == "https://one:8443/y"
    with pytest.raises(RedirectError, match="not https://host:port"):
        redirected_url(asked, "http://one:8443/y")


@pytest.mark.parametrize(
    "location", ["https://two/x", "ftp://two/x", "http://user@two/x", "http://[::1/x"]
)
def test_a_location_that_is_no_plain_http_address_is_refused(location: str) -> None:
    with pytest.raises(RedirectError):
        redirected_url(ASKED, location)
