"""What a play received beside what was recorded: the same frames, in order on each connection."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tests.support.dialogues.dialogue import Dialogue, Seen, Step

_LAST = {"PRODUCER_SUCCESS": 1, "MESSAGE": 2}
_NEW = frozenset({"entry_id", "highest_sequence_id"})
"""Fields that older recordings left out."""
ANY = "*"
"""Stands for a name that the server made."""


@dataclass(frozen=True)
class Disagreement:
    """The first step of a dialogue that brought something else than was recorded.

    Attributes:
        dialogue: Its name.
        index: Of the step, from 0.
        step: What was done, and what was recorded.
        received: What came.
    """

    dialogue: str
    index: int
    step: Step
    received: tuple[Seen, ...]

    @property
    def cause(self) -> str:
        """The command, and the kinds of frames that were missing (-) and too many (+)."""
        recorded, received = list(in_order(self.step.then)), list(self.received)
        for one in list(recorded):
            if one in received:
                recorded.remove(one)
                received.remove(one)
        missing = sorted({f"-{said(one, short=True)}" for one in recorded})
        surplus = sorted({f"+{said(one, short=True)}" for one in received})
        return " ".join([self.step.command, *(missing + surplus or ["order"])])

    def __str__(self) -> str:
        does = " ".join(f"{name}={value}" for name, value in self.step.does.items())
        lines = [f"{self.dialogue} step {self.index} on {self.step.connection}: {does}"]
        lines += [f"    recorded {said(one)}" for one in in_order(self.step.then)]
        lines += [f"    came     {said(one)}" for one in self.received]
        return "\n".join(lines)


def said(one: Seen, *, short: bool = False) -> str:
    """Return a frame in a line; ``short`` without what differs from dialogue to dialogue."""
    left_out = {"connection", "frame"}
    if short:
        left_out |= {"payload_tail", "sequence_id", "request_id", "producer_id", "consumer_id"}
        left_out |= {"entry_id", "partition"}
    fields = " ".join(f"{name}={value!r}" for name, value in one.items() if name not in left_out)
    where = "" if short else f"{one['connection']} "
    return f"{where}{one['frame']} {fields}".rstrip()


def in_order(frames: Iterable[Seen]) -> tuple[Seen, ...]:
    """Return frames as they are compared: by connection, and as they came but for two kinds.

    A message may overtake an answer or not, and so may the second answer to a producer that waited
    for another to close: a real broker brings both in either order.
    """
    return tuple(sorted(frames, key=lambda one: (one["connection"], _LAST.get(one["frame"], 0))))


def agree(recorded: Iterable[Seen], received: Iterable[Seen]) -> bool:
    """Tell whether a step brought what was recorded."""
    left, right = in_order(recorded), in_order(received)
    pairs = zip(left, right, strict=False)
    return len(left) == len(right) and all(_same(*pair) for pair in pairs)


def _same(recorded: Seen, received: Seen) -> bool:
    received = {name: one for name, one in received.items() if name in recorded or name not in _NEW}
    if recorded.get("producer_name") == ANY:
        return {**received, "producer_name": ANY} == recorded
    return recorded == received


def disagreement(dialogue: Dialogue, played: Sequence[tuple[Seen, ...]]) -> Disagreement | None:
    """Return the first step of a play that did not bring what was recorded; None if there is none.

    A play that ended early did so at a step that disagrees.
    """
    for index, (step, received) in enumerate(zip(dialogue.steps, played, strict=False)):
        if not agree(step.then, received):
            return Disagreement(dialogue.name, index, step, received)
    return None
