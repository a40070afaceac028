"""Deployment files, checked without a container engine.

Each command of docker-compose.yml runs as a process on free ports, and a real Prometheus, if
installed, scrapes the processes.
"""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import tomllib
import urllib.request
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pulsar
import pytest
import yaml
from prometheus_client import CollectorRegistry, generate_latest

from broker.configuration.config import BrokerConfig
from loadgen.engine.totals import BUCKETS, Totals
from loadgen.places.metrics import RunCollector
from proxy.config import ProxyConfig
from tests.e2e.prometheus import asked_until, running_prometheus
from tests.support.processes.compose import Network, load_compose
from tests.support.processes.server_process import REPOSITORY, ServerProcess, running_server

pytestmark = pytest.mark.processes

DEPLOY = REPOSITORY / "deploy"
SMALL = {
    "FLOODGATE_TOPICS": "2000",
    "FLOODGATE_NAMESPACES": "2",
    "FLOODGATE_CLIENTS": "20",
}
COMPOSE = load_compose(REPOSITORY / "docker-compose.yml", SMALL)
DASHBOARDS = sorted((DEPLOY / "grafana" / "dashboards").glob("*.json"))
DRAINS = {
    "broker": BrokerConfig.from_properties({}).broker_shutdown_timeout_seconds,
    "proxy": ProxyConfig.from_properties({"brokerServiceURL": "pulsar://a"}).drain_seconds,
}
METRIC_NAME = re.compile(r"\b(?:pulsar|floodgate|process|loadgen)_[a-z_]+\b")
TOPIC_LIST_SAMPLES = 26
PATH = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
"""Folder of the images' commands, present in this environment too."""
RECEIVE_MS = 30_000
"""Timeout for the official client's receive, which without a timeout can hang when a message
arrives during the call (seen: all acknowledged but the message just sent).
"""

needs_promtool = pytest.mark.skipif(
    shutil.which("promtool") is None,
    reason="promtool is not installed (Debian: apt-get install prometheus).",
)
needs_prometheus = pytest.mark.skipif(
    shutil.which("prometheus") is None,
    reason="Prometheus is not installed (Debian: apt-get install prometheus).",
)


@dataclass(frozen=True)
class Stack:
    """Services of docker-compose.yml as processes.

    Attributes:
        data: Replaces the volume at /data.
        broker: The running broker.
        proxy: The running proxy.
    """

    data: Path
    broker: ServerProcess
    proxy: ServerProcess


def as_process(service: str, data: Path, addresses: dict[str, str]) -> list[str]:
    """Return a service's command with its volumes and network hosts replaced.

    The database is left out: the proof of the images covers a database.
    """
    replacements = {
        "/data": str(data),
        "/out": str(data / "out"),
        "/var/lib/floodgate": str(data / "messages"),
        "postgresql://floodgate@postgresql/floodgate": "memory:local",
        **addresses,
    }
    name, *command = COMPOSE.services[service].command
    for old, new in replacements.items():
        command = [part.replace(old, new) for part in command]
    return [shutil.which(name, path=PATH) or name, *command]


def addresses_of(broker: ServerProcess) -> dict[str, str]:
    return {"pulsar://broker:6650": broker.service_url, "http://broker:8080": broker.web_url}


def run_once(command: list[str], folder: Path) -> None:
    """Run a load generator's command to its end."""
    done = subprocess.run(
        command,
        cwd=REPOSITORY,
        env={**os.environ, "PATH": PATH},
        capture_output=True,
        text=True,
        check=False,
    )
    (folder / "loadgen.log").write_text(done.stdout + done.stderr)
    assert done.returncode == 0, f"{command} ended with {done.returncode}:\n{done.stderr[-2000:]}"


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Create the topics and run the broker and the proxy with the file's commands."""
    data = tmp_path_factory.mktemp("data")
    run_once(as_process("topics", data, {}), data)
    any_port = ["--set", "webServicePort=0", "--set", "bindAddress=127.0.0.1"]
    here = [*any_port, "--set", "advertisedAddress=127.0.0.1"]
    broker_command = [*as_process("broker", data, {}), *here, "--set", "brokerServicePort=0"]
    with running_server(broker_command, data / "broker.log") as broker:
        proxy_command = as_process("proxy", data, addresses_of(broker))
        proxy_command += [*any_port, "--set", "servicePort=0"]
        with running_server(proxy_command, data / "proxy.log") as proxy:
            yield Stack(data, broker, proxy)


@pytest.fixture(scope="module")
def load(stack: Stack) -> Iterator[None]:
    """Publish and consume messages until the module's last test has ended."""
    client = pulsar.Client(stack.broker.service_url)
    ended = threading.Event()
    consumer = client.subscribe("persistent://public/default/orders", "s")
    producer = client.create_producer("persistent://public/default/orders")

    def publish() -> None:
        while not ended.wait(0.01):
            producer.send(b"order")
            consumer.acknowledge(consumer.receive(RECEIVE_MS))

    producer.send(b"the first, which nobody acknowledges")
    consumer.receive(RECEIVE_MS)
    thread = threading.Thread(target=publish)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        client.close()


# --- the files by themselves -----------------------------------------------------------------


def test_the_compose_file_has_the_expected_services() -> None:
    services = COMPOSE.services
    assert {
        "topics",
        "postgresql",
        "broker",
        "proxy",
        "prometheus",
        "grafana",
        "report-folder",
        "comparison",
        "loadgen",
    } == services.keys()
    # docker compose up starts all services but the storm.
    assert [name for name, service in services.items() if service.profiles] == ["loadgen"]


def test_own_containers_have_no_capabilities_and_a_read_only_file_system() -> None:
    for name, service in COMPOSE.services.items():
        if service.build:
            # Except the short-lived service that creates the folder on the host
            assert service.read_only, name
            assert (service.cap_drop, service.security_opt) == (["ALL"], ["no-new-privileges:true"])
            assert service.user != "root" or name == "report-folder", name


def test_only_the_broker_reaches_the_database() -> None:
    there = [name for name, service in COMPOSE.services.items() if "database" in service.networks]
    assert there == ["postgresql", "broker"]
    assert COMPOSE.networks["database"] == Network(internal=True)
    assert not COMPOSE.services["postgresql"].ports


@pytest.mark.parametrize("role", ["broker", "proxy"])
def test_the_stop_grace_period_exceeds_the_drain_timeout(role: str) -> None:
    grace = COMPOSE.services[role].stop_grace_period
    assert grace
    assert int(grace.removesuffix("s")) > DRAINS[role]


@pytest.mark.parametrize("wrong", [("mem_limit: 512m", "memlimit: 512m"), ("127.0.0.1:9090:", "")])
def test_an_unknown_key_or_a_port_open_to_the_network_is_refused(tmp_path, wrong) -> None:
    text = (REPOSITORY / "docker-compose.yml").read_text(encoding="utf-8")
    (tmp_path / "docker-compose.yml").write_text(text.replace(*wrong), encoding="utf-8")
    with pytest.raises(ValueError, match="validation error"):
        load_compose(tmp_path / "docker-compose.yml", {})


def test_every_dependency_volume_and_mounted_file_exists() -> None:
    for name, service in COMPOSE.services.items():
        unknown = service.depends_on.keys() - COMPOSE.services.keys()
        undeclared = set(service.named_volumes) - COMPOSE.volumes.keys()
        missing = [path for path in service.mounted_files if not (REPOSITORY / path).exists()]
        assert (unknown, undeclared, missing) == (set(), set(), []), name


def test_every_service_that_must_be_healthy_first_has_a_health_check() -> None:
    waited_for = {
        name
        for service in COMPOSE.services.values()
        for name, dependency in service.depends_on.items()
        if dependency.condition == "service_healthy"
    }
    for name in waited_for:
        service = COMPOSE.services[name]
        own = service.healthcheck
        # Its own check, or the image's, which requests the web port.
        assert (own.test and not own.disable) if own else service.build, name


def dockerfile_words(instruction: str) -> list[list[str]]:
    text = (REPOSITORY / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line.split() for line in text.splitlines()]
    return [words[1:] for words in lines if words[:1] == [instruction]]


def test_the_image_copies_every_package_and_only_existing_sources() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    listed = project["tool"]["setuptools"]["packages"]["find"]["include"]
    # In a checkout; wheels, made by `packaging`, have other names.
    packages = {name.partition(".")[0] for name in listed} - {"floodgate"} | {"packaging"}
    local = [words for words in dockerfile_words("COPY") if not words[0].startswith("--from")]
    copied = {each for *sources, _ in local for each in sources if not each.startswith("--")}
    let_in = (REPOSITORY / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert packages <= copied
    assert not [source for source in copied if not (REPOSITORY / source).exists()]
    assert copied == {line[1:] for line in let_in if line.startswith("!")}


def test_the_image_runs_as_a_numeric_user_and_has_a_health_check() -> None:
    users, checks = dockerfile_words("USER"), dockerfile_words("HEALTHCHECK")
    # A number, so Kubernetes can verify that the user is not root
    assert users[-1] == ["10001:10001"]
    assert len(checks) == 1


def test_servers_in_containers_bind_to_all_addresses() -> None:
    image = json.loads(" ".join(*dockerfile_words("CMD")[-1:]))
    commands = [image, *(COMPOSE.services[role].command for role in ("broker", "proxy"))]
    assert [command for command in commands if "bindAddress=0.0.0.0" not in command] == []


# --- the commands as processes ---------------------------------------------------------------


def test_the_health_check_fails_only_for_a_server_that_does_not_answer(stack: Stack) -> None:
    script = [sys.executable, str(DEPLOY / "healthcheck.py")]
    with socket.create_server(("127.0.0.1", 0)) as taken:
        nobody = f"http://127.0.0.1:{taken.getsockname()[1]}/"
    healthy = subprocess.run([*script, f"{stack.proxy.web_url}/metrics/"], check=False)
    sick = subprocess.run([*script, nobody], capture_output=True, text=True, check=False)
    assert healthy.returncode == 0
    assert sick.returncode == 1
    assert sick.stderr.startswith(f"{nobody} does not answer")


def test_the_storm_of_the_compose_file_is_answered_through_the_proxy(stack: Stack) -> None:
    addresses = addresses_of(stack.broker)
    addresses |= {
        "pulsar://proxy:6650": stack.proxy.service_url,
        "http://proxy:8080": stack.proxy.web_url,
    }
    run_once(as_process("loadgen", stack.data, addresses), stack.data)
    (summary,) = (stack.data / "out" / "compose" / "runs").glob("*/summary.json")
    result = json.loads(summary.read_text(encoding="utf-8"))
    total = result["total"]
    assert (result["clients"], total["answered"], total["wrong"]) == (20, 20, 0)


def test_the_comparison_service_has_a_valid_command_and_reports_to_the_host(tmp_path: Path) -> None:
    comparison = COMPOSE.services["comparison"]
    # The demo's own tests cover the command's effect
    run_once([*as_process("comparison", tmp_path, {}), "--help"], tmp_path)
    assert not comparison.profiles
    assert "./out:/out" in comparison.volumes
    assert comparison.command[-1].startswith("/out/")


def test_every_key_in_the_compose_file_is_known_to_the_servers(stack: Stack) -> None:
    for log in ("broker.log", "proxy.log"):
        text = (stack.data / log).read_text(encoding="utf-8")
        assert "warning" not in text, text


def metric_names(url: str) -> set[str]:
    with urllib.request.urlopen(f"{url}/metrics/", timeout=60) as answer:
        return names_in(answer.read().decode())


def names_in(text: str) -> set[str]:
    return {re.split(r"[{ ]", line)[0] for line in text.splitlines() if not line.startswith("#")}


def expressions() -> list[tuple[str, str]]:
    """Return every expression of alerts and dashboards, with its place."""
    rules = yaml.safe_load((DEPLOY / "alerts.yml").read_text(encoding="utf-8"))
    found = [
        (f"alert {rule['alert']}", rule["expr"]) for g in rules["groups"] for rule in g["rules"]
    ]
    for path in DASHBOARDS:
        dashboard = json.loads(path.read_text(encoding="utf-8"))
        for panel in dashboard["panels"]:
            found += [(panel["title"], each["expr"]) for each in panel.get("targets", [])]
        source, *variables = dashboard["templating"]["list"]
        assert (source["name"], source["type"]) == ("datasource", "datasource")
        found += [("variable", each["query"]["query"]) for each in variables]
    return found


@pytest.mark.usefixtures("load")
def test_every_metric_in_alerts_and_dashboards_is_exported(stack: Stack) -> None:
    exposed = metric_names(stack.broker.web_url) | metric_names(stack.proxy.web_url)
    exposed |= names_of_a_run()
    named = {(name, place) for place, text in expressions() for name in METRIC_NAME.findall(text)}
    assert len({name for name, _ in named}) > TOPIC_LIST_SAMPLES
    assert not sorted((name, place) for name, place in named if name not in exposed)


def test_the_dashboards_show_every_metric_of_watches_caches_and_stored_messages(stack) -> None:
    # The number of cached results says less than their bytes.
    left_out = {"floodgate_listing_cache_entries"}
    left_out |= {"floodgate_message_store_entries", "floodgate_message_store_data_bytes"}
    prefixes = (
        "floodgate_topic_watch",
        "floodgate_listing_cache",
        "floodgate_snapshot_cache",
        "floodgate_message_store",
    )
    exposed = {name for name in metric_names(stack.broker.web_url) if name.startswith(prefixes)}
    panels = [text for place, text in expressions() if not place.startswith("alert ")]
    shown = {name for text in panels for name in METRIC_NAME.findall(text)}
    assert exposed - shown == left_out


def names_of_a_run() -> set[str]:
    """Return the names of loadgen's samples during a run."""
    collector = RunCollector("run", "scenario")
    collector.totals = Totals(
        ended=Counter({"all list answered": 1}),
        clients=Counter({"all back": 1}),
        latencies={"all": [1] * BUCKETS},
    )
    registry = CollectorRegistry(auto_describe=False)
    registry.register(collector)
    return names_in(generate_latest(registry).decode())


def test_the_dashboard_of_topic_lists_shows_every_metric_of_a_run_of_loadgen() -> None:
    # Dashboards show a histogram's buckets.
    samples = names_of_a_run() - {"loadgen_response_seconds_count", "loadgen_response_seconds_sum"}
    named = [(place, text) for place, text in expressions() if "loadgen_" in text]
    assert {name for _, text in named for name in METRIC_NAME.findall(text)} == samples
    for place, text in named:
        chosen = text.count('{run=~"$run", scenario=~"$scenario"')
        assert place == "variable" or chosen == len(METRIC_NAME.findall(text)), text


# --- Prometheus ------------------------------------------------------------------------------


@needs_promtool
@pytest.mark.parametrize(
    "arguments",
    [
        ["check", "config", "prometheus.yml"],
        ["check", "config", "prometheus-local.yml"],
        ["check", "rules", "alerts.yml"],
    ],
    ids=" ".join,
)
def test_promtool_accepts_configuration_and_rules(arguments: list[str]) -> None:
    done = subprocess.run(
        ["promtool", *arguments], cwd=DEPLOY, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@needs_promtool
@pytest.mark.parametrize("role", ["broker", "proxy"])
def test_promtool_complains_only_of_metric_names_of_pulsar(stack: Stack, role: str) -> None:
    url = {"broker": stack.broker, "proxy": stack.proxy}[role].web_url
    with urllib.request.urlopen(f"{url}/metrics/", timeout=60) as answer:
        text = answer.read()
    done = subprocess.run(
        ["promtool", "check", "metrics"], input=text, capture_output=True, check=False
    )
    # Milliseconds in names, and gauges ending in _count, are Pulsar's own
    complaints = (done.stdout + done.stderr).decode().splitlines()
    own = [line for line in complaints if not line.startswith("pulsar_")]
    assert own == []
    assert [line for line in complaints if "no help text" in line] == []


@needs_prometheus
@pytest.mark.parametrize(
    ("configuration", "cluster", "broker", "proxy"),
    [
        ("prometheus.yml", "floodgate", "broker:8080", "proxy:8080"),
        ("prometheus-local.yml", "standalone", "127.0.0.1:8080", "127.0.0.1:8081"),
    ],
)
def test_a_real_prometheus_scrapes_the_samples_of_broker_and_proxy(
    stack: Stack, tmp_path: Path, configuration: str, cluster: str, broker: str, proxy: str
) -> None:
    jobs = ("broker", "proxy")
    samples = 'count by (job) ({__name__=~"pulsar_(broker|proxy)_topic_list_.*"})'
    command = COMPOSE.services["prometheus"].command
    targets = {broker: stack.broker.web_url, proxy: stack.proxy.web_url}
    with running_prometheus(command, targets, tmp_path, configuration) as url:
        # Public dashboards use this label; the server's own label stays in the samples.
        up = asked_until(url, f'up{{cluster="{cluster}"}}', dict.fromkeys(jobs, 1.0))
        own = 'group by (job) ({__name__="process_open_fds", cluster="floodgate"})'
        clusters = asked_until(url, own, dict.fromkeys(jobs, 1.0))
        counts = asked_until(url, samples, dict.fromkeys(jobs, float(TOPIC_LIST_SAMPLES)))
        with urllib.request.urlopen(f"{url}/api/v1/rules", timeout=60) as answer:
            rules = json.load(answer)["data"]["groups"]
    assert up == clusters == dict.fromkeys(jobs, 1.0)
    assert counts == dict.fromkeys(jobs, float(TOPIC_LIST_SAMPLES))
    assert {rule["health"] for group in rules for rule in group["rules"]} <= {"ok", "unknown"}


@needs_prometheus
@pytest.mark.usefixtures("load")
def test_a_real_prometheus_sees_messages_go_through_the_broker(stack: Stack, tmp_path) -> None:
    command = COMPOSE.services["prometheus"].command
    targets = {"broker:8080": stack.broker.web_url, "proxy:8080": stack.proxy.web_url}
    topic = '{topic="persistent://public/default/orders"}'
    grows = f"sum by (job) (delta(pulsar_in_messages_total{topic}[5s])) > bool 0"
    backlog = f"sum by (job) (pulsar_subscription_back_log{topic}) > bool 0"
    with running_prometheus(command, targets, tmp_path) as url:
        answers = [asked_until(url, one, {"broker": 1.0}) for one in (grows, backlog)]
    assert answers == [{"broker": 1.0}] * 2
