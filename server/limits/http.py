"""Limits on the web port: request rate, simultaneous requests, sizes, deadlines.

Source: upstream RateLimitingFilter (429, for every path) and MaxRequestSizeFilter (a body without a
length is refused as well). Differs: upstream queues requests above maxConcurrentHttpRequests, as
Jetty's QoSFilter does; here they are refused, since the queue would be unbounded.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from aiohttp import web

from limiter.clock import Timer
from limiter.token_bucket import Rate
from server.limits.connections import Limit, Refusals

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from aiohttp.typedefs import Middleware

    from limiter.clock import Clock

    Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


UNREAD_SECONDS = 30.0
"""Longest time without reading any of a response, which is kept in memory meanwhile."""


@dataclass(frozen=True, slots=True)
class HttpBounds:
    """The configured limits of a web port; 0 or less means unlimited.

    Attributes:
        a_second: Requests per second.
        at_once: Simultaneous requests.
        connections: Simultaneous connections.
        body_bytes: Size of a request's body; a body without a length is then refused.
        header_bytes: Size of the request line, and of each header; 1 or more.
        seconds: Time until a request's headers are complete, and again until its body is.
        idle_seconds: Time until a connection without a request is closed.
        body_status: The HTTP status for a body that is too large.
        forwards: True if requests are forwarded by code that limits their number itself.
    """

    a_second: float = 0.0
    at_once: int = 0
    connections: int = 0
    body_bytes: int = 0
    header_bytes: int = 8190
    seconds: float = 0.0
    idle_seconds: float = 0.0
    body_status: int = 413
    forwards: bool = False


@dataclass(slots=True)
class HttpLimits:
    """Applies the limits of a web port, and counts requests, connections and refusals.

    Attributes:
        bounds: The limits.
        clock: The source of time.
        refusals: Counts refusals.
        active: Requests in flight.
        requests: All requests, including refused requests.
        connections: Open connections.
    """

    bounds: HttpBounds
    clock: Clock
    refusals: Refusals = field(default_factory=Refusals)
    active: int = 0
    requests: int = 0
    connections: int = 0
    _rate: Rate | None = None

    def middleware(self) -> Middleware:
        """Return middleware that applies the limits to every HTTP request."""
        if self.bounds.a_second > 0:
            self._rate = Rate(self.bounds.a_second, self.clock)

        @web.middleware
        async def limited(request: web.Request, handler: Handler) -> web.StreamResponse:
            self.requests += 1
            self._check(request)
            self.active += 1
            end_body_time = self._time_body(request)
            try:
                return await handler(request)
            finally:
                self.active -= 1
                end_body_time()

        return limited

    def _check(self, request: web.Request) -> None:
        """Raise an error for an HTTP request that exceeds a limit.

        Raises:
            web.HTTPException: The request exceeds a limit.
        """
        bounds = self.bounds
        if self._rate is not None and not self._rate.take():
            self.refusals.add(Limit.HTTP_RATE)
            reason = f"more than httpRequestsMaxPerSecond={bounds.a_second:g} requests a second"
            raise web.HTTPTooManyRequests(reason=reason)
        if 0 < bounds.at_once <= self.active and not bounds.forwards:
            self.refusals.add(Limit.HTTP_CONCURRENT)
            reason = f"more than maxConcurrentHttpRequests={bounds.at_once} requests at once"
            raise web.HTTPServiceUnavailable(reason=reason)
        if bounds.body_bytes > 0 and request.body_exists:
            length = request.content_length
            if length is None or length > bounds.body_bytes:
                self.refusals.add(Limit.HTTP_BODY_BYTES)
                raise _body_refusal(bounds, length)

    def _time_body(self, request: web.Request) -> Callable[[], object]:
        """Start the deadline of a request's body; return a function that cancels it.

        After the deadline, reading the body raises an error.
        """
        content, seconds = request.content, self.bounds.seconds
        if seconds <= 0 or content.is_eof():
            return lambda: None

        def is_late() -> None:
            if not content.is_eof():
                self.refusals.add(Limit.HTTP_TIME)
                reason = f"the body did not come within {seconds:g} s"
                content.set_exception(web.HTTPRequestTimeout(reason=reason))

        return self.clock.call_at(self.clock.now() + seconds, is_late).cancel


class HttpPlace:
    """A connection of the web port that counts toward the limit, with its deadlines."""

    __slots__ = ("_is_late", "_limits", "_timer", "_unread")

    def __init__(self, limits: HttpLimits) -> None:
        self._limits = limits
        self._timer = Timer(limits.clock)
        self._unread = Timer(limits.clock)
        self._is_late: Callable[[str], object] | None = None

    def taken(self, is_late: Callable[[str], object]) -> str | None:
        """Count the connection; return the reason to refuse it, or None if it is accepted.

        Args:
            is_late: Called with a sentence when a request's headers miss the deadline.
        """
        limits = self._limits
        limits.connections += 1
        self._is_late = is_late
        if 0 < limits.bounds.connections < limits.connections:
            limits.refusals.add(Limit.HTTP_CONNECTIONS)
            return f"more than maxHttpServerConnections={limits.bounds.connections} connections"
        self._begin()
        return None

    def heard(self, *, asks: bool) -> None:
        """End the deadline if a request's headers are complete, else start one unless it runs."""
        if asks:
            self._timer.stop()
        elif not self._timer.armed:
            self._begin()

    def does_not_read(self, cut_off: Callable[[], object]) -> None:
        """Start the deadline of a client that has stopped reading the response."""

        def too_late() -> None:
            self._limits.refusals.add(Limit.HTTP_TIME)
            cut_off()

        self._unread.after(UNREAD_SECONDS, too_late)

    def reads(self) -> None:
        """Cancel the deadline of a client that stopped reading; may be called repeatedly."""
        self._unread.stop()

    def left(self) -> None:
        """Stop counting the connection, which was closed, and cancel its deadlines.

        May be called repeatedly.
        """
        self._timer.stop()
        self._unread.stop()
        if self._is_late is not None:
            self._limits.connections -= 1
            self._is_late = None

    def too_long(self) -> str:
        """Count a request line or header that is too long, and return the error's text."""
        self._limits.refusals.add(Limit.HTTP_HEADER_BYTES)
        most = self._limits.bounds.header_bytes
        return f"the request line or a header has more than httpMaxRequestHeaderSize={most} bytes"

    def _begin(self) -> None:
        seconds = self._limits.bounds.seconds
        if seconds > 0:
            self._timer.after(seconds, self._late)

    def _late(self) -> None:
        if self._is_late is not None:
            self._limits.refusals.add(Limit.HTTP_TIME)
            self._is_late(f"no request came within {self._limits.bounds.seconds:g} s")


def _body_refusal(bounds: HttpBounds, length: int | None) -> web.HTTPException:
    most = f"httpMaxRequestSize={bounds.body_bytes}"
    said = "does not say its length" if length is None else f"has {length} bytes"
    reason = f"the body {said}: {most}"
    if bounds.body_status == 400:
        return web.HTTPBadRequest(reason=reason)
    if length is None:
        return web.HTTPLengthRequired(reason=reason)
    return web.HTTPRequestEntityTooLarge(bounds.body_bytes, length, reason=reason)
