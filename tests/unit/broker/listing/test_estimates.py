"""The heap reserved for a listing before the listing is made."""

import pytest

import proto.PulsarApi_pb2 as pb
from broker.listing.estimates import ListingEstimates
from limiter.memory.size_estimate import SizeEstimate
from proto.names import NamespaceName
from tests.support.clocks.settle import started

NAMESPACE = NamespaceName.parse("tenant/ns")
OTHER = NamespaceName.parse("tenant/other")
PERSISTENT = pb.CommandGetTopicsOfNamespace.PERSISTENT
ALL = pb.CommandGetTopicsOfNamespace.ALL


class Lister:
    """Knows a size, or does not."""

    def __init__(self, known: int | None = None) -> None:
        self.known = known

    def known_bytes(
        self, namespace: NamespaceName, mode: int, properties: dict[str, str]
    ) -> int | None:
        return None if properties else self.known


class Listing:
    """The subject of an estimate: 10 names of a given heap estimate."""

    def __init__(self, estimated_bytes: int) -> None:
        self.estimated_bytes = estimated_bytes

    def __len__(self) -> int:
        return 10


def estimates(policy: SizeEstimate, known: int | None = None) -> ListingEstimates:
    return ListingEstimates(policy, Lister(known), anyone_resets=False)


@pytest.mark.parametrize("known", [0, 7_000_000])
async def test_the_exact_estimate_is_the_size_known_to_the_store(known: int) -> None:
    made = estimates(SizeEstimate.EXACT, known)
    made.of(NAMESPACE, PERSISTENT).listed(Listing(5))
    assert await made.of(NAMESPACE, PERSISTENT).size() == known


async def test_the_exact_estimate_falls_back_to_the_last_size_or_a_first_guess() -> None:
    made = estimates(SizeEstimate.EXACT)
    before = await made.of(NAMESPACE, PERSISTENT).size()
    made.of(NAMESPACE, PERSISTENT).listed(Listing(123))
    assert before == 10_240
    assert await made.of(NAMESPACE, PERSISTENT).size() == 123
    assert await made.of(NAMESPACE, ALL).size() == 10_240
    assert await made.of(OTHER, PERSISTENT).size() == 10_240


async def test_the_proposal_estimate_remembers_no_sizes() -> None:
    made = estimates(SizeEstimate.PROPOSAL, 5)
    made.of(NAMESPACE, PERSISTENT).listed(Listing(500))
    assert await made.of(NAMESPACE, PERSISTENT).size() == 1_024


async def test_the_last_estimate_waits_only_for_the_first_measurement_of_its_key() -> None:
    made = estimates(SizeEstimate.LAST, 5)
    first = made.of(NAMESPACE, PERSISTENT)
    guessed = await first.size()
    second = await started(made.of(NAMESPACE, PERSISTENT).size())
    other = await made.of(OTHER, PERSISTENT).size()
    waited = not second.done()
    first.listed(Listing(777))
    assert (guessed, other, waited) == (10_240, 10_240, True)
    assert await second == 777


async def test_the_last_estimate_resumes_waiters_when_the_measurement_fails() -> None:
    made = estimates(SizeEstimate.LAST)
    first = made.of(NAMESPACE, PERSISTENT)
    await first.size()
    second = await started(made.of(NAMESPACE, PERSISTENT).size())
    first.failed()
    assert await second == 10_240


@pytest.mark.parametrize(
    ("policy", "charged"),
    [(SizeEstimate.EXACT, 500), (SizeEstimate.LAST, 500), (SizeEstimate.PROPOSAL, 180)],
)
def test_a_listing_is_charged_its_estimated_bytes_and_by_the_proposal_only_its_names(
    policy: SizeEstimate, charged: int
) -> None:
    assert estimates(policy).of(NAMESPACE, PERSISTENT).listed(Listing(500)) == charged


async def test_a_forgotten_size_is_not_used_as_an_estimate() -> None:
    made = estimates(SizeEstimate.EXACT)
    made.of(NAMESPACE, PERSISTENT).listed(Listing(123))
    made.of(NAMESPACE, PERSISTENT).forget()
    assert await made.of(NAMESPACE, PERSISTENT).size() == 10_240


def test_a_refused_listing_is_remembered_for_its_namespace() -> None:
    made = estimates(SizeEstimate.EXACT)
    before = [made.of(NAMESPACE, PERSISTENT).refused_before(500) for _ in range(3)]
    assert before == [False, True, True]
    assert not made.of(OTHER, PERSISTENT).refused_before(500)


async def test_the_exact_estimate_remembers_plug_in_listings_by_their_properties() -> None:
    made = estimates(SizeEstimate.EXACT, known=7_000_000)
    first = await made.of(NAMESPACE, PERSISTENT, {"a": "1"}).size()
    made.of(NAMESPACE, PERSISTENT, {"a": "1", "b": "2"}).listed(Listing(123))
    assert first == 10_240
    assert await made.of(NAMESPACE, PERSISTENT, {"b": "2", "a": "1"}).size() == 123
    assert await made.of(NAMESPACE, PERSISTENT, {"a": "1|b=2"}).size() == 10_240
    assert await made.of(NAMESPACE, PERSISTENT).size() == 7_000_000
    assert made.expected_bytes(NAMESPACE, PERSISTENT, {"a": "1", "b": "2"}) == 123
    assert made.expected_bytes(NAMESPACE, PERSISTENT, {"a": "1"}) is None
    assert made.expected_bytes(NAMESPACE, PERSISTENT) == 7_000_000


async def test_the_last_estimate_depends_on_namespace_and_mode_only() -> None:
    made = estimates(SizeEstimate.LAST)
    made.of(NAMESPACE, PERSISTENT, {"a": "1"}).listed(Listing(123))
    assert await made.of(NAMESPACE, PERSISTENT).size() == 123
    assert await made.of(NAMESPACE, PERSISTENT, {"b": "2"}).size() == 123
