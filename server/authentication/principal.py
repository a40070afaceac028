"""A peer with accepted credentials."""

from __future__ import annotations

from dataclasses import dataclass, field

NO_METHOD = "none"
"""The method of a peer without credentials."""


@dataclass(frozen=True, slots=True)
class Principal:
    """An authenticated peer.

    Attributes:
        role: The name for authorization.
        method: The authentication method; ``none`` for the anonymous role.
        expires_at_ms: The last valid millisecond of its credentials since 1970; None: no expiry.
        roles: All roles of a token with several; else the role alone.
    """

    role: str
    method: str
    expires_at_ms: int | None = None
    roles: frozenset[str] = field(default=frozenset())

    def __post_init__(self) -> None:
        if not self.roles:
            object.__setattr__(self, "roles", frozenset({self.role}))

    def expired(self, now_ms: int) -> bool:
        """Return True if its credentials have expired."""
        return self.expires_at_ms is not None and self.expires_at_ms < now_ms
