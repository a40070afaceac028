import re
from importlib import import_module
from pathlib import Path

from loadgen.virtual.servers import CUT_BY_TIME, undisturbed

ROOT = Path(__file__).resolve().parents[4]
MEASURES_ONLY = {
    "broker.imports.importer",  # reports the duration of an import
    "broker.patterns.filter",  # the size of steps; step boundaries change no answer
    "broker.patterns.worker",  # another process
    "broker.topics.lookup",  # reports the duration of a lookup
    # Messages on a disk, absent in virtual time.
    "broker.messages.stores.sqlite.writer",
}


def test_every_clock_that_bounds_a_turn_is_stopped_in_simulations() -> None:
    uses = re.compile(r"^from time import .*perf_counter|time\.perf_counter\(", re.MULTILINE)
    paths = [p for house in ("limiter", "proto", "server", "broker", "proxy", "client/connection")
             for p in (ROOT / house).rglob("*.py")]  # fmt: skip
    found = {
        str(path.relative_to(ROOT).with_suffix("")).replace("/", ".")
        for path in paths
        if uses.search(path.read_text(encoding="utf-8"))
    }
    assert found - MEASURES_ONLY == set(CUT_BY_TIME)


def test_stopped_clocks_continue_after_a_simulation() -> None:
    module = import_module(CUT_BY_TIME[0])
    with undisturbed():
        stopped = module.perf_counter()
    assert stopped == 0.0 < module.perf_counter()
