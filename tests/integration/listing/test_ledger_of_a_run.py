"""At the end of a run the ledger names holders of unreleased memory."""

import logging
from dataclasses import replace

import aiohttp
import pytest

from broker.configuration.config import BrokerConfig
from broker.service import BrokerService
from limiter.memory.dual_limiter import LimitType
from limiter.permits.ledger import UnbalancedLedgerError
from proxy.config import ProxyConfig
from proxy.service import ProxyService
from server.limiter_report.routes import LIMITER_PATH
from tests.support.peers.raw_peer import RawPeer
from tests.support.processes.cluster import broker_config, proxy_config, until

NS = "public/default"
WITHOUT_LEDGER = {"limiter_ledger": False}


def service(role: str, **fields: object) -> BrokerService | ProxyService:
    config: BrokerConfig | ProxyConfig
    if role == "broker":
        config = replace(broker_config({}), **fields)
        return BrokerService(config)
    config = replace(proxy_config({}), **fields)
    return ProxyService(config)


def errors(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the errors of the servers; asyncio may tell of a test before, when garbage goes."""
    found = [one for one in caplog.records if one.levelno >= logging.ERROR]
    return [one.getMessage() for one in found if one.name != "asyncio"]


@pytest.mark.parametrize("role", ["broker", "proxy"])
async def test_an_unreleased_permit_is_an_error_that_names_its_connection(
    role: str, caplog: pytest.LogCaptureFixture
) -> None:
    part = await service(role).__aenter__()
    async with await RawPeer.shaken_hands(part.service_url):
        (cnx,) = part.connections
    await until(lambda: not part.connections)
    await part.limiter.acquire(LimitType.DIRECT_MEMORY, 600, None, cnx, NS)
    with pytest.raises(UnbalancedLedgerError) as caught:
        await part.__aexit__(None, None, None)
    (holding,) = caught.value.holdings
    assert (holding.owner, holding.namespace, holding.size_bytes) == (cnx.peer, NS, 600)
    (sentence,) = errors(caplog)
    assert sentence.startswith(
        "after the drain the ledger is not balanced: "
        f"{cnx.peer} still holds 600 bytes of direct memory for public/default, taken "
    )


async def test_an_error_in_the_block_is_not_hidden_by_an_unbalanced_ledger(caplog) -> None:
    async def run() -> None:
        async with service("broker") as part:
            await part.limiter.acquire(LimitType.HEAP_MEMORY, 600, None, "somebody", NS)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await run()
    assert len(errors(caplog)) == 1


async def test_a_released_permit_is_not_reported(caplog: pytest.LogCaptureFixture) -> None:
    part = service("broker")
    async with part:
        permit = await part.limiter.acquire(LimitType.HEAP_MEMORY, 600, None, "somebody", NS)
        part.limiter.release(permit)
    assert errors(caplog) == []


async def test_without_a_ledger_an_unreleased_permit_is_not_reported(caplog) -> None:
    part = service("broker", **WITHOUT_LEDGER)
    async with part:
        await part.limiter.acquire(LimitType.HEAP_MEMORY, 600, None, "somebody", NS)
        url = part.web_service_url + LIMITER_PATH
        async with aiohttp.ClientSession() as session, session.get(url) as answer:
            heap = (await answer.json())["heap"]
    assert (heap["ledger"], heap["acquiredBytes"]) == (None, 600)
    assert [one["oldestPermitSeconds"] for one in heap["holders"]] == [None]
    assert errors(caplog) == []
