import socket

import pytest

from loadgen.errors import UsageError
from loadgen.loopback import hosts_of, is_loopback, require_own_cluster


@pytest.mark.parametrize(
    ("address", "hosts"),
    [
        ("pulsar://127.0.0.1:6650", ["127.0.0.1"]),
        ("pulsar+ssl://a:6651,b:6652", ["a", "b"]),
        ("http://[::1]:8080/admin", ["::1"]),
        ("http://user:word@a:1", ["a"]),
        ("a:6650", ["a"]),
        ("::1", ["::1"]),
        ("", []),
    ],
)
def test_the_hosts_of_an_address_are_extracted(address: str, hosts: list[str]) -> None:
    assert hosts_of(address) == hosts


@pytest.mark.parametrize(
    "address",
    ["pulsar://127.0.0.1:6650", "http://127.8.9.1", "[::1]:80", "::ffff:127.0.0.1", "localhost"],
)
def test_loopback_addresses_are_recognized(address: str) -> None:
    assert is_loopback(address)


@pytest.mark.parametrize(
    "address",
    ["http://10.0.0.1:80", "0.0.0.0", "pulsar://127.0.0.1:1,10.0.0.1:1", "::ffff:10.0.0.1", ""],
)
def test_other_addresses_are_not_loopback(address: str) -> None:
    assert not is_loopback(address)


def resolve_to(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> None:
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 0)) for address in addresses]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **kwargs: found)


def test_a_host_name_is_loopback_only_if_all_its_addresses_are(monkeypatch) -> None:
    resolve_to(monkeypatch, "127.0.0.1", "10.0.0.1")
    assert not is_loopback("http://both.example")
    resolve_to(monkeypatch, "127.0.0.1", "::1")
    assert is_loopback("http://mine.example")


def test_a_name_that_does_not_resolve_is_not_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object, **kwargs: object) -> None:
        raise socket.gaierror

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    assert not is_loopback("http://nowhere.example")


def test_a_remote_cluster_requires_confirmation() -> None:
    with pytest.raises(UsageError, match="--yes-this-is-my-cluster"):
        require_own_cluster("http://10.0.0.1:8080", confirmed=False)
    require_own_cluster("http://10.0.0.1:8080", confirmed=True)
    require_own_cluster("http://127.0.0.1:8080", confirmed=False)
