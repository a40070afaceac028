"""Sessions of peers, as authorization sees them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class StandInPeer:
    role: str
    more: tuple[str, ...] = ()

    @property
    def roles(self) -> frozenset[str]:
        return frozenset(self.more or (self.role,))


@dataclass(frozen=True)
class StandInSession:
    principal: StandInPeer
    original: StandInPeer | None = None


def session(role: str, original: str = "", more: tuple[str, ...] = ()) -> StandInSession:
    """Return a role's session, for an original principal if named."""
    return StandInSession(StandInPeer(role, more), StandInPeer(original) if original else None)
