"""The page /floodgate/ in a real browser: holders, waiters and slow peers, live and offline."""

import asyncio
from urllib.parse import urlsplit

from broker.service import BrokerService
from server.seeing.page import PAGE_PATH
from tests.proof.result import ProofError, ProofOptions, ProofResult
from tests.support.authentication.credentials import properties, token
from tests.support.browser import Browser, Look, Page, Seen, program, running_browser
from tests.support.clocks.manual_clock import ManualClock
from tests.support.peers.raw_peer import RawPeer, topics_command
from tests.support.processes.cluster import Cluster, broker_config, cluster, topic_names, until

LOOKS = (
    Look("phone", 360),
    Look("phone-dark", 360, dark=True),
    Look("desktop", 1280),
    Look("desktop-dark", 1280, dark=True),
)
ROLES = ("broker", "proxy")
NAMESPACES = ("acme/orders", "acme/billing-and-invoices", "public/default")
TOPICS = {name: topic_names(name, 20_000, 240) for name in NAMESPACES}
"""Three lists of 5 MB, of which the limit admits a single list at a time."""
DIRECT_BYTES = 6_000_000
WAIT_SECONDS = 12.0
_NO_CLOSING = {"floodgateSlowPeerGraceMs": "3600000"}
_HOLDERS = 'document.querySelectorAll("#holders tbody tr").length'
_WAITING = '[...document.querySelectorAll("#waiting tbody td:first-child")].map(c => c.textContent)'
_WIDE = """[...document.querySelectorAll(".wide")].filter(
  (one) => one.scrollWidth > one.clientWidth + 1).map((one) => one.id)"""
_STATE = 'document.getElementById("state")'


def prove(options: ProofOptions) -> ProofResult:
    """View both servers' page in all ways, and keep the pictures.

    Raises:
        ProofError: Chromium is missing.
    """
    path = program()
    if path is None:
        raise ProofError("there is no Chromium on this machine: install chromium")
    options.out.mkdir(parents=True, exist_ok=True)
    result = ProofResult()
    asyncio.run(_prove(path, options, result))
    return result


async def _prove(path: str, options: ProofOptions, result: ProofResult) -> None:
    async with running_browser(path) as browser:
        await _without_credentials(browser, options, result)
        await _both_servers(browser, options, result)


async def _both_servers(browser: Browser, options: ProofOptions, result: ProofResult) -> None:
    limits, clock = {"direct_max_bytes": DIRECT_BYTES}, ManualClock()
    async with cluster(
        TOPICS, both=_NO_CLOSING, broker_limits=limits, proxy_limits=limits, clock=clock
    ) as parts:
        for role in ROLES:
            peers = await _who_do_not_read(parts, role)
            clock.advance(WAIT_SECONDS)
            for look in LOOKS:
                options.note(f"{role}, {look.name}")
                await _look(parts, role, browser, look, options, result)
            await _change(parts, role, browser, peers, result)
            for peer in peers:
                peer.close()
            await _until_alone(parts, role)


async def _until_alone(parts: Cluster, role: str) -> None:
    await until(lambda: not parts.part(role).connections)


async def _who_do_not_read(parts: Cluster, role: str) -> list[RawPeer]:
    """Request each namespace's list by a non-reading client; a single request is granted."""
    part, peers = parts.part(role), []
    for name in NAMESPACES:
        peers.append(await parts.peer(role))
        await peers[-1].send(topics_command(1, name))
        await until(lambda: part.totals.pending_bytes)
    await until(lambda: sum(part.limiter.queue_size(kind) for kind in part.ledgers) == 2)
    return peers


async def _look(
    parts: Cluster,
    role: str,
    browser: Browser,
    look: Look,
    options: ProofOptions,
    result: ProofResult,
) -> None:
    address = parts.part(role).web_service_url + PAGE_PATH
    async with browser.opened(address, look) as page:
        await page.until(f"{_HOLDERS} === 3")
        seen = await page.looked_at()
        shown = await page.value("document.body.innerText")
        waiting = await page.value(_WAITING)
        wide = await page.value(_WIDE)
    place = f"{role}, {look.name}"
    (options.out / f"{role}-{look.name}.png").write_bytes(seen.picture)
    faults = [*_faults(seen, address), *_missing(shown), *(f"wide: {one}" for one in wide)]
    faults += [] if len(set(waiting)) == 2 else [f"waiting: {waiting}"]
    result.check(place, not faults, f"{place}: {'; '.join(faults) or 'nothing amiss'}")


async def _change(
    parts: Cluster, role: str, browser: Browser, peers: list[RawPeer], result: ProofResult
) -> None:
    """View a page while a client leaves, the server is unreachable, and reachable again."""
    address = parts.part(role).web_service_url + PAGE_PATH
    async with browser.opened(address, LOOKS[0]) as page:
        await page.until(f"{_HOLDERS} === 3")
        peers.pop().close()
        await page.until(f"{_HOLDERS} === 2")
        before = _faults(await page.looked_at(), address)
        said = await _offline(page)
        await page.until(f'{_STATE}.textContent.startsWith("as of")')
        rows = await page.value(_HOLDERS)
    result.check(
        f"{role}, live",
        not before,
        f"{role}: of clients that left there are still {before or 'none'}",
    )
    offline = said.startswith("no answer; what is shown is of") and rows == 2
    result.check(f"{role}, offline", offline, f"{role}: without the server it says {said!r}")


async def _without_credentials(
    browser: Browser, options: ProofOptions, result: ProofResult
) -> None:
    """Give the page of a broker with authentication a wrong token, and then a right token."""
    keys = properties(options.out, superUserRoles="ann")
    async with BrokerService(broker_config(keys)) as broker:
        address = broker.web_service_url + PAGE_PATH
        async with browser.opened(address, LOOKS[0]) as page:
            said = [await _refused(page)]
            (options.out / "without-credentials.png").write_bytes((await page.looked_at()).picture)
            await _give(page, "wrong")
            said.append(await _refused(page))
            await _give(page, token(sub="ann").decode())
            await page.until(f'{_STATE}.textContent.startsWith("as of")')
            seen = await page.looked_at()
    odd = [one for one in _faults(seen, address) if "401" not in one]
    result.check(
        "credentials",
        not odd and said == ["Authentication required"] * 2,
        f"without credentials it asks for them, and shows all once it has some: {said} {odd}",
    )


async def _refused(page: Page) -> str:
    await page.until('!document.getElementById("who").hidden')
    return str(await page.value(f"{_STATE}.textContent"))


async def _give(page: Page, secret: str) -> None:
    await page.value(f'document.getElementById("secret").value = "{secret}"')
    await page.value('document.getElementById("who").requestSubmit()')


async def _offline(page: Page) -> str:
    await page.cut_off(offline=True)
    await page.until(f'{_STATE}.className === "bad"')
    said = str(await page.value(f"{_STATE}.textContent"))
    await page.cut_off(offline=False)
    return said


def _faults(seen: Seen, address: str) -> list[str]:
    """Return errors, requests to foreign hosts, and overflowing elements."""
    own = urlsplit(address).netloc
    elsewhere = [one for one in seen.requests if urlsplit(one).netloc != own]
    return [
        *(f"console: {error[:200]}" for error in seen.errors),
        *(f"network: {one}" for one in elsewhere if not one.startswith("data:")),
        *([f"wide: {seen.too_wide} pixels too much"] if seen.too_wide > 0 else []),
    ]


def _missing(shown: str) -> list[str]:
    """Return the expected texts missing on the page."""
    expected = (
        *("waiting, policy", f"the oldest for {WAIT_SECONDS} s", "slowly", "10 minutes ago"),
        *(f"waiting at most 2, for {WAIT_SECONDS} s", "0 timed out, 0 refused at once"),
        *NAMESPACES,
    )
    return [f"missing: {text}" for text in expected if text not in shown]
