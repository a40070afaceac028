"""Slow checks of CONNECT's credentials, with reading paused until they are done."""

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
    """A connection whose peer can be paused."""

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
    """Continue with CONNECT: immediately, or after the slow checks of its credentials.

    Args:
        cnx: The connection of the CONNECT.
        service: Checks credentials.
        shown: Its methods and credentials.
        go_on: Authenticates by the service, which then returns immediately.
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

    cnx.intake.held = True  # Frames after CONNECT require its admission.
    cnx.gate.close_for(PauseCause.CHECKING_CREDENTIALS)
    cnx.requests.tasks.start(NO_REQUEST, check)
