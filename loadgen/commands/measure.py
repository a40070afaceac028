"""``loadgen measure``: measures a running broker's service times, for simulations."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from loadgen.commands.options import AsJson, Confirmed, require_own_address
from loadgen.commands.shown import console, print_object, print_sentences, say, table_of
from loadgen.documents.service_times import PULSAR
from loadgen.errors import UsageError, write_text
from loadgen.loopback import require_own_cluster
from loadgen.places.options import RunOptions
from loadgen.places.server_process import termination_interrupts
from loadgen.studies.advise.namespaces import shapes_of_cluster
from loadgen.studies.measure.measured import FILE_NAME, measured
from loadgen.topics.own_namespaces import TENANT, own_namespaces

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadgen.studies.measure.measured import Measured

_SIZES = (100, 1_000, 3_000, 10_000)
_FRESH = 12
_LEAST_SPREAD = 4
_LONGEST_SECONDS = 600


def measure(  # noqa: PLR0913 (each parameter is an option of the command)
    *,
    service_url: str = "pulsar://127.0.0.1:6650",
    admin_url: str = "http://127.0.0.1:8080",
    namespace: list[str] | None = None,
    seconds: float = 5.0,
    name_bytes: int = 100,
    out: Path = Path("out/measure"),
    confirmed: Confirmed = False,
    as_json: AsJson = False,
) -> None:
    r"""Measure the durations of listings, watches and lookups at your own broker.

    Makes namespaces of 100 to 10,000 names in a tenant of its own,
    loadgen-measure, and deletes them; or reads those of --namespace and makes
    no namespaces. Takes one to three minutes, in which the broker is busy. Writes
    service-times.yaml, for scenarios in virtual time:
    --set servers.service_times=out/measure/service-times.yaml

    Examples:
      loadgen measure --service-url pulsar://127.0.0.1:6650 \
        --admin-url http://127.0.0.1:8080

      loadgen measure --service-url pulsar://127.0.0.1:6650 \
        --admin-url http://127.0.0.1:8080 \
        --namespace acme/small --namespace acme/large

    Options:
        service_url (URL): pulsar://host:port of the broker.
        admin_url (URL): http://host:port of its web port.
        namespace (NAME): Existing namespace to list instead; at least two, of different
            sizes. May be repeated.
        seconds: Time of each of eight loads.
        name_bytes: Length of the full names made: matching a pattern takes longer for
            longer names.
        out (DIR): Directory for the file and the runs.
    """
    if not 1 <= seconds <= _LONGEST_SECONDS:
        raise UsageError(f"--seconds {seconds:g}: must be 1 to {_LONGEST_SECONDS}")
    if not 70 <= name_bytes <= 512:
        raise UsageError(f"--name-bytes {name_bytes}: must be 70 to 512")
    require_own_address("--service-url", service_url, confirmed=confirmed)
    require_own_cluster(admin_url, confirmed=confirmed)
    options = RunOptions(out=out / "runs", service_url=service_url)
    with ExitStack() as stack:
        stack.enter_context(termination_interrupts())
        note = (lambda sentence: None) if as_json else say
        fresh: tuple[str, ...] = ()
        if namespace:
            sized = _by_size(admin_url, namespace)
        else:
            note(f"making namespaces in the tenant {TENANT}, which are deleted at the end")
            sizes = {f"n{size}": size for size in _SIZES}
            own = sizes | {f"empty{number}": 0 for number in range(_FRESH)}
            every = stack.enter_context(own_namespaces(admin_url, own, name_bytes))
            stack.callback(note, f"deleting the tenant {TENANT}: some minutes on a busy broker")
            sized, fresh = every[: len(sizes)], every[len(sizes) :]
        found = measured(options, sized, fresh, seconds, note)
    file = out / FILE_NAME
    write_text(file, found.text())
    if as_json:
        print_object(1, found.told())
    else:
        _show(found, file)


def _by_size(admin_url: str, names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of namespaces, sorted by their number of topics.

    Raises:
        UsageError: The sizes are too similar to fit a line to service times by size.
    """
    shapes = sorted(shapes_of_cluster(admin_url, names), key=lambda each: each.topics)
    if shapes[-1].topics < _LEAST_SPREAD * shapes[0].topics:
        sizes = " and ".join(f"{each.topics:,}" for each in (shapes[0], shapes[-1]))
        raise UsageError(
            f"--namespace: they have {sizes} topics: name some of which the largest has at least "
            f"{_LEAST_SPREAD} times as many, or leave the option out"
        )
    return tuple(each.name for each in shapes)


def _show(found: Measured, file: Path) -> None:
    screen, profile = console(), PULSAR.model_dump()
    rows = [
        (name, *map(_time, (each.value, each.low, each.high, profile[name])))
        for name, each in found.fitted.times.items()
    ]
    rows += [(name, "-", "-", "-", _time(profile[name])) for name in found.kept]
    heads = ("service time", "median", "5 %", "95 %", "profile pulsar")
    screen.print(table_of(heads, rows))
    screen.print()
    figures = []
    for name, each in found.fitted.figures.items():
        write = "{:,.0f}".format if "a second" in name else _time
        figures.append((name, *map(write, (each.value, each.low, each.high))))
    screen.print(table_of(("", "median", "5 %", "95 %"), figures))
    print_sentences(
        [f"{found.by['server_version']}. Written: {file}"],
        [f"not all was answered: {each}" for each in found.fitted.refused],
    )


def _time(seconds: float) -> str:
    """Format a duration in the largest unit that makes it at least 1."""
    for worth, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if seconds >= worth:
            return f"{seconds / worth:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"
