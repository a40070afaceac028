"""Credentials of CONNECT whose check takes time: the peer is not read until it is done."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from limiter.flow.causes import PauseCause
from proto.commands import NO_REQUEST
from server.limits.connections import address_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from limiter.flow.read_gate import ReadGate
    from proto.transport.frame_intake import FrameIntake
    from server.authentication.service import AuthenticationService
    from server.connection.permitted_requests import PermittedRequests


class Checked(Protocol):
    """A connection, as far as its peer can be made to wait."""

    peer: str
    closed: bool
    gate: ReadGate
    intake: FrameIntake
    requests: PermittedRequests


def when_checked(
    cnx: Checked,
    service: AuthenticationService,
    shown: Iterable[tuple[str, bytes]],
    go_on: Callable[[], object],
) -> None:
    """Go on with CONNECT: at once, or when what takes time of its credentials is done.

    Args:
        cnx: Whose CONNECT it is.
        service: Judges credentials.
        shown: The methods and credentials in it.
        go_on: Asks the service, which answers at once then.
    """
    slow = [one for one in shown if service.takes_time(*one)]
    if not slow:
        go_on()
        return

    async def check() -> None:
        for method, data in slow:
            await service.prepare(method, data, address_of(cnx.peer))
        if not cnx.closed:
            cnx.intake.held = False
            go_on()
            cnx.gate.open_for(PauseCause.CHECKING_CREDENTIALS)

    cnx.intake.held = True  # What came behind CONNECT is for whom CONNECT let in.
    cnx.gate.close_for(PauseCause.CHECKING_CREDENTIALS)
    cnx.requests.tasks.start(NO_REQUEST, check)
