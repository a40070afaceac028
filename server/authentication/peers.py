"""Authenticated peers, and the authorization rules that need only the peers' roles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from server.configuration.authorization import AuthorizationSettings


class Peer(Protocol):
    """An interface of an authenticated client or proxy: the members that authorization reads."""

    @property
    def role(self) -> str:
        """The role by which the peer is authorized."""

    @property
    def roles(self) -> frozenset[str]:
        """All roles in the peer's token; just ``role`` if the token has a single role."""


class Session(Protocol):
    """An interface of a connection's peers: the connected peer and any client behind it.

    See ``server.authentication.session.ClientSession``.
    """

    @property
    def principal(self) -> Peer:
        """The connected peer: a client or a proxy."""

    @property
    def original(self) -> Peer | None:
        """The client behind the connected proxy; None if the peer is not a proxy."""


def all_checked(session: Session) -> tuple[Peer, ...]:
    """Return the peers that must all be authorized: the connected peer, and a client behind it."""
    if session.original is None:
        return (session.principal,)
    return (session.principal, session.original)


def roles_of(peer: Peer, settings: AuthorizationSettings) -> frozenset[str]:
    """Return the peer's roles, any one of which suffices to authorize the peer.

    An empty role is left out.
    """
    return (peer.roles if settings.multi_roles else frozenset({peer.role})) - {""}


def is_believed(session: Session, settings: AuthorizationSettings) -> bool:
    """Return True if a peer names a client as it must: a proxy does, any other peer does not.

    A proxy must name a client that is not a proxy.

    Source: upstream AuthorizationService.isValidOriginalPrincipal, as over HTTP.
    """
    role = session.principal.role
    original = "" if session.original is None else session.original.role
    if role in settings.proxy_roles:
        return bool(original) and original not in settings.proxy_roles
    return original in ("", role)


def is_superuser(session: Session, settings: AuthorizationSettings) -> bool:
    """Return True if the connected peer is a superuser, and so is any client behind it."""
    return is_believed(session, settings) and all(
        is_superuser_alone(one, settings) for one in all_checked(session)
    )


def is_superuser_alone(peer: Peer, settings: AuthorizationSettings) -> bool:
    """Return True if the peer itself is a superuser, whatever client is behind it."""
    return not settings.superusers.isdisjoint(roles_of(peer, settings))
