"""Lookups are counted by outcome, with their duration."""

import pytest

import proto.PulsarApi_pb2 as pb
from broker.ownership.ownership import NotServedError, Owner
from broker.topics.lookup import LookupOutcomes
from server.configuration.addresses import NO_URLS
from server.connection.request_errors import RequestError
from tests.support.clocks.manual_clock import ManualClock

HERE = Owner(NO_URLS, here=True)
ELSEWHERE = Owner(NO_URLS, here=False)
TO_BE_ASKED = Owner(NO_URLS, here=False, decided=False)


@pytest.mark.parametrize(
    ("found", "counts"),
    [
        (HERE, (1, 0, 0)),
        (ELSEWHERE, (1, 0, 0)),
        (TO_BE_ASKED, (0, 1, 0)),
        (NotServedError("nobody"), (0, 0, 1)),
        (RequestError(pb.MetadataError, "the store failed"), (0, 0, 1)),
    ],
)
async def test_each_lookup_is_counted_as_answer_redirect_or_failure_with_its_time(
    found: Owner | Exception, counts: tuple[int, int, int]
) -> None:
    clock = ManualClock()
    outcomes = LookupOutcomes(clock, clock.now)

    async def finding() -> Owner:
        clock.advance(0.0025)
        if isinstance(found, Exception):
            raise found
        return found

    if isinstance(found, Exception):
        with pytest.raises(type(found)):
            await outcomes.counted(finding())
    else:
        assert await outcomes.counted(finding()) is found
    assert (outcomes.answers, outcomes.redirects, outcomes.failures) == counts
    assert (outcomes.times.count, outcomes.times.sum_millis) == (1, 2.5)
