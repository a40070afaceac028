"""The table of errors by step: one row for errors with equal reactions of all clients."""

from collections.abc import Iterator, Mapping, Sequence

from tests.proof.patience.cells import AGAIN, CONNECT, ERRORS, FIRST, GOES_ON, STEPS, Cell

Outcomes = dict[str, dict[Cell, str]]
"""Each client's reaction in each cell."""
TOLD_AT_ONCE = Cell(FIRST, CONNECT, "AuthenticationError")
"""On the first connection a client immediately reports wrong credentials to its program."""

OTHER_NAMES = {
    "TooManyRequests": {"TooManyLookupRequestException"},
    "ServiceNotReady": {"ServiceUnitNotReady", "Lookup"},
    "MetadataError": {"BrokerMetadataError", "BrokerMetadata"},
    "PersistenceError": {"BrokerPersistenceError", "BrokerPersistence"},
    "UnknownError": {"PulsarClient"},
    "TopicNotFound": {"TopicDoesNotExist"},
}
"""Clients' names for errors, beside the error's name, without Java's "Error"."""


def table_of(outcomes: Outcomes) -> str:
    """Return the table as Markdown."""
    clients = list(outcomes)
    lines = [
        f"| | step | answered | {' | '.join(clients)} |",
        f"|{'---|' * (3 + len(clients))}",
        *(
            f"| {' | '.join((when, step, ', '.join(errors), *said))} |"
            for when in (FIRST, AGAIN)
            for step in STEPS
            for said, errors in _alike(outcomes, when, step).items()
        ),
    ]
    return "".join(f"{line}\n" for line in lines)


def _alike(outcomes: Outcomes, when: str, step: str) -> Mapping[tuple[str, ...], Sequence[str]]:
    rows: dict[tuple[str, ...], list[str]] = {}
    for error in ERRORS:
        cell = Cell(when, step, error)
        said = tuple(_told(error, found[cell]) for found in outcomes.values() if cell in found)
        if said:
            rows.setdefault(said, []).append(error)
    for said, errors in rows.items():
        if len(errors) > len(ERRORS) / 2:
            rows[said] = ["each" if len(rows) == 1 else "all others"]
    return dict(sorted(rows.items(), key=lambda row: row[1] == ["all others"]))


def _told(error: str, outcome: str) -> str:
    """Return an outcome, independent of the client's name for the error."""
    names = {error, error.removesuffix("Error"), *OTHER_NAMES.get(error, ())}
    return "raises it" if outcome.removeprefix("raises ") in names else outcome


def less_patient(outcomes: Outcomes, own: str, official: Sequence[str]) -> Iterator[Cell]:
    """Yield the cells in which an official client retries and ours does not, but should."""
    for cell, said in outcomes[own].items():
        if cell == TOLD_AT_ONCE or said == GOES_ON:
            continue
        if any(outcomes[name][cell] == GOES_ON for name in official):
            yield cell
