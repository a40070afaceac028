"""A client is redirected to the addresses of the new owner."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

import proto.PulsarApi_pb2 as pb
from broker.bundles import BundleRange
from broker.ownership import tables
from broker.ownership.handing_over import (
    TELL_SECONDS,
    WAIT_SECONDS,
    hand_over,
    have_forgotten,
    tell_new_owner,
)
from broker.ownership.ownership import Bundle
from proto.names import NamespaceName
from server.configuration.addresses import ServerUrls
from tests.support.clocks.manual_clock import ManualClock
from tests.support.clocks.settle import settle, started

PLAIN, TLS = "pulsar://b:1", "pulsar+ssl://b:2"


@pytest.mark.parametrize(
    "urls",
    [ServerUrls(), ServerUrls(PLAIN), ServerUrls(service_tls=TLS), ServerUrls(PLAIN, "", TLS)],
)
@pytest.mark.parametrize("kind", [pb.CommandCloseProducer, pb.CommandCloseConsumer])
def test_each_address_of_the_new_owner_is_set_in_its_own_field(urls, kind) -> None:
    closed = kind()
    tell_new_owner(closed, urls)
    # A missing address is omitted, and looked up
    assert closed.HasField("assignedBrokerServiceUrl") is bool(urls.service)
    assert closed.HasField("assignedBrokerServiceUrlTls") is bool(urls.service_tls)
    assert closed.assignedBrokerServiceUrl == urls.service
    assert closed.assignedBrokerServiceUrlTls == urls.service_tls


async def test_handing_over_is_bounded_in_time_even_with_a_slow_database(monkeypatch) -> None:
    # A broker that takes over no bundle, and a slow database
    clock, bundles = ManualClock(), [_bundle(low) for low in range(20)]
    begun, asked = clock.now(), 0

    async def offer(*_: object) -> None:
        pass

    async def owner_of(*_: object) -> None:
        nonlocal asked
        asked += 1
        assert clock.now() < begun + WAIT_SECONDS
        clock.advance(0.3)

    monkeypatch.setattr(tables, "offer", offer)
    monkeypatch.setattr(tables, "owner_of", owner_of)
    owners = await hand_over(_no_database, bundles, clock, ["heir"])
    assert (owners, asked) == ({}, 7)


async def test_a_deletion_is_repeated_to_a_peer_that_missed_its_notification(monkeypatch) -> None:
    # An owner whose connection for notifications is broken at first
    clock, told = ManualClock(), []

    async def tell_deleted(*_: object) -> None:
        told.append(clock.now())

    async def owner_among(*_: object) -> str | None:
        return PLAIN if len(told) < 3 else None

    async def is_so(*_: object) -> bool:
        return True

    monkeypatch.setattr(tables, "tell_deleted", tell_deleted)
    monkeypatch.setattr(tables, "owner_among", owner_among)
    monkeypatch.setattr(tables, "are_remembered", is_so)
    monkeypatch.setattr(tables, "namespaces_deleted", is_so)
    namespaces = [NamespaceName("public", "default")]
    waiting = await started(have_forgotten(_no_database, namespaces, "me", clock))
    for _ in range(2):
        assert not waiting.done()
        clock.advance(TELL_SECONDS)
        await settle()
    assert (len(told), waiting.done()) == (3, True)


def _bundle(low: int) -> Bundle:
    return Bundle(NamespaceName("public", "default"), BundleRange(low, low + 1))


@asynccontextmanager
async def _no_database() -> AsyncIterator[None]:
    yield
