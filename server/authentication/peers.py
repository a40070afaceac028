"""Peers as seen by authorization, and the rules that need only a peer's roles."""

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
    """A connected peer and, behind a proxy, the original client.

    See ``server.authentication.session.ClientSession``.
    """

    @property
    def principal(self) -> Peer:
        """The connected peer: a client or a proxy."""

    @property
    def original(self) -> Peer | None:
        """The client behind a proxy; None if the peer is no proxy."""


def all_checked(session: Session) -> tuple[Peer, ...]:
    """Return the peers that must all be authorized: the connected peer, and a proxy's client."""
    if session.original is None:
        return (session.principal,)
    return (session.principal, session.original)


def roles_of(peer: Peer, settings: AuthorizationSettings) -> frozenset[str]:
    """Return the peer's roles, of which a single authorized role suffices.

    An empty role is left out.
    """
    return (peer.roles if settings.multi_roles else frozenset({peer.role})) - {""}


def is_believed(session: Session, settings: AuthorizationSettings) -> bool:
    """Return True if a peer names an original client exactly when its role is a proxy role.

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
    """Return True if the peer is a superuser, regardless of a client behind it."""
    return not settings.superusers.isdisjoint(roles_of(peer, settings))
