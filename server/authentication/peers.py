"""Peers as rules see them: that part of a session, and the rules about roles alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from server.configuration.authorization import AuthorizationSettings


class Peer(Protocol):
    """Somebody who is known (``server.authentication.principal.Principal``)."""

    @property
    def role(self) -> str:
        """The name under which it is authorized."""

    @property
    def roles(self) -> frozenset[str]:
        """All roles of its token."""


class Session(Protocol):
    """A peer, and whom it speaks for (``server.authentication.session.ClientSession``)."""

    @property
    def principal(self) -> Peer:
        """The peer itself."""

    @property
    def original(self) -> Peer | None:
        """Whom a proxy speaks for; None without a proxy."""


def all_checked(session: Session) -> tuple[Peer, ...]:
    """Return those who must all be allowed something: the proxy, and whom it speaks for."""
    if session.original is None:
        return (session.principal,)
    return (session.principal, session.original)


def roles_of(peer: Peer, settings: AuthorizationSettings) -> frozenset[str]:
    """Return the roles any one of which may have what is needed; of no name there is none."""
    return (peer.roles if settings.multi_roles else frozenset({peer.role})) - {""}


def is_believed(session: Session, settings: AuthorizationSettings) -> bool:
    """Tell whether a session may be of both: a proxy, and the client that it names.

    A proxy speaks for somebody who is no proxy, and who is no proxy for itself.

    Source: upstream AuthorizationService.isValidOriginalPrincipal, as over HTTP.
    """
    role = session.principal.role
    original = "" if session.original is None else session.original.role
    if role in settings.proxy_roles:
        return bool(original) and original not in settings.proxy_roles
    return original in ("", role)


def is_superuser(session: Session, settings: AuthorizationSettings) -> bool:
    """Tell whether everybody in a session is a superuser."""
    return is_believed(session, settings) and all(
        is_superuser_alone(one, settings) for one in all_checked(session)
    )


def is_superuser_alone(peer: Peer, settings: AuthorizationSettings) -> bool:
    """Tell whether somebody is a superuser, whomever it speaks for."""
    return not settings.superusers.isdisjoint(roles_of(peer, settings))
