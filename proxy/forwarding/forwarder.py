"""Forwarding of HTTP requests to a broker's web port, streaming the bodies both ways.

Source: upstream AdminProxyHandler, a ProxyServlet of Jetty: 502 if the broker is unreachable or its
answer breaks off, 504 on timeout; redirects are followed by the proxy.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections import Counter
from dataclasses import dataclass, replace
from ssl import SSLContext, create_default_context
from typing import TYPE_CHECKING
from urllib.parse import unquote

import aiohttp
from aiohttp import web
from yarl import URL

from limiter.clock import Clock, deadline
from proto.excerpts import excerpt, quoted
from proxy.forwarding.body import ReplayBudget, RequestBody
from proxy.forwarding.headers import (
    MAX_REDIRECTS,
    RedirectError,
    is_redirect,
    redirected_method,
    redirected_url,
    request_headers,
    without_body,
    without_hop_by_hop,
)
from server.authentication.requests import session_of_request
from server.http import RestError
from server.http_connection import cancelled_when_client_leaves
from server.limits.connections import Limit

if TYPE_CHECKING:
    from multidict import CIMultiDict

    from proxy.config import ProxyConfig
    from proxy.pipe.allowed_targets import BrokerTargets
    from server.limits.connections import Refusals
    from server.tls.contexts import ClientTls

logger = logging.getLogger(__name__)

MAX_CONNECTIONS = 256
"""Connections to one broker (upstream: the same); further requests wait."""
CHUNK_BYTES = 65_536
MOST_ENCODINGS = 4
"""Most rounds of percent-decoding before a path is checked, as brokers may decode repeatedly,
too."""
_NOT_ADDED = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")
"""Headers that aiohttp would otherwise add."""


@dataclass(slots=True)
class ForwardingCounters:
    """Counters of the HTTP requests forwarded since the proxy's start.

    Attributes:
        active: In-flight requests.
        answered: Requests answered by a broker, with any status.
        refused: Requests refused at the limit of in-flight requests.
        failed: Requests without a complete answer.
        redirects: Redirects followed.
    """

    active: int = 0
    answered: int = 0
    refused: int = 0
    failed: int = 0
    redirects: int = 0


@dataclass(frozen=True, slots=True)
class _Asked:
    """A forwarded HTTP request, in the form sent to one broker or server."""

    method: str
    url: URL
    headers: CIMultiDict[str]
    body: RequestBody
    tls: SSLContext | bool
    """TLS context of an ``https`` target; True without one."""
    follows: bool
    """True if redirects are followed: only a broker's, since clients need not reach brokers."""


class Forwarder:
    """Forwards up to maxConcurrentHttpRequests HTTP requests at once, at most half for one role.

    Args:
        targets: Allowed brokers for redirects.
        config: Has the limits on forwarded requests.
        clock: Time source.
        refusals: Counts refusals.
        tls: For ``https`` targets; None without any.
    """

    def __init__(
        self,
        targets: BrokerTargets,
        config: ProxyConfig,
        clock: Clock,
        refusals: Refusals,
        tls: ClientTls | None = None,
    ) -> None:
        self._refusals = refusals
        self._tls = tls
        self._targets = targets
        self._config = config
        self._clock = clock
        self._session: aiohttp.ClientSession | None = None
        self._of_others: SSLContext | None = None
        self._by_role: Counter[str | None] = Counter()
        self.counters = ForwardingCounters()
        self.replay = ReplayBudget(config.http_input_max_replay_buffer_size)

    async def close(self) -> None:
        """Close all HTTP connections to brokers and other servers."""
        if self._session is not None:
            await self._session.close()

    async def forward(
        self, request: web.Request, base: str, prefix: str, *, with_credentials: bool = True
    ) -> web.StreamResponse:
        """Forward a request to the server at ``base`` and return the server's answer.

        Args:
            request: The client's request.
            base: ``http://host:port`` or ``https``; path and query are appended unchanged.
            prefix: Path prefix to remove; empty only for brokers. Other servers get no client
                certificate, are verified by the system's authorities, and their redirects go to the
                client.
            with_credentials: Whether the server receives ``Authorization``.

        Raises:
            RestError: 400 for a path that could lead elsewhere, 502, 503 or 504.
        """
        url = URL(base + _plain_path(request, prefix), encoded=True)
        session = session_of_request(request)
        role = session.principal.role if session is not None else None
        self._check_places(role)
        self.counters.active += 1
        self._by_role[role] += 1
        body = RequestBody(request.content if request.can_read_body else None, self.replay)
        try:
            with cancelled_when_client_leaves(request):
                headers = request_headers(request.headers, request.remote, request.scheme, role)
                if not with_credentials:
                    headers.popall("Authorization", None)
                tls = self._tls_of(base, is_broker=not prefix)
                asked = _Asked(request.method, url, headers, body, tls, follows=not prefix)
                return await self._answered(request, asked)
        except asyncio.CancelledError:
            self.counters.failed += 1
            raise
        finally:
            body.release()
            self.counters.active -= 1
            self._by_role[role] -= 1
            if not self._by_role[role]:
                del self._by_role[role]

    def _check_places(self, role: str | None) -> None:
        """Refuse a request if too many are in flight, in total or of the client's role.

        A role may have half of the limit.

        Raises:
            RestError: 503.
        """
        most, active = self._config.max_concurrent_http_requests, self.counters.active
        if active >= most:
            who, held = "", active
        elif role is not None and self._by_role[role] >= max(1, most // 2):
            who, held = f" of {quoted(role)}", self._by_role[role]
        else:
            return
        self.counters.refused += 1
        self._refusals.add(Limit.HTTP_CONCURRENT)
        raise RestError(
            503,
            f"{held} requests{who} are being forwarded already: try again, or raise "
            "maxConcurrentHttpRequests on the proxy, of which one role may have half",
        )

    async def _answered(self, request: web.Request, asked: _Asked) -> web.StreamResponse:
        response: list[web.StreamResponse] = []
        try:
            async with deadline(self._clock, self._config.http_proxy_timeout_seconds):
                await asked.body.read_beginning()
                await self._follow(request, asked, response)
        except (TimeoutError, aiohttp.ClientError, RedirectError, OSError) as error:
            self.counters.failed += 1
            if response:
                return _broken_off(request, response[0], error)
            late = request.content.exception()
            if isinstance(late, web.HTTPException):
                raise late from None
            raise self._refusal(asked.url, error) from None
        self.counters.answered += 1
        return response[0]

    async def _follow(
        self, request: web.Request, asked: _Asked, response: list[web.StreamResponse]
    ) -> None:
        """Send a request, follow redirects between brokers, and stream the final answer."""
        for _ in range(MAX_REDIRECTS + 1):
            async with self._opened().request(
                asked.method,
                asked.url,
                data=asked.body.data(),
                headers=asked.headers,
                allow_redirects=False,
                skip_auto_headers=_NOT_ADDED,
                ssl=asked.tls,
            ) as answer:
                if not asked.follows or not is_redirect(answer.status, answer.headers):
                    await _pass_on(request, answer, response)
                    return
                asked = await self._redirected(asked, answer)
                self.counters.redirects += 1
        raise RedirectError(f"more than {MAX_REDIRECTS} redirects")

    async def _redirected(self, asked: _Asked, answer: aiohttp.ClientResponse) -> _Asked:
        url = redirected_url(asked.url, answer.headers["Location"])
        if url.origin() != asked.url.origin() and not await self._targets.allows_redirect(
            url.host or "", url.port
        ):
            raise RedirectError(
                f"a redirect to {url.host}:{url.port}, which brokerProxyAllowedHostNames, "
                "brokerProxyAllowedIPAddresses and brokerProxyAllowedTargetPorts do not allow"
            )
        method = redirected_method(answer.status, asked.method)
        if method != asked.method:
            nothing = RequestBody(None, self.replay)
            headers = without_body(asked.headers)
            return replace(asked, method=method, url=url, headers=headers, body=nothing)
        if not asked.body.can_be_sent:
            raise RedirectError(
                "a redirect of a request whose body is larger than httpInputMaxReplayBufferSize"
            )
        return replace(asked, method=method, url=url)

    def _tls_of(self, base: str, *, is_broker: bool) -> SSLContext | bool:
        if is_broker and self._tls is not None:
            return self._tls.http_context
        if not base.startswith("https"):
            return True
        if self._of_others is None:
            self._of_others = create_default_context()
        return self._of_others

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            connect = self._config.broker_proxy_connect_timeout_seconds or None
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, limit_per_host=MAX_CONNECTIONS),
                timeout=aiohttp.ClientTimeout(sock_connect=connect),
                # Clients must not share cookies.
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
            )
        return self._session

    def _refusal(self, url: URL, error: Exception) -> RestError:
        where = f"{url.host}:{url.port}"
        if isinstance(error, TimeoutError):
            logger.warning("%s did not answer a forwarded request in time", where)
            return RestError(504, f"the broker at {where} did not answer in time")
        if isinstance(error, RedirectError):
            return RestError(502, f"the broker at {where} answered with {error}")
        logger.info("%s failed a forwarded request: %s", where, excerpt(str(error)))
        return RestError(502, f"the broker at {where} cannot be reached or broke off its answer")


def _plain_path(request: web.Request, prefix: str) -> str:
    """Return a request's path and query unchanged, except for the removal of its prefix.

    Raises:
        RestError: Dots, even repeatedly encoded, lead out of the forwarded paths.
    """
    url = request.rel_url
    path, decoded = url.raw_path, url.raw_path
    for _ in range(MOST_ENCODINGS):
        if any(part.partition(";")[0] in (".", "..") for part in re.split(r"[/\\]", decoded)):
            raise RestError(400, "a path with . or .. is not forwarded")
        before, decoded = decoded, unquote(decoded)
        if before == decoded:
            break
    else:
        raise RestError(400, f"a path that is encoded {MOST_ENCODINGS} times is not forwarded")
    # By segments, since the prefix was matched decoded.
    left = path.split("/")[prefix.count("/") + 1 :]
    return "".join(f"/{part}" for part in left) + url.raw_path_qs[len(path) :]


async def _pass_on(
    request: web.Request, answer: aiohttp.ClientResponse, response: list[web.StreamResponse]
) -> None:
    """Stream a broker's answer to the client, only as fast as the client reads.

    A client that does not read delays only the broker connection used for it.
    """
    headers = without_hop_by_hop(answer.headers)
    passed = web.StreamResponse(status=answer.status, reason=answer.reason, headers=headers)
    response.append(passed)
    await passed.prepare(request)
    async for chunk in answer.content.iter_chunked(CHUNK_BYTES):
        await passed.write(chunk)
    await passed.write_eof()


def _broken_off(
    request: web.Request, response: web.StreamResponse, error: Exception
) -> web.StreamResponse:
    """Abort a client's connection whose answer broke off, so that the client notices the error."""
    logger.info("a forwarded answer broke off: %s", excerpt(repr(error)))
    if request.transport is not None:
        request.transport.abort()
    return response
