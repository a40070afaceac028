"""Who is asked about: the part of a connection's session, or a request's, that rules look at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection


class Peer(Protocol):
    """Somebody who is known (``server.authentication.principal.Principal``)."""

    @property
    def role(self) -> str:
        """The name under which it is authorized."""

    @property
    def roles(self) -> frozenset[str]:
        """All its roles; any one of them may have what is needed."""


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


def is_valid_original(role: str, original: str, proxy_roles: Collection[str]) -> bool:
    """Tell whether a role may say that it speaks for another; "" is nobody.

    A proxy must speak for somebody who is no proxy, and nobody else may speak for anybody.

    Source: upstream AuthorizationService.isValidOriginalPrincipal.
    """
    if role in proxy_roles:
        return bool(original.strip()) and original not in proxy_roles
    return not original.strip()
