"""Received frames against recorded frames: equal, in order on each connection."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tests.support.dialogues.dialogue import Dialogue, Seen, Step

_LAST = {"PRODUCER_SUCCESS": 1, "MESSAGE": 2}
_NEW = frozenset({"entry_id", "highest_sequence_id"})
"""Fields missing in older recordings."""
ANY = "*"
"""Placeholder for a server-made name."""


@dataclass(frozen=True)
class Disagreement:
    """A dialogue's first step with unexpected frames.

    Attributes:
        dialogue: Name.
        index: The step's, from 0.
        step: The recorded step.
        received: The received frames.
    """

    dialogue: str
    index: int
    step: Step
    received: tuple[Seen, ...]

    @property
    def cause(self) -> str:
        """The command, and the kinds of missing (-) and surplus (+) frames."""
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
    """Return a frame as a line; ``short`` omits dialogue-specific parts."""
    left_out = {"connection", "frame"}
    if short:
        left_out |= {"payload_tail", "sequence_id", "request_id", "producer_id", "consumer_id"}
        left_out |= {"entry_id", "partition"}
    fields = " ".join(f"{name}={value!r}" for name, value in one.items() if name not in left_out)
    where = "" if short else f"{one['connection']} "
    return f"{where}{one['frame']} {fields}".rstrip()


def in_order(frames: Iterable[Seen]) -> tuple[Seen, ...]:
    """Return frames in comparison order: by connection and arrival, except two kinds.

    Messages may overtake answers, and so may the second answer to a waiting producer: a real broker
    sends both in either order.
    """
    return tuple(sorted(frames, key=lambda one: (one["connection"], _LAST.get(one["frame"], 0))))


def agree(recorded: Iterable[Seen], received: Iterable[Seen]) -> bool:
    """Return whether a step's frames match the recording."""
    left, right = in_order(recorded), in_order(received)
    pairs = zip(left, right, strict=False)
    return len(left) == len(right) and all(_same(*pair) for pair in pairs)


def _same(recorded: Seen, received: Seen) -> bool:
    received = {name: one for name, one in received.items() if name in recorded or name not in _NEW}
    if recorded.get("producer_name") == ANY:
        return {**received, "producer_name": ANY} == recorded
    return recorded == received


def disagreement(dialogue: Dialogue, played: Sequence[tuple[Seen, ...]]) -> Disagreement | None:
    """Return a play's first step that differs from the recording, or None.

    An early end of the play is a disagreement at its last step.
    """
    for index, (step, received) in enumerate(zip(dialogue.steps, played, strict=False)):
        if not agree(step.then, received):
            return Disagreement(dialogue.name, index, step, received)
    return None
