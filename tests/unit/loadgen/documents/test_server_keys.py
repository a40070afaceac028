"""Secrets in the keys of a document's servers: they would be on a command line, and in a run."""

from __future__ import annotations

from loadgen.cluster import ClusterPlan
from loadgen.documents.server_keys import server_key_faults


def test_a_secret_in_a_document_is_refused_and_not_said_again() -> None:
    # Given
    cluster = ClusterPlan(
        broker={"tokenSecretKey": "planted"},
        proxy={"brokerClientAuthenticationParameters": "token:planted"},
    )
    # When
    said = [str(fault) for fault in server_key_faults(cluster)]
    # Then
    assert [one for one in said if "--broker-conf" in one]
    assert [one for one in said if "--proxy-conf" in one]
    assert "planted" not in "".join(said)


def test_the_place_of_a_secret_may_be_in_a_document() -> None:
    cluster = ClusterPlan(broker={"tokenSecretKey": "file:///secret.key"})
    assert not list(server_key_faults(cluster))
