"""Peers for authorization: the required part of a session, and the rules about roles alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from server.configuration.authorization import AuthorizationSettings


class Peer(Protocol):
    """An authenticated peer (``server.authentication.providers.Principal``)."""

    @property
    def role(self) -> str:
        """The name for authorization."""

    @property
    def roles(self) -> frozenset[str]:
        """All roles of its token."""


class Session(Protocol):
    """A peer, and its original client (``server.authentication.session.ClientSession``)."""

    @property
    def principal(self) -> Peer:
        """The peer itself."""

    @property
    def original(self) -> Peer | None:
        """The client behind a proxy; None without a proxy."""


def all_checked(session: Session) -> tuple[Peer, ...]:
    """Return the peers that must all be authorized: the proxy, and its client."""
    if session.original is None:
        return (session.principal,)
    return (session.principal, session.original)


def roles_of(peer: Peer, settings: AuthorizationSettings) -> frozenset[str]:
    """Return a peer's roles, any of which suffices; an empty role is dropped."""
    return (peer.roles if settings.multi_roles else frozenset({peer.role})) - {""}


def is_believed(session: Session, settings: AuthorizationSettings) -> bool:
    """Return True if a session is valid: a proxy with a client, or a client alone.

    A proxy must name a client that is not a proxy.

    Source: upstream AuthorizationService.isValidOriginalPrincipal, as over HTTP.
    """
    role = session.principal.role
    original = "" if session.original is None else session.original.role
    if role in settings.proxy_roles:
        return bool(original) and original not in settings.proxy_roles
    return original in ("", role)


def is_superuser(session: Session, settings: AuthorizationSettings) -> bool:
    """Return True if every peer of a session is a superuser."""
    return is_believed(session, settings) and all(
        is_superuser_alone(one, settings) for one in all_checked(session)
    )


def is_superuser_alone(peer: Peer, settings: AuthorizationSettings) -> bool:
    """Return True if a peer is a superuser, regardless of its client."""
    return not settings.superusers.isdisjoint(roles_of(peer, settings))
