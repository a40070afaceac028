"""Peers as authorization sees them, and the rules that depend on their roles alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from server.configuration.authorization import AuthorizationSettings


class Peer(Protocol):
    """An authenticated client or proxy (``server.authentication.providers.Principal``)."""

    @property
    def role(self) -> str:
        """The role used for authorization."""

    @property
    def roles(self) -> frozenset[str]:
        """All roles in the peer's token; just ``role`` if the token has a single role."""


class Session(Protocol):
    """A connected peer and, if it is a proxy, its client.

    See ``server.authentication.session.ClientSession``.
    """

    @property
    def principal(self) -> Peer:
        """The connected peer: a client or a proxy."""

    @property
    def original(self) -> Peer | None:
        """The client behind a proxy; None if the peer is no proxy."""


def all_checked(session: Session) -> tuple[Peer, ...]:
    """Return the peers that must all be authorized: the peer itself and, if a proxy, its client."""
    if session.original is None:
        return (session.principal,)
    return (session.principal, session.original)


def roles_of(peer: Peer, settings: AuthorizationSettings) -> frozenset[str]:
    """Return the peer's roles, any of which suffices to authorize it.

    An empty role is left out.
    """
    return (peer.roles if settings.multi_roles else frozenset({peer.role})) - {""}


def is_believed(session: Session, settings: AuthorizationSettings) -> bool:
    """Return True if a proxy names a client, and a peer that is no proxy names no other client.

    A proxy must name a client that is not a proxy.

    Source: upstream AuthorizationService.isValidOriginalPrincipal, as over HTTP.
    """
    role = session.principal.role
    original = "" if session.original is None else session.original.role
    if role in settings.proxy_roles:
        return bool(original) and original not in settings.proxy_roles
    return original in ("", role)


def is_superuser(session: Session, settings: AuthorizationSettings) -> bool:
    """Return True if the peer and, behind a proxy, the client too are superusers."""
    return is_believed(session, settings) and all(
        is_superuser_alone(one, settings) for one in all_checked(session)
    )


def is_superuser_alone(peer: Peer, settings: AuthorizationSettings) -> bool:
    """Return True if this peer is a superuser, whatever the role of a client behind it."""
    return not settings.superusers.isdisjoint(roles_of(peer, settings))
