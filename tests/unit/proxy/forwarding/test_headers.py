"""Headers that pass a forwarding proxy, and headers that end at the proxy."""

import pytest
from multidict import CIMultiDict

from proxy.forwarding.headers import request_headers, without_body, without_hop_by_hop
from server.json_answers import RestError


def test_what_concerns_one_connection_is_left_out() -> None:
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


def test_a_broker_is_told_for_whom_it_is_asked_and_not_the_proxys_own_name() -> None:
    headers = CIMultiDict({"Host": "proxy:8080", "Expect": "100-continue", "Accept": "*/*"})
    sent = request_headers(headers, "10.1.2.3")
    assert "Host" not in sent
    assert "Expect" not in sent
    assert sent["Accept"] == "*/*"
    assert sent["X-Forwarded-For"] == "10.1.2.3"
    assert sent["X-Forwarded-Host"] == "proxy:8080"
    assert "floodgate-proxy" in sent["Via"]


def test_a_broker_is_told_the_clients_role_and_not_what_the_client_says_of_itself() -> None:
    headers = CIMultiDict({"X-Original-Principal": "admin", "Authorization": "Bearer x"})
    sent = request_headers(headers, "10.1.2.3", role="ann")
    assert sent.getall("X-Original-Principal") == ["ann"]
    assert sent["Authorization"] == "Bearer x"


def test_a_client_that_the_proxy_does_not_know_speaks_for_nobody() -> None:
    # A broker may recognize the proxy by the TLS certificate, and trust the proxy
    headers = CIMultiDict([("X-Original-Principal", "admin"), ("x-original-principal", "root")])
    sent = request_headers(headers, "10.1.2.3", role=None)
    assert "X-Original-Principal" not in sent


@pytest.mark.parametrize("role", [" admin", "admin\t", "a\r\nX-Mine: 1", "a\x00b", "\ud800"])
def test_a_role_that_a_header_would_change_is_told_to_nobody(role: str) -> None:
    with pytest.raises(RestError) as refused:
        request_headers(CIMultiDict(), "10.1.2.3", role=role)
    assert refused.value.status == 401


@pytest.mark.parametrize("role", ["ann", "", "Zoë of sales", "CN=ann,OU=x"])
def test_every_other_role_is_told_as_it_is(role: str) -> None:
    assert request_headers(CIMultiDict(), None, role=role)["X-Original-Principal"] == role


def test_a_chain_of_proxies_is_kept() -> None:
    sent = request_headers(CIMultiDict({"X-Forwarded-For": "1.1.1.1"}), "2.2.2.2")
    assert sent.getall("X-Forwarded-For") == ["1.1.1.1", "2.2.2.2"]


@pytest.mark.parametrize("name", ["Content-Length", "content-type"])
def test_headers_of_a_body_go_with_it(name: str) -> None:
    assert name not in without_body(CIMultiDict({name: "1", "Accept": "x"}))
