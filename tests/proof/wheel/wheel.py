"""The wheel, in an environment with packages of the same names as ours: everything runs."""

import shutil
import subprocess
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks.processes import ROOT
from server.module_names import PACKAGES
from tests.proof.result import ProofOptions, ProofResult
from tests.proof.wheel.building import build_source, build_wheel
from tests.proof.wheel.environment import NOT_IN_THE_WHEEL, WITH_A_BROKER, CleanEnvironment
from tests.proof.wheel.servers import started

MOST_BYTES = 380e6
MOST_BYTES_WITHOUT_COLUMNS = 130e6
COLUMNS = ("pyarrow", "numpy")
PLUGIN_TESTS = Path(__file__).with_name("plugin_tests.py")
BROKER = ("brokerServicePort=0", "webServicePort=0", "bindAddress=127.0.0.1")
PROXY = ("servicePort=0", "webServicePort=0", "bindAddress=127.0.0.1")
_STORM = ("loadgen", "run", "storm", "--set", "clients.all.count=20")
CLASS_KEY = "pulsarResourcesExtendedClassName"
CLASS_PATHS = (
    "broker.property_index:PropertyIndex",
    "floodgate.broker.property_index:PropertyIndex",
)
_ROUND_TRIP = """
import asyncio, sys
import client, proto, server
from floodgate.client import Client
assert {client.OWNER, proto.OWNER, server.OWNER} == {"theirs"}
async def main():
    async with Client(sys.argv[1]) as mine:
        consumer = await mine.subscribe("wheel", "mine")
        producer = await mine.create_producer("wheel")
        await producer.send(b"there")
        assert (await consumer.receive()).data() == b"there"
asyncio.run(main())
"""


def prove(options: ProofOptions) -> ProofResult:
    """Build the wheel, install it, run all its programs; then without numpy and pyarrow."""
    result = ProofResult()
    environment = CleanEnvironment.make(options.out / "wheel")
    with _removed(environment.folder):
        options.note("building and installing")
        wheel = build_wheel(environment.folder)
        _whole(wheel, result)
        _from_source(wheel, environment.folder / "source", result)
        bare = environment.bytes_installed()
        environment.install(str(wheel))
        _small("everything", environment.bytes_installed() - bare, MOST_BYTES, result)
        environment.install("proto-plus")
        options.note("the programs")
        _programs(environment, options.out, result)
        before = environment.bytes_installed()
        environment.install(*environment.test_packages())
        tools = environment.bytes_installed() - before
        options.note("workers of Spark")
        _spark(environment, result)
        options.note("the plug-in for pytest")
        _plugin(environment, result)
        environment.take_tests()
        options.note("unit tests of limiter and client")
        _unit_tests(environment, "with all", (), options.out, result)
        options.note("without numpy and pyarrow")
        _without_columns(environment, options.out, bare + tools, result)
        _unit_tests(environment, "without them", WITH_A_BROKER, options.out, result)
    return result


@contextmanager
def _removed(folder: Path) -> Iterator[None]:
    try:
        yield
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _whole(wheel: Path, result: ProofResult) -> None:
    with zipfile.ZipFile(wheel) as archive:
        packed = set(archive.namelist())
    wanted = {
        f"floodgate/{file.relative_to(ROOT)}"
        for package in PACKAGES
        for file in (ROOT / package).rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    top = {name.partition("/")[0] for name in packed if ".dist-info/" not in name}
    result.check(
        "whole",
        wanted <= packed and top == {"floodgate", "floodgate_pytest.py"},
        f"{len(packed)} files; missing: {sorted(wanted - packed)[:3]}; at the top: {sorted(top)}",
    )


def _from_source(wheel: Path, folder: Path, result: ProofResult) -> None:
    """Build the source distribution, and from it the wheel again."""
    folder.mkdir()
    again = build_wheel(folder, build_source(folder))
    with zipfile.ZipFile(wheel) as first, zipfile.ZipFile(again) as second:
        files = [{name: each.read(name) for name in each.namelist()} for each in (first, second)]
    other = sorted(
        name for name in {**files[0], **files[1]} if files[0].get(name) != files[1].get(name)
    )
    words = f"gives the same wheel but for {other[:3]}" if other else "gives the same wheel"
    result.check("source distribution", not other, f"the source distribution {words}")


def _small(what: str, size: float, most: float, result: ProofResult) -> None:
    result.figures[f"{what.replace(' ', '_')}_bytes"] = int(size)
    result.check(what, size <= most, f"{what}: {size / 1e6:.0f} MB of at most {most / 1e6:.0f}")


def _programs(environment: CleanEnvironment, out: Path, result: ProofResult) -> None:
    """Run each program, and each module that is a program."""
    for words in (
        *(("floodgate-broker",), ("floodgate-proxy",), ("floodgate-admin",), ("loadgen",)),
        *(("-m", f"floodgate.{name}") for name in ("broker", "proxy", "client.admin", "loadgen")),
    ):
        done = environment.run(*words, "--help")
        helps = done.returncode == 0 and "Usage:" in done.stdout
        _said(f"{' '.join(words)} --help", helps, "it helps", done, result)
    for path in CLASS_PATHS:
        with ExitStack() as stack:
            settings = (*BROKER, f"{CLASS_KEY}={path}", "enableBrokerTopicListWatcher=false")
            broker = stack.enter_context(started(environment, out, "broker", settings))
            urls = f"brokerServiceURL={broker[0]}", f"brokerWebServiceURL={broker[1]}"
            proxy = stack.enter_context(started(environment, out, "proxy", PROXY + urls))
            for url in (broker[0], proxy[0]):
                _through(environment, url, result)
            done = environment.run("floodgate-admin", "--admin-url", broker[1], "tenants", "list")
            what = f"floodgate-admin at a broker with the class {path}"
            _said(what, "public" in done.stdout, "it lists tenants", done, result)
    done = environment.run(*_STORM, "--json")
    _said("loadgen run storm", done.returncode == 0, "passed", done, result)
    done = environment.run(*_STORM, "--place", "spark")
    told = "floodgate[loadgen]" in done.stderr
    _said("the same without Spark", told, "the remedy is told", done, result)


def _spark(environment: CleanEnvironment, result: ProofResult) -> None:
    """Run clients in Spark's workers, with this environment's Spark: half a gigabyte less."""
    places = [environment.lend(name) for name in ("pyspark", "py4j")]
    done = environment.run(*_STORM, "--place", "spark")
    _said("loadgen run storm in workers of Spark", done.returncode == 0, "passed", done, result)
    for place in places:
        place.unlink()


def _through(environment: CleanEnvironment, url: str, result: ProofResult) -> None:
    done = environment.run("python", "-c", _ROUND_TRIP, url)
    _said(f"a message by {url}", done.returncode == 0, "came back", done, result)


def _plugin(environment: CleanEnvironment, result: ProofResult) -> None:
    shutil.copy(PLUGIN_TESTS, environment.project / "test_plugin.py")
    quiet = environment.run(
        *("python", "-c"),
        "import floodgate_pytest, sys; sys.exit('floodgate' in sys.modules)",
    )
    _said("the plug-in alone", quiet.returncode == 0, "imports nothing of it", quiet, result)
    words = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "--durations=0", "test_plugin.py")
    for more in ((), ("-n", "2")):
        done = environment.run(*words, *more)
        what = f"tests with the plug-in {' '.join(more)}".strip()
        _said(what, done.returncode == 0, _last_line(done), done, result)


def _without_columns(
    environment: CleanEnvironment, out: Path, others_bytes: int, result: ProofResult
) -> None:
    """Remove numpy and pyarrow; client and proxy continue, before a broker started with them."""
    with ExitStack() as stack:
        broker = stack.enter_context(started(environment, out, "broker", BROKER))
        environment.uninstall(*COLUMNS)
        size = environment.bytes_installed() - others_bytes
        _small("without numpy and pyarrow", size, MOST_BYTES_WITHOUT_COLUMNS, result)
        urls = f"brokerServiceURL={broker[0]}", f"brokerWebServiceURL={broker[1]}"
        proxy = stack.enter_context(started(environment, out, "proxy", PROXY + urls))
        _through(environment, proxy[0], result)


def _unit_tests(
    environment: CleanEnvironment,
    part: str,
    without: Sequence[str],
    out: Path,
    result: ProofResult,
) -> None:
    left_out = [f"--deselect={each}" for each in NOT_IN_THE_WHEEL]
    left_out += [f"--ignore={each}" for each in without]
    words = ("-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", *left_out)
    done = environment.run(*words, "tests/unit/limiter", "tests/unit/client")
    log = out / f"unit-tests-{part.replace(' ', '-')}.log"
    log.write_text(done.stdout + done.stderr, encoding="utf-8")
    what = f"unit tests of limiter and client, {part}"
    result.check(what, done.returncode == 0, f"{what}: {_last_line(done)}")


def _said(
    what: str,
    right: bool,
    sentence: str,
    done: subprocess.CompletedProcess[str],
    result: ProofResult,
) -> None:
    """Check a program's result; after a failure its last words are the sentence."""
    words = sentence if right else (done.stderr + done.stdout).strip()[-500:]
    result.check(what, right, f"{what}: {words}")


def _last_line(done: subprocess.CompletedProcess[str]) -> str:
    return (done.stdout.strip().splitlines() or ["nothing"])[-1]
