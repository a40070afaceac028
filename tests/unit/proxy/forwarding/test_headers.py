"""Headers that pass a forwarding proxy, and headers that end at the proxy."""

import pytest
from multidict import CIMultiDict

from proxy.forwarding.headers import request_headers, without_body, without_hop_by_hop
from server.json_answers import RestError


def test_hop_by_hop_headers_are_removed_and_the_rest_is_kept() -> None:
    headers = CIMultiDict(
        [
            ("Connection", "close, X-Mine"),
            ("Keep-Alive", "timeout=5"),
            ("Transfer-Encoding", "chunked"),
            ("X-Mine", "1"),
            ("Set-Cookie", "a=1"),
            ("Set-Cookie", "b=2"),
            ("ETag", "x"),
        ]
    )
    kept = without_hop_by_hop(headers)
    assert list(kept.items()) == [("Set-Cookie", "a=1"), ("Set-Cookie", "b=2"), ("ETag", "x")]


def test_host_and_expect_are_removed_and_the_forwarding_headers_are_added() -> None:
    headers = CIMultiDict({"Host": "proxy:8080", "Expect": "100-continue", "Accept": "*/*"})
    sent = request_headers(headers, "10.1.2.3")
    assert "Host" not in sent
    assert "Expect" not in sent
    assert sent["Accept"] == "*/*"
    assert sent["X-Forwarded-For"] == "10.1.2.3"
    assert sent["X-Forwarded-Host"] == "proxy:8080"
    assert "floodgate-proxy" in sent["Via"]


def test_the_authenticated_role_replaces_the_original_principal_sent_by_the_client() -> None:
    headers = CIMultiDict({"X-Original-Principal": "admin", "Authorization": "Bearer x"})
    sent = request_headers(headers, "10.1.2.3", role="ann")
    assert sent.getall("X-Original-Principal") == ["ann"]
    assert sent["Authorization"] == "Bearer x"


def test_the_original_principal_sent_by_an_unauthenticated_client_is_removed() -> None:
    # A broker may recognize the proxy by the TLS certificate, and trust the proxy
    headers = CIMultiDict([("X-Original-Principal", "admin"), ("x-original-principal", "root")])
    sent = request_headers(headers, "10.1.2.3", role=None)
    assert "X-Original-Principal" not in sent


@pytest.mark.parametrize("role", [" admin", "admin\t", "a\r\nX-Mine: 1", "a\x00b", "\ud800"])
def test_a_role_that_is_no_valid_header_value_is_refused_with_401(role: str) -> None:
    with pytest.raises(RestError) as refused:
        request_headers(CIMultiDict(), "10.1.2.3", role=role)
    assert refused.value.status == 401


@pytest.mark.parametrize("role", ["ann", "", "Zoë of sales", "CN=ann,OU=x"])
def test_a_role_that_is_a_valid_header_value_is_forwarded_unchanged(role: str) -> None:
    assert request_headers(CIMultiDict(), None, role=role)["X-Original-Principal"] == role


def test_the_clients_address_is_appended_to_x_forwarded_for() -> None:
    sent = request_headers(CIMultiDict({"X-Forwarded-For": "1.1.1.1"}), "2.2.2.2")
    assert sent.getall("X-Forwarded-For") == ["1.1.1.1", "2.2.2.2"]


@pytest.mark.parametrize("name", ["Content-Length", "content-type"])
def test_headers_that_describe_the_body_are_removed_with_the_body(name: str) -> None:
    assert name not in without_body(CIMultiDict({name: "1", "Accept": "x"}))
