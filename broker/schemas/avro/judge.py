"""Checks of Avro definitions, which run in separate processes."""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from broker.schemas.avro.jobs import Answer, Job
from broker.schemas.errors import SchemaRefusal, SchemaRefusedError
from limiter.clock import Clock, deadline
from limiter.extras import SERVERS
from server.tasks.worker_processes import WorkerFailedError, WorkerProcess, WorkerProcesses

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker.schemas.schema import Schema
    from broker.stores.store import StoredSchema

HAS_AVRO = find_spec("avro") is not None
SECONDS = 10.0
"""Time limit of a judgement, including the wait for a process."""
# Isolated (-I), so that environment variables do not change the imports.
_ROOT = str(Path(__file__).parents[__name__.count(".")])
_CODE = f"import sys; sys.path.append({_ROOT!r}); from {__package__}.worker import main; main()"


class SchemaWorker(WorkerProcess):
    """A worker process that checks one Avro definition at a time."""

    called = "schema worker"


class ProcessJudge(WorkerProcesses[SchemaWorker]):
    """Checks Avro definitions in worker processes: ``async with ProcessJudge(clock)``.

    See AvroJudge. A check that takes longer than SECONDS ends in a refusal. Bound: WorkerProcesses.
    """

    def __init__(self, clock: Clock) -> None:
        super().__init__((sys.executable, "-I", "-c", _CODE), SchemaWorker)
        self._clock = clock

    async def judge(
        self,
        schema: Schema,
        alike: Sequence[StoredSchema],
        compared: Sequence[StoredSchema],
        strategy: str,
    ) -> int | None:
        """Check a schema; return the index in ``alike`` of an equal one, or None if it is new."""
        definitions = [one.data for one in alike], [one.data for one in compared]
        job = Job(schema.data, *definitions, strategy)
        answer = await self._answer(schema.kind, job) if HAS_AVRO else without_avro(job)
        return judgement(schema.kind, strategy, answer)

    async def _answer(self, kind: str, job: Job) -> Answer:
        try:
            async with deadline(self._clock, SECONDS), self.worker() as worker:
                return Answer.of(await worker.ask(job.packed()))
        except TimeoutError:
            text = f"the check of this {kind} schema takes more than {SECONDS:.0f} s"
            raise SchemaRefusedError(SchemaRefusal(text, invalid=True)) from None
        except WorkerFailedError as error:
            text = f"{error}; the {kind} schema was left"
            raise SchemaRefusedError(SchemaRefusal(text, invalid=True)) from None


def without_avro(job: Job) -> Answer:
    """Check without the avro package that a definition is JSON, and look for an equal one."""
    try:
        new, *alike = map(json.loads, (job.definition, *job.alike))
    except (ValueError, RecursionError) as error:
        return Answer(unreadable=str(error))
    if new in alike:
        return Answer(alike.index(new))
    missing = f"checking needs the package avro: pip install '{SERVERS}[avro]'"
    return Answer(incompatible=missing if job.compared else "", is_union=isinstance(new, list))


def judgement(kind: str, strategy: str, answer: Answer) -> int | None:
    """Return the index of an equal earlier schema, None for a new one, or raise the refusal.

    Raises:
        SchemaRefusedError: The answer is a refusal.
    """
    if answer.unreadable:
        raise SchemaRefusedError(unreadable(kind, answer.unreadable))
    if kind == "AVRO" and answer.is_union:
        text = "Avro schema typed [UNION] is not supported"
        raise SchemaRefusedError(SchemaRefusal(text, invalid=True))
    if answer.incompatible:
        raise SchemaRefusedError(incompatible(strategy, answer.incompatible))
    return answer.same


def unreadable(kind: str, reason: str) -> SchemaRefusal:
    """Return the reason to refuse a schema whose Avro definition is invalid."""
    cause = f"org.apache.avro.SchemaParseException: {reason}"
    return SchemaRefusal(f"Invalid schema definition data for {kind} schema", cause, invalid=True)


def incompatible(strategy: str, reason: str) -> SchemaRefusal:
    """Return the reason to refuse a schema that is incompatible with earlier versions."""
    return SchemaRefusal(
        f"Error during schema compatibility check with strategy {strategy}: "
        f"org.apache.avro.SchemaValidationException: {reason}"
    )
