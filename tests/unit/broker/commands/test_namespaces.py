"""The namespace of a request: each profile has rules for malformed names."""

import pytest

import proto.PulsarApi_pb2 as pb
from broker.commands.namespaces import named_or_closed, named_or_refused
from proto.errors import RemoteProtocolError
from server.connection.request_errors import RequestError


def test_a_namespace_is_read() -> None:
    assert str(named_or_refused("a/b")) == str(named_or_closed("a/b")) == "a/b"


def test_a_malformed_one_is_refused_with_what_is_expected() -> None:
    with pytest.raises(RequestError, match="expected tenant/namespace") as caught:
        named_or_refused("x")
    assert caught.value.server_error == pb.InvalidTopicName


def test_a_real_broker_closes_for_it_and_takes_slashes_behind_it() -> None:
    with pytest.raises(RemoteProtocolError):
        named_or_closed("x")
    assert str(named_or_closed("a/b/")) == "a/b/"
