"""Sessions: effective roles, and expiring credentials."""

import base64

import pytest

import proto.PulsarApi_pb2 as pb
from server.authentication.providers import Principal
from server.authentication.service import AuthenticationService
from server.authentication.session import ClientSession, CredentialRefresh
from server.authentication.token import TokenProvider
from server.configuration.authentication import Source, TokenSettings
from tests.support.authentication.credentials import SECRET, token
from tests.support.clocks.counting_clock import CountingClock

NOW = 1000
PERIOD = 60


class Peer:
    """A connection that records reports."""

    peer = "10.0.0.1:5"

    def __init__(self) -> None:
        self.said: list[pb.BaseCommand] = []
        self.closed = False
        self.taking = True

    def send(self, command: pb.BaseCommand) -> None:
        self.said.append(command)

    def take_no_more(self) -> None:
        self.taking = False

    def close(self) -> None:
        self.closed = True


class World:
    """One session on a manual clock."""

    def __init__(self, session: ClientSession, version: int | None = 21) -> None:
        self.clock, self.peer, self.session = CountingClock(), Peer(), session
        source = Source(f"data:;base64,{base64.b64encode(SECRET).decode()}")
        provider = TokenProvider(TokenSettings(source), self.clock)
        service = AuthenticationService([provider])
        self.refresh = CredentialRefresh(
            self.peer, session, service, PERIOD, self.clock, protocol_version=version
        )

    def answer(self, data: bytes) -> None:
        response = pb.CommandAuthResponse()
        response.response.auth_data = data
        self.refresh.answered(response, None)


def expiring(seconds: int, role: str = "ann") -> Principal:
    return Principal(role, "token", (NOW + seconds) * 1000)


def test_behind_a_proxy_both_roles_are_checked() -> None:
    ann, proxy = Principal("ann", "token"), Principal("proxy", "token")
    assert ClientSession(ann).checked_roles == ("ann",)
    assert ClientSession(proxy, ann).checked_roles == ("proxy", "ann")
    assert ClientSession(proxy, ann).watched is proxy
    assert ClientSession(proxy, ann, original_is_proved=True).watched is ann


def test_credentials_without_an_expiry_arm_no_timer() -> None:
    assert World(ClientSession(Principal("ann", "token"))).clock.armed == 0


def test_expired_credentials_are_challenged_at_the_next_check() -> None:
    world = World(ClientSession(expiring(61)))
    world.clock.advance(PERIOD)
    early = list(world.peer.said)
    world.clock.advance(PERIOD)
    (challenge,) = world.peer.said
    assert not early
    asked = challenge.authChallenge
    assert (asked.challenge.auth_method_name, asked.challenge.auth_data) == (
        "token",
        b"PulsarAuthRefresh",
    )
    assert asked.protocol_version == 21


def test_refreshed_credentials_are_watched_for_their_expiry() -> None:
    world = World(ClientSession(expiring(1)))
    world.clock.advance(PERIOD)
    world.answer(token(sub="ann", exp=NOW + 2 * PERIOD + 1))
    world.clock.advance(PERIOD)
    asked_once = len(world.peer.said)
    world.clock.advance(PERIOD)
    assert (asked_once, len(world.peer.said), world.peer.closed) == (1, 2, False)


def test_a_client_that_does_not_answer_the_challenge_is_closed_at_the_next_check() -> None:
    world = World(ClientSession(expiring(1)))
    world.clock.advance(2 * PERIOD)
    assert (len(world.peer.said), world.peer.closed, world.peer.taking) == (1, True, False)
    assert world.clock.live == 0


@pytest.mark.parametrize(
    ("session", "version"),
    [
        (ClientSession(expiring(1)), None),
        (ClientSession(expiring(1, "proxy"), Principal("ann", "none")), 21),
    ],
)
def test_a_client_that_cannot_refresh_is_closed_on_expiry(
    session: ClientSession, version: int | None
) -> None:
    world = World(session, version)
    world.clock.advance(PERIOD)
    assert (world.peer.said, world.peer.closed) == ([], True)


def test_a_proved_client_behind_a_proxy_is_challenged_on_expiry() -> None:
    world = World(ClientSession(Principal("proxy", "token"), expiring(1), original_is_proved=True))
    world.clock.advance(PERIOD)
    world.answer(token(sub="ann"))
    assert (len(world.peer.said), world.peer.closed) == (1, False)
    assert world.session.checked_roles == ("proxy", "ann")
    assert world.clock.live == 0


def test_a_refresh_with_a_different_role_closes_the_connection() -> None:
    world = World(ClientSession(expiring(1)))
    world.answer(token(sub="bob"))
    assert (world.peer.said, world.peer.closed) == ([], True)


def test_a_refresh_with_wrong_credentials_is_answered_with_an_error_and_closed() -> None:
    world = World(ClientSession(expiring(1)))
    world.answer(b"garbage")
    (told,) = world.peer.said
    assert told.error.message == "Failed to authenticate"
    assert (world.peer.closed, world.clock.live) == (True, 0)


def test_a_lost_connection_leaves_no_timer() -> None:
    world = World(ClientSession(expiring(1)))
    world.refresh.stop()
    world.refresh.stop()
    assert world.clock.live == 0


def test_only_expired_credentials_are_challenged_when_valid_credentials_are_required() -> None:
    world, renewed = World(ClientSession(expiring(1))), list[bytes]()
    world.refresh.renewed = renewed.append
    valid = world.refresh.ask_if_expired()
    world.clock.advance(2)
    expired = [world.refresh.ask_if_expired() for _ in range(2)]
    assert (valid, expired, len(world.peer.said)) == (False, [True, True], 1)
    world.answer(fresh := token(sub="ann"))
    assert (renewed, world.refresh.ask_if_expired()) == ([fresh], False)


@pytest.mark.parametrize("shown", [b"garbage", token(sub="bob")])
def test_wrong_refreshed_credentials_are_not_reported_as_renewed(shown: bytes) -> None:
    world, renewed = World(ClientSession(expiring(1))), list[bytes]()
    world.refresh.renewed = renewed.append
    world.answer(shown)
    assert (renewed, world.peer.closed) == ([], True)


def test_a_client_that_cannot_refresh_is_closed_when_valid_credentials_are_required() -> None:
    world = World(ClientSession(expiring(1)), None)
    world.clock.advance(2)
    assert world.refresh.ask_if_expired()
    assert (world.peer.said, world.peer.closed) == ([], True)
