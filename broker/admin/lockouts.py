"""Refusals of changes that would take the requester's own access away."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.errors import Refusal, RefusedError
from server.authentication.peers import all_checked, is_superuser, is_superuser_alone, roles_of
from server.authentication.refused import shown_session
from server.authentication.requests import session_of_request

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from aiohttp import web

    from broker.configuration.config import BrokerConfig


def still_superuser(request: web.Request) -> Callable[[BrokerConfig], None]:
    """Return a check that refuses a configuration in which the requester is no superuser."""
    session = session_of_request(request)

    def check(config: BrokerConfig) -> None:
        if session is None or config.authorization is None:
            return
        if not is_superuser(session, config.authorization):
            raise RefusedError(
                Refusal.PRECONDITION_FAILED,
                f"superUserRoles: {shown_session(session)} would be no superuser any more: keep "
                "that role, or have another superuser take it away",
            )

    return check


def check_stays_admin(request: web.Request, config: BrokerConfig, admins: Collection[str]) -> None:
    """Refuse new admin roles of a tenant if the requester would lose access to the tenant.

    Raises:
        RefusedError: The requester would lose access.
    """
    session, settings = session_of_request(request), config.authorization
    if session is None or settings is None:
        return
    for one in all_checked(session):
        if not is_superuser_alone(one, settings) and roles_of(one, settings).isdisjoint(admins):
            raise RefusedError(
                Refusal.PRECONDITION_FAILED,
                f"adminRoles: {shown_session(session)} would be no admin any more: keep that role, "
                "or have another admin take it away",
            )
