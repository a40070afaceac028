"""The wheels, beside packages of the same names as ours: everything runs, all and in parts."""

import os
import shutil
import subprocess
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks.processes import ROOT
from server.module_names import IN_WHEELS
from tests.proof.result import ProofOptions, ProofResult
from tests.proof.wheel.building import (
    CLIENT,
    DISTRIBUTIONS,
    SERVERS,
    build_source,
    build_wheels,
)
from tests.proof.wheel.environment import NOT_IN_THE_WHEEL, WITH_A_BROKER, CleanEnvironment
from tests.proof.wheel.servers import started

PLUGIN_TESTS = Path(__file__).with_name("plugin_tests.py")
BROKER = ("brokerServicePort=0", "webServicePort=0", "bindAddress=127.0.0.1")
PROXY = ("servicePort=0", "webServicePort=0", "bindAddress=127.0.0.1")
_STORM = ("loadgen", "run", "storm", "--set", "clients.all.count=20")
CLASS_KEY = "pulsarResourcesExtendedClassName"
CLASS_PATHS = (
    "broker.property_index:PropertyIndex",
    "pulsar_floodgate.broker.property_index:PropertyIndex",
)
_ROUND_TRIP = """
import asyncio, sys
import client, proto, server
from {package} import Client
assert set((client.OWNER, proto.OWNER, server.OWNER)) == set(["theirs"])
async def main():
    async with Client(sys.argv[1]) as mine:
        consumer = await mine.subscribe("wheel", "mine")
        producer = await mine.create_producer("wheel")
        await producer.send(b"there")
        assert (await consumer.receive()).data() == b"there"
asyncio.run(main())
"""


def prove(options: ProofOptions) -> ProofResult:
    """Build the wheels; install all and run all programs; then the servers, and the client.

    The client's tests run with the newest and with the lowest versions of its packages.
    """
    result = ProofResult()
    folder = options.out / "wheel"
    with _removed(folder):
        options.note("building")
        folder.mkdir(parents=True)
        wheels = build_wheels(folder / "wheels")
        _whole(wheels, result)
        _the_same_again(wheels, folder / "again", result)
        options.note("installing everything")
        environment = CleanEnvironment.make(folder / "all", folder / "wheels")
        environment.install(f"{SERVERS}[all]", "proto-plus", *environment.test_packages())
        options.note("the programs")
        _programs(environment, options.out, result)
        options.note("workers of Spark")
        _spark(environment, result)
        options.note("the servers alone")
        servers = CleanEnvironment.make(folder / "servers", folder / "wheels")
        servers.install(SERVERS, "pulsar-client", "pytest", "pytest-xdist")
        _servers(servers, options.out, result)
        _plugin(servers, result)
        for part, lowest in (("alone", False), ("alone, lowest versions", True)):
            options.note(f"the client, with all its extras, {part}")
            client = CleanEnvironment.make(folder / "client", folder / "wheels", lowest=lowest)
            client.install(f"{CLIENT}[all]", *client.test_packages())
            client.take_tests()
            _unit_tests(client, part, WITH_A_BROKER, options.out, result)
    return result


@contextmanager
def _removed(folder: Path) -> Iterator[None]:
    try:
        yield
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _whole(wheels: Sequence[Path], result: ProofResult) -> None:
    packed: set[str] = set()
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            packed |= {name for name in archive.namelist() if ".dist-info/" not in name}
    wanted = {
        f"{IN_WHEELS[package].replace('.', '/')}/{file.relative_to(ROOT / package)}"
        for package in IN_WHEELS
        for file in (ROOT / package).rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    top = {name.partition("/")[0] for name in packed}
    result.check(
        "whole",
        wanted <= packed and top == {name.replace("-", "_") for name in DISTRIBUTIONS},
        f"{len(packed)} files; missing: {sorted(wanted - packed)[:3]}; at the top: {sorted(top)}",
    )


def _the_same_again(wheels: Sequence[Path], folder: Path, result: ProofResult) -> None:
    """Build the wheels again, from the source distribution: byte for byte the same."""
    again = build_wheels(folder, build_source(folder))
    other = [
        one.name
        for one, two in zip(wheels, again, strict=True)
        if one.read_bytes() != two.read_bytes()
    ]
    said = f"differ: {', '.join(other)}" if other else "are the same, byte for byte"
    result.check("built again", not other, f"wheels of the source distribution {said}")


def _servers(environment: CleanEnvironment, out: Path, result: ProofResult) -> None:
    """Run a broker and a proxy without extras, and see that each extra is named."""
    with ExitStack() as stack:
        broker = stack.enter_context(started(environment, out, "broker", BROKER))
        urls = f"brokerServiceURL={broker[0]}", f"brokerWebServiceURL={broker[1]}"
        proxy = stack.enter_context(started(environment, out, "proxy", PROXY + urls))
        for url in (broker[0], proxy[0]):
            _through(environment, url, result)
    broker_words = ("floodgate-broker", *(f"--set={each}" for each in BROKER))
    for words, extra in (
        ((*broker_words, "--import", "topics.txt"), f"{SERVERS}[parquet]"),
        ((*broker_words, "--set", f"{CLASS_KEY}={CLASS_PATHS[0]}"), f"{SERVERS}[parquet]"),
        (("floodgate-admin", "tenants", "list"), f"{CLIENT}[admin]"),
    ):
        done = environment.run(*words)
        right = done.returncode != 0 and extra in done.stderr and "Traceback" not in done.stderr
        _said(" ".join(words), right, f"names {extra}", done, result)


def _programs(environment: CleanEnvironment, out: Path, result: ProofResult) -> None:
    """Run each program, and each module that is a program."""
    for words in (
        *(("floodgate-broker",), ("floodgate-proxy",), ("floodgate-admin",), ("loadgen",)),
        *(("-m", IN_WHEELS[name]) for name in ("broker", "proxy", "loadgen")),
        *(("-m", f"{IN_WHEELS['client']}.admin"), ("-m", "pulsar_floodgate"), (SERVERS,)),
    ):
        done = environment.run(*words, "--help")
        helps = done.returncode == 0 and "sage:" in done.stdout
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
    told = "pulsar-floodgate-loadgen[spark]" in done.stderr
    _said("the same without Spark", told, "the remedy is told", done, result)


def _spark(environment: CleanEnvironment, result: ProofResult) -> None:
    """Run clients in Spark's workers, with this environment's Spark: half a gigabyte less."""
    places = [environment.lend(name) for name in ("pyspark", "py4j")]
    done = environment.run(*_STORM, "--place", "spark")
    _said("loadgen run storm in workers of Spark", done.returncode == 0, "passed", done, result)
    for place in places:
        place.unlink()


def _through(environment: CleanEnvironment, url: str, result: ProofResult) -> None:
    for package in (IN_WHEELS["client"], f"{SERVERS.replace('-', '_')}.client"):
        done = environment.run("python", "-c", _ROUND_TRIP.format(package=package), url)
        _said(f"a message by {url}, {package}", done.returncode == 0, "came back", done, result)


def _plugin(environment: CleanEnvironment, result: ProofResult) -> None:
    shutil.copy(PLUGIN_TESTS, environment.project / "test_plugin.py")
    asks = 'pytest_plugins = ["pulsar_floodgate.pytest_plugin"]\n'
    (environment.project / "conftest.py").write_text(asks, encoding="utf-8")
    quiet = environment.run(
        *("python", "-c"),
        "import pulsar_floodgate.pytest_plugin, sys; "
        "sys.exit('pulsar_floodgate_client' in sys.modules)",
    )
    _said("the plug-in alone", quiet.returncode == 0, "imports nothing of it", quiet, result)
    words = ("-m", "pytest", "-q", "-c", os.devnull, "--rootdir=.", "-p", "no:cacheprovider")
    words += ("--durations=0", "test_plugin.py")
    for more in ((), ("-n", "2")):
        done = environment.run(*words, *more)
        what = f"tests with the plug-in {' '.join(more)}".strip()
        _said(what, done.returncode == 0, _last_line(done), done, result)


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
    log = out / f"unit-tests-{part.replace(', ', '-').replace(' ', '-')}.log"
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
