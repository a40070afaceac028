"""Requests under a lookup permit: granted, refused, answered with an error, or never."""

import asyncio

import proto.PulsarApi_pb2 as pb
from limiter.flow.lookup_semaphore import LookupSemaphore
from proto.commands import error_command
from server.connection.permitted_requests import PermitRules, PermittedRequests, Request
from server.connection.request_errors import ErrorForm, RequestError, UnansweredRequestError
from server.connection.unanswered_requests import UnansweredRequests
from tests.support.clocks.manual_clock import ManualClock
from tests.support.clocks.settle import settle
from tests.unit.server.connection.test_served_connection import Served

FULL = RequestError(pb.TooManyRequests, "full")
REQUEST = Request(7, ErrorForm(error_command, FULL), "a/b")


class Requests:
    """The requests of a connection whose process has one permit."""

    def __init__(self, *, held_until_answered: bool = True) -> None:
        self.lookups = LookupSemaphore(1)
        self.unanswered = UnansweredRequests(ManualClock())
        self.served = Served()
        rules = PermitRules(self.lookups, self.unanswered, held_until_answered)
        self.requests = PermittedRequests(self.served.cnx, rules)

    def answers(self) -> list[tuple[int, int]]:
        """Return request id and code of the error answers."""
        data, found = self.served.takes(), []
        while data:
            total = int.from_bytes(data[:4], "big")
            error = pb.BaseCommand.FromString(data[8 : 4 + total]).error
            found.append((error.request_id, error.error))
            data = data[4 + total :]
        return found


async def wait() -> None:
    await asyncio.Event().wait()


async def fail(error: Exception) -> None:
    raise error


async def test_a_request_holds_its_permit_until_done_and_the_next_request_is_refused() -> None:
    one, go_on = Requests(), asyncio.Event()

    async def work() -> None:
        await go_on.wait()

    assert one.requests.idle
    assert one.requests.start(REQUEST, work)
    assert not one.requests.idle
    assert not one.requests.start(Request(8, REQUEST.form), work)
    assert one.answers() == [(8, pb.TooManyRequests)]
    go_on.set()
    await settle()
    assert one.requests.idle
    assert one.lookups.pending_requests == 0


async def test_requests_of_a_burst_that_do_not_wait_take_the_only_permit_in_turn() -> None:
    one, held = Requests(), []

    async def work() -> None:
        held.append(one.lookups.pending_requests)

    for _ in range(150):
        one.requests.begin(REQUEST, work)
    await settle()
    assert held == [1] * 150
    assert one.answers() == []
    assert one.lookups.pending_requests == 0


async def test_waiting_requests_of_a_burst_beyond_the_permits_are_refused() -> None:
    one = Requests()
    for number in range(3):
        one.requests.begin(Request(number, REQUEST.form), wait)
    await settle()
    assert one.answers() == [(1, pb.TooManyRequests), (2, pb.TooManyRequests)]
    assert one.lookups.pending_requests == 1
    one.served.peer.breaks()
    assert one.lookups.pending_requests == 0
    await settle()


async def test_a_request_of_a_connection_lost_before_its_start_takes_no_permit() -> None:
    one = Requests()
    one.requests.begin(REQUEST, wait)
    counted = one.served.totals.response_bytes
    one.served.peer.breaks()
    left = one.served.totals.response_bytes
    await settle()
    assert (counted > 0, left) == (True, 0)
    assert one.lookups.pending_requests == 0
    assert not one.requests.tasks


async def test_a_permit_may_be_released_once_its_request_has_started() -> None:
    one = Requests(held_until_answered=False)
    assert one.requests.start(REQUEST, wait)
    assert one.lookups.pending_requests == 0
    one.requests.tasks.cancel_all()
    await settle()


async def test_a_failed_request_is_answered_with_its_error() -> None:
    one = Requests()
    one.requests.start(REQUEST, lambda: fail(RequestError(pb.MetadataError, "text")))
    await settle()
    assert one.answers() == [(7, pb.MetadataError)]
    assert one.lookups.pending_requests == 0


async def test_an_unanswered_request_is_counted_and_keeps_its_permit() -> None:
    one = Requests()
    one.requests.start(REQUEST, lambda: fail(UnansweredRequestError("too large")))
    await settle()
    assert one.answers() == []
    assert one.unanswered.total == 1
    assert one.lookups.pending_requests == 1


async def test_an_internal_error_is_answered_as_an_unknown_error() -> None:
    one = Requests()
    one.requests.start(REQUEST, lambda: fail(ZeroDivisionError()))
    await settle()
    assert one.answers() == [(7, pb.UnknownError)]


async def test_a_lost_connection_releases_its_permits_in_the_same_turn() -> None:
    one = Requests()
    one.requests.start(REQUEST, wait)
    one.served.peer.breaks()
    assert one.lookups.pending_requests == 0
    await settle()
    assert not one.requests.tasks
