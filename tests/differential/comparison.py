"""Compares two plays of a case: kinds and codes, then every field, after named masks."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from proto import PulsarApi_pb2 as pb
from tests.differential.cases import Case
from tests.differential.player import Played
from tests.support.golden.exchange import Answer, Silence
from tests.support.golden.masks import Difference, differences, masked_fields

_MASK = re.compile(r"<(exception|id|address|date|server_version|syntax|cut)>")
_SYNTAX = re.compile(r"(Invalid topics pattern: ).* near index -?\d+\n.*", re.DOTALL)
"""java.util.regex's description and index of a pattern's error."""
_CUT = re.compile(r"\.\.\. \([0-9]+ characters\)\Z")
"""End of a text that error texts cut short (proto.excerpts)."""
_TEXTS = ("error", "lookupTopicResponse", "partitionMetadataResponse")


@dataclass(frozen=True)
class StepComparison:
    """Comparison of the answers to a step.

    Attributes:
        kind: The step's class.
        same_codes: Whether kinds and codes agree.
        found: Fields that differ after the masks.
        fields: Number of compared fields.
        masked: Names of the masks that hide differences.
    """

    kind: str
    same_codes: bool
    found: tuple[Difference, ...]
    fields: int
    masked: tuple[str, ...]


def compare(case: Case, real: Played, ours: Played) -> list[StepComparison]:
    """Compare step by step, up to the first step that a side skipped."""
    pairs = zip(case.steps, real.answers, ours.answers, strict=False)
    return [_compare_step(step.kind, *pair) for step, *pair in pairs]


def _compare_step(kind: str, real: Sequence[Answer], ours: Sequence[Answer]) -> StepComparison:
    real, ours = [*map(_masked, real)], [*map(_masked, ours)]
    length = max(len(real), len(ours))
    pairs = list(map(_cut_alike, _padded(real, length), _padded(ours, length)))
    real = [left for left, _ in pairs]
    found = [one for index, pair in enumerate(pairs) for one in differences(index, *pair)]
    shown = [masked_fields(answer) for answer in real if isinstance(answer, pb.BaseCommand)]
    texts = [text for fields in shown for text in fields.values()]
    return StepComparison(
        kind,
        all(codes(left) == codes(right) for left, right in pairs),
        tuple(found),
        len(texts),
        tuple(mask[1] for text in texts if (mask := _MASK.search(text))),
    )


def _masked(answer: Answer) -> Answer:
    if isinstance(answer, Silence) or not answer.HasField("error"):
        return answer
    bare = pb.BaseCommand()
    bare.CopyFrom(answer)
    bare.error.message = _SYNTAX.sub(r"\1<syntax>", bare.error.message)
    return bare


def _cut_alike(real: Answer, ours: Answer) -> tuple[Answer, Answer]:
    """Mask a text that an answer cuts short, if the other text has the same beginning."""
    if isinstance(real, Silence) or isinstance(ours, Silence):
        return real, ours
    for name in _TEXTS:
        whole, shown = getattr(real, name).message, getattr(ours, name).message
        start = _CUT.sub("", shown)
        if start != shown and len(whole) > len(start) and whole.startswith(start):
            real, ours = _with_text(real, name, "<cut>"), _with_text(ours, name, "<cut>")
    return real, ours


def _with_text(answer: pb.BaseCommand, name: str, text: str) -> pb.BaseCommand:
    other = pb.BaseCommand()
    other.CopyFrom(answer)
    getattr(other, name).message = text
    return other


def _padded(answers: Sequence[Answer], length: int) -> list[Answer]:
    return [*answers, *[Silence.NOTHING] * (length - len(answers))]


def codes(answer: Answer) -> tuple[object, ...]:
    """Return an answer's kind, and its code if present."""
    if isinstance(answer, Silence):
        return (answer,)
    lookup, partitions = answer.lookupTopicResponse, answer.partitionMetadataResponse
    return (
        answer.type,
        answer.error.error,
        (lookup.response, lookup.error),
        (partitions.response, partitions.error),
    )


def differs_from_itself(case: Case, first: Played, second: Played) -> bool:
    """Return whether a server answered a repeated case differently."""
    if len(first.answers) != len(second.answers):
        return True
    return any(
        {one.field.rpartition(".")[2] for one in step.found}
        - ({"topics_hash"} if case.shared is None else set())
        for step in compare(case, first, second)
    )
