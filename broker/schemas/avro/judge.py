"""The judge of definitions in Avro's language: asks a process of its own for every judgement."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from broker.schemas.avro.jobs import Answer, Job
from broker.schemas.errors import SchemaRefusal, SchemaRefusedError
from limiter.clock import Clock, deadline
from server.tasks.worker_processes import WorkerFailedError, WorkerProcess, WorkerProcesses

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker.schemas.schema import Schema
    from broker.stores.topic_schemas import StoredSchema

SECONDS = 10.0
"""Time for one judgement, its turn included."""
# Isolated (-I), so that no variable of the environment changes what is imported.
_ROOT = str(Path(__file__).parents[__name__.count(".")])
_CODE = f"import sys; sys.path.append({_ROOT!r}); from {__package__}.worker import main; main()"


class SchemaWorker(WorkerProcess):
    """One process, for one judgement at a time."""

    called = "schema worker"


class ProcessJudge(WorkerProcesses[SchemaWorker]):
    """The judge that a broker uses: ``async with ProcessJudge(clock)``. See AvroJudge.

    Bound: WorkerProcesses; a judgement that takes longer than SECONDS is a refusal.
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
        """Return the place in ``alike`` of the same schema; None for a new one."""
        definitions = [one.data for one in alike], [one.data for one in compared]
        answer = await self._answer(schema.kind, Job(schema.data, *definitions, strategy))
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


def judgement(kind: str, strategy: str, answer: Answer) -> int | None:
    """Return the place of the same schema; None for a new one.

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
    """Return the refusal of a definition that is none."""
    cause = f"org.apache.avro.SchemaParseException: {reason}"
    return SchemaRefusal(f"Invalid schema definition data for {kind} schema", cause, invalid=True)


def incompatible(strategy: str, reason: str) -> SchemaRefusal:
    """Return the refusal of a definition that is not compatible."""
    return SchemaRefusal(
        f"Error during schema compatibility check with strategy {strategy}: "
        f"org.apache.avro.SchemaValidationException: {reason}"
    )
