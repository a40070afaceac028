"""Who is asked about: the part of a connection's session, or a request's, that rules look at."""

from __future__ import annotations

from typing import Protocol


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
