"""Random sequences of producers agree with the table of access modes, written down naively."""

from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

import proto.PulsarApi_pb2 as pb
from broker.messages.producers import AccessModes
from server.connection.request_errors import RequestError

SHARED, EXCLUSIVE = pb.Shared, pb.Exclusive
WAIT, FENCE = pb.WaitForExclusive, pb.ExclusiveWithFencing


@dataclass(eq=False)
class Asks:
    name: str
    access_mode: int
    asked_epoch: int | None = None
    gone: bool = False


class Model:
    """The table, row by row."""

    def __init__(self) -> None:
        self.open: list[str] = []
        self.exclusive = False
        self.waiting: list[str] = []
        self.epoch = -1

    def ask(self, name: str, mode: int) -> str:
        answer = {SHARED: self._share, EXCLUSIVE: self._alone, WAIT: self._wait}.get(mode)
        return answer(name) if answer is not None else self._fence(name)

    def _share(self, name: str) -> str:
        if self.exclusive or self.waiting:
            return "busy"
        self.open.append(name)
        return "ready"

    def _alone(self, name: str) -> str:
        return "fenced" if self.open or self.waiting else self._take(name)

    def _wait(self, name: str) -> str:
        if not self.open:
            return self._take(name)
        self.waiting.append(name)
        return "waits"

    def _fence(self, name: str) -> str:
        self.open, self.waiting = [], []
        return self._take(name)

    def _take(self, name: str) -> str:
        self.open, self.exclusive = [name], True
        self.epoch += 1
        return "ready"

    def leave(self, name: str) -> None:
        if name in self.waiting:
            self.waiting.remove(name)
            return
        if name in self.open:
            self.open.remove(name)
        if not self.open:
            self.exclusive = False
            if self.waiting:
                self._take(self.waiting.pop(0))


STEPS = st.lists(
    st.one_of(
        st.sampled_from((SHARED, EXCLUSIVE, WAIT, FENCE)).map(lambda mode: ("ask", mode)),
        st.integers(0, 30).map(lambda number: ("leave", number)),
    ),
    max_size=40,
)


@given(STEPS)
def test_access_modes_agree_with_the_table(steps: Sequence[tuple[str, int]]) -> None:
    modes: AccessModes = AccessModes()
    model = Model()
    there: dict[str, Asks] = {}
    for number, (step, value) in enumerate(steps):
        if step == "ask":
            asks = Asks(f"n{number}", value)
            assert _answer(modes, asks) == model.ask(asks.name, value)
            there[asks.name] = asks
        elif there:
            name = sorted(there)[value % len(there)]
            modes.leave(there.pop(name))
            model.leave(name)
        held = [] if modes.holder is None else [modes.holder]
        assert [one.name for one in (*modes.sharers, *held)] == model.open
        assert [one.name for one in modes.waiting] == model.waiting
        assert (modes.holder is not None) is model.exclusive
        assert (-1 if modes.epoch is None else modes.epoch) == model.epoch
        assert not (modes.holder is not None and modes.sharers)
        assert not modes.waiting or modes.holder is not None or modes.sharers


def _answer(modes: AccessModes, asks: Asks) -> str:
    try:
        return "ready" if modes.ask(asks).ready else "waits"
    except RequestError as error:
        return "busy" if error.server_error == pb.ProducerBusy else "fenced"
