"""Shrinks a case as long as the difference remains."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from google.protobuf.message import Message

from proto import PulsarApi_pb2 as pb
from tests.differential.cases import HASH_TOKEN, NAMESPACE_TOKEN, Case, Step
from tests.support.golden.exchange import Send

MOST_PLAYS, MOST_SECONDS = 150, 20.0
"""Limits per case; a play with a missing answer takes 15 seconds."""


def shrink(
    case: Case,
    differs: Callable[[Case], bool],
    most_plays: int = MOST_PLAYS,
    clock: Callable[[], float] = time.monotonic,
) -> Case:
    """Return the smallest case found that still differs.

    Args:
        case: Differing case.
        differs: Plays a case, and returns whether it differs.
        most_plays: Most calls of ``differs``.
        clock: Seconds; no calls after ``MOST_SECONDS``.
    """
    plays, end = 0, clock() + MOST_SECONDS
    tries = smaller(case)
    while plays < most_plays and clock() < end and (candidate := next(tries, None)) is not None:
        plays += 1
        if differs(candidate):
            case, tries = candidate, smaller(candidate)
    return case


def smaller(case: Case) -> Iterator[Case]:
    """Yield cases without a step, a field or some characters, smallest first."""
    for index in reversed(range(len(case.steps))):
        if len(case.steps) > 1:
            yield replace(case, steps=(*case.steps[:index], *case.steps[index + 1 :]))
    for index, step in enumerate(case.steps):
        for less in _smaller_steps(step):
            yield replace(case, steps=(*case.steps[:index], less, *case.steps[index + 1 :]))


def _smaller_steps(step: Step) -> Iterator[Step]:
    if not isinstance(step.does, Send) or step.does.command is None:
        return
    for command in _smaller_commands(step.does.command):
        yield replace(step, does=Send(command))


def _smaller_commands(command: pb.BaseCommand) -> Iterator[pb.BaseCommand]:
    (body,) = [field for field, _ in command.ListFields() if field.message_type is not None]
    for field, value in getattr(command, body.name).ListFields():
        if not field.is_required:
            yield _changed(command, body.name, lambda one, name=field.name: one.ClearField(name))
        if field.type == field.TYPE_STRING and not field.is_repeated:
            for text in _shorter(value):
                yield _with_text(command, body.name, field.name, text)


def _with_text(command: pb.BaseCommand, body: str, name: str, text: str) -> pb.BaseCommand:
    return _changed(command, body, lambda one: setattr(one, name, text))


def _changed(
    command: pb.BaseCommand, body: str, change: Callable[[Message], object]
) -> pb.BaseCommand:
    less = pb.BaseCommand()
    less.CopyFrom(command)
    change(getattr(less, body))
    return less


def _shorter(text: str) -> Iterator[str]:
    """Yield a text without halves, quarters and so on; tokens stay whole."""
    parts = _parts(text)
    size = len(parts) // 2
    while size:
        for start in range(0, len(parts), size):
            yield "".join(parts[:start] + parts[start + size :])
        size //= 2


def _parts(text: str) -> list[str]:
    """Split a text into characters and tokens."""
    parts: list[str] = []
    at = 0
    while at < len(text):
        token = next((one for one in (NAMESPACE_TOKEN, HASH_TOKEN) if text.startswith(one, at)), "")
        parts.append(token or text[at])
        at += len(parts[-1])
    return parts
