"""The commands by which a request's errors reach the client."""

from __future__ import annotations

import proto.PulsarApi_pb2 as pb
from proto.commands import error_command, lookup_failed
from server.connection.request_errors import ErrorForm, RequestError

FULL = RequestError(pb.TooManyRequests, "full")
OWN, RELAYED = (
    RequestError(pb.MetadataError, "text", by_broker=by_broker) for by_broker in (False, True)
)


def test_an_error_of_the_broker_may_have_a_command_of_its_own() -> None:
    form = ErrorForm(error_command, FULL, build_relayed=lookup_failed)
    assert form.command(7, OWN) == error_command(7, pb.MetadataError, "text")
    assert form.command(7, RELAYED) == lookup_failed(7, pb.MetadataError, "text")


def test_without_one_both_have_the_same() -> None:
    form = ErrorForm(lookup_failed, FULL)
    assert form.command(7, OWN) == form.command(7, RELAYED)


def test_an_error_names_its_code_in_the_log() -> None:
    assert str(OWN) == "MetadataError: text"
