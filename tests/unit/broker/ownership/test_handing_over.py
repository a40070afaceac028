"""A client is told where to go by the addresses that its new broker has."""

from __future__ import annotations

import pytest

import proto.PulsarApi_pb2 as pb
from broker.ownership.handing_over import tell_new_owner
from server.configuration.addresses import ServerUrls

PLAIN, TLS = "pulsar://b:1", "pulsar+ssl://b:2"


@pytest.mark.parametrize(
    "urls",
    [ServerUrls(), ServerUrls(PLAIN), ServerUrls(service_tls=TLS), ServerUrls(PLAIN, "", TLS)],
)
@pytest.mark.parametrize("kind", [pb.CommandCloseProducer, pb.CommandCloseConsumer])
def test_each_address_is_told_in_its_own_field(
    urls: ServerUrls, kind: type[pb.CommandCloseProducer | pb.CommandCloseConsumer]
) -> None:
    # Given
    closed = kind()
    # When
    tell_new_owner(closed, urls)
    # Then: what is not there is not told, and looked up
    assert closed.HasField("assignedBrokerServiceUrl") is bool(urls.service)
    assert closed.HasField("assignedBrokerServiceUrlTls") is bool(urls.service_tls)
    assert closed.assignedBrokerServiceUrl == urls.service
    assert closed.assignedBrokerServiceUrlTls == urls.service_tls
