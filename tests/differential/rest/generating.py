"""Makes exchanges of admin REST calls from a seed, covering all endpoints and odd input.

Most calls are as a tool would make them, about topics of earlier calls; about a third has an oddity
(``rest_oddities``). Endpoints and oddities are dealt from shuffled decks, so all are about equally
frequent.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from random import Random

from tests.differential.rest.calls import NAMESPACE, PLAIN, RestCall, RestExchange
from tests.differential.rest.endpoints import CREATIONS, ENDPOINTS, Draft, Endpoint, World
from tests.differential.rest.oddities import ODDITIES, Oddity

ODD_SHARE = 0.5
"""Share of odd calls among the dealt calls."""
ODD_CREATIONS = 0.1
"""Share of odd calls among an exchange's first calls; low, so later calls find topics."""
LEAST_CALLS, MOST_CALLS = 2, 6


@dataclass
class _Deck:
    """Deals numbers below ``size``, each number once per shuffle."""

    MOST_DECKS = 1_000

    random: Random
    size: int
    _left: list[int] = field(default_factory=list)

    def deal(self, fits: Callable[[int], bool] = lambda _: True) -> int:
        """Return the next fitting number; skipped numbers keep their place in the deck.

        Raises:
            ValueError: No number fits.
        """
        while len(self._left) < self.MOST_DECKS * self.size:
            for position, number in enumerate(self._left):
                if fits(number):
                    return self._left.pop(position)
            self._left += self.random.sample(range(self.size), self.size)
        raise ValueError("nothing that is dealt fits")


def exchanges(seed: int, calls: int) -> Iterator[RestExchange]:
    """Yield exchanges with at least ``calls`` calls in total; reproducible by seed."""
    random = Random(f"rest {seed}")
    made, number = 0, 0
    dealer = _Dealer(random)
    while made < calls:
        exchange = dealer.exchange(seed, number)
        made, number = made + len(exchange.calls), number + 1
        yield exchange


class _Dealer:
    def __init__(self, random: Random) -> None:
        self._random = random
        self._endpoints = _Deck(random, len(ENDPOINTS))
        self._oddities = _Deck(random, len(ODDITIES))

    def exchange(self, seed: int, number: int) -> RestExchange:
        tenant = f"dr-{seed}-{number:04}"
        world = World(tenant, {tenant: [NAMESPACE]})
        count = self._random.randint(LEAST_CALLS, MOST_CALLS)
        created = min(count - 1, self._random.choice((0, 1, 1, 2, 2)))
        dealt = [self._deal(world) for _ in range(count - created)]
        asked = [endpoint for endpoint, _ in dealt]
        calls = [self._created(self._creation(asked), world) for _ in range(created)]
        calls += [self._call(endpoint, world, oddity) for endpoint, oddity in dealt]
        return RestExchange(f"{seed}-{number}", tenant, tuple(calls))

    def _creation(self, dealt: Sequence[Endpoint]) -> Endpoint:
        """Return a creation of the topics that the dealt calls may need."""
        asked = [one for one in CREATIONS for call in dealt if f"/{one}/" in call.template]
        return self._random.choice(CREATIONS[self._random.choice(asked or list(CREATIONS))])

    def _deal(self, world: World) -> tuple[Endpoint, Oddity | None]:
        """Deal an oddity first, then a fitting call, so rare oddities are as frequent."""
        if self._random.random() >= ODD_SHARE:
            return ENDPOINTS[self._endpoints.deal()], None
        oddity = ODDITIES[self._oddities.deal()]
        number = self._endpoints.deal(
            lambda one: oddity.fits(ENDPOINTS[one].draft(self._random, world))
        )
        return ENDPOINTS[number], oddity

    def _created(self, endpoint: Endpoint, world: World) -> RestCall:
        if self._random.random() >= ODD_CREATIONS:
            return self._call(endpoint, world, None)
        draft = endpoint.draft(self._random, world)
        return self._call(
            endpoint, world, ODDITIES[self._oddities.deal(lambda one: ODDITIES[one].fits(draft))]
        )

    def _call(self, endpoint: Endpoint, world: World, oddity: Oddity | None) -> RestCall:
        draft = endpoint.draft(self._random, world)
        if oddity is None:
            if endpoint.happened is not None:
                endpoint.happened(world, draft)
            return _call(endpoint, draft, PLAIN)
        while not oddity.fits(draft):
            draft = endpoint.draft(self._random, world)
        return _call(endpoint, oddity.done(self._random, draft), oddity.name)


def _call(endpoint: Endpoint, draft: Draft, oddity: str) -> RestCall:
    return RestCall(
        endpoint.kind, oddity, draft.method, draft.path, draft.body, tuple(draft.headers.items())
    )
