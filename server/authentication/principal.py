"""A peer whose credentials were good."""

from __future__ import annotations

from dataclasses import dataclass, field

NO_METHOD = "none"
"""The method of a peer that showed no credentials."""


@dataclass(frozen=True, slots=True)
class Principal:
    """A peer that is known.

    Attributes:
        role: The name under which it is authorized.
        method: The method that proved it; ``none`` for the anonymous role.
        expires_at_ms: The last millisecond since 1970 at which its credentials hold; None: no end.
        roles: All roles of a token that has several; else the role alone.
    """

    role: str
    method: str
    expires_at_ms: int | None = None
    roles: frozenset[str] = field(default=frozenset())

    def __post_init__(self) -> None:
        if not self.roles:
            object.__setattr__(self, "roles", frozenset({self.role}))

    def expired(self, now_ms: int) -> bool:
        """Return True if its credentials hold no longer."""
        return self.expires_at_ms is not None and self.expires_at_ms < now_ms
