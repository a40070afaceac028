"""The check, in a worker process, that an Avro definition is valid, new and compatible."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.schemas.avro.definition import (
    IncompatibleDefinitionsError,
    UnreadableDefinitionError,
    check,
    read,
    written,
)
from broker.schemas.avro.jobs import Answer, Job

if TYPE_CHECKING:
    from collections.abc import Sequence

    from avro.schema import Schema


def judged(job: Job) -> Answer:
    """Parse a new definition, look for an equal earlier one, and check its compatibility."""
    try:
        new = read(job.definition)
    except UnreadableDefinitionError as error:
        return Answer(unreadable=str(error))
    is_union = new.type == "union"
    same = _same(new, job.alike)
    if same is not None:
        return Answer(same, is_union=is_union)
    try:
        check(new, [read(one) for one in job.compared], job.strategy)
    except IncompatibleDefinitionsError as error:
        return Answer(incompatible=str(error), is_union=is_union)
    return Answer(is_union=is_union)


def _same(new: Schema, alike: Sequence[bytes]) -> int | None:
    comparable = written(new, comparable=True)
    found = (
        place
        for place, one in enumerate(alike)
        if written(read(one), comparable=True) == comparable
    )
    return next(found, None)
