"""Requests sharing a flight agree in these parameters."""

import proto.PulsarApi_pb2 as pb
from proxy.listing.flights import flight_key


def key(*pairs: tuple[str, str]) -> object:
    properties = [pb.KeyValue(key=key, value=value) for key, value in pairs]
    request = pb.CommandGetTopicsOfNamespace(
        request_id=1, namespace="tenant/ns", properties=properties
    )
    return flight_key(request, ("127.0.0.1", 6650))


def test_listings_with_the_same_properties_share_a_flight() -> None:
    assert key(("a", "1"), ("b", "2")) == key(("a", "1"), ("b", "2"))


def test_listings_with_different_properties_do_not_share_a_flight() -> None:
    asked = [
        (),
        (("a", "1"),),
        (("a", "1"), ("b", "2")),
        (("a", "1|b=2"),),
        (("a", ""), ("1", "")),
        (("a1", ""),),
        (("", "a1"),),
    ]
    assert len({key(*pairs) for pairs in asked}) == len(asked)
