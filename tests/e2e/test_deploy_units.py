"""systemd units and Kubernetes manifests, checked without systemd and Kubernetes."""

import configparser
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from broker.configuration.config import BrokerConfig
from broker.configuration.config import known_keys as broker_keys
from proxy.config import ProxyConfig
from proxy.config import known_keys as proxy_keys
from server.authentication.requests import OPEN_PATHS
from server.command_line import properties_of
from server.configuration.file import parse_properties
from server.seeing.page import STATUS_PATH
from tests.support.processes.server_process import REPOSITORY

SYSTEMD = REPOSITORY / "deploy" / "systemd"
KUBERNETES = REPOSITORY / "deploy" / "kubernetes"
SECURE = REPOSITORY / "deploy" / "secure"
KEYS = yaml.safe_load((REPOSITORY / "deploy" / "keys.yaml").read_text(encoding="utf-8"))
"""By place and role; see the file."""
BESIDE_TLS = {"bindAddress", "advertisedAddress"}
"""Keys that a unit offers, too."""
KUBERNETES_VERSION = "1.30"
EXPOSURE = 30
ROLES = ("broker", "proxy")
WORKLOADS = ("Deployment", "StatefulSet")

needs_systemd = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None,
    reason="systemd-analyze is not installed (Debian: apt-get install systemd).",
)


def manifests() -> Iterator[tuple[str, dict[str, Any]]]:
    for path in sorted(KUBERNETES.glob("*.yaml")):
        for document in yaml.safe_load_all(path.read_text(encoding="utf-8")):
            yield f"{path.name}: {document['kind']}", document


def of_kind(*kinds: str) -> list[dict[str, Any]]:
    return [document for _, document in manifests() if document["kind"] in kinds]


def pod(role: str) -> dict[str, Any]:
    (workload,) = (w for w in of_kind(*WORKLOADS) if w["metadata"]["name"] == f"floodgate-{role}")
    return workload["spec"]["template"]["spec"]


def drain_seconds(role: str, text: str, folder: Path) -> float:
    """Return a configuration's drain time; no key may be without effect."""
    file = folder / f"{role}.conf"
    file.write_text(with_store(text, folder), encoding="utf-8")
    config: BrokerConfig | ProxyConfig
    if role == "broker":
        config = BrokerConfig.from_properties(properties_of(file, (), broker_keys()))
        seconds = config.broker_shutdown_timeout_seconds
    else:
        config = ProxyConfig.from_properties(properties_of(file, (), proxy_keys()))
        seconds = config.drain_seconds
    check_notices(config)
    return seconds


def with_store(text: str, folder: Path) -> str:
    """Return the configuration with a file for the store's URL."""
    (folder / "url").write_text("postgresql://u:p@h/d", encoding="utf-8")
    return text.replace("/secrets/metadata-store-url", str(folder / "url"))


def check_notices(config: BrokerConfig | ProxyConfig) -> None:
    warnings = [notice.sentence for notice in config.notices if notice.level == "warning"]
    assert [sentence for sentence in warnings if "authentication is off" not in sentence] == []


def configurations(role: str) -> list[str]:
    """Return a role's configurations for systemd and Kubernetes."""
    maps = {m["metadata"]["name"]: m["data"] for m in of_kind("ConfigMap")}
    text = (SYSTEMD / f"{role}.conf").read_text(encoding="utf-8")
    return [text, maps[f"floodgate-{role}"][f"{role}.conf"]]


@pytest.mark.parametrize("role", ROLES)
def test_commented_keys_are_complete_for_tls_and_tokens(role: str, tmp_path: Path) -> None:
    for text in configurations(role):
        offered = re.sub(r"^#(?=[a-z]\w+=)", "", text, flags=re.MULTILINE)
        keys = parse_properties(with_store(offered, tmp_path), role)
        config: BrokerConfig | ProxyConfig
        if role == "broker":
            config = BrokerConfig.from_properties(keys)
        else:
            config = ProxyConfig.from_properties(keys)
            assert config.broker_tls is not None
            assert config.broker_credentials is not None
        check_notices(config)
        assert config.tls is not None
        assert config.web_tls is not None
        assert config.authentication is not None


def settings(text: str, *, commented: bool) -> dict[str, str]:
    """Return a configuration's keys, or those offered as comments."""
    start = "#" if commented else ""
    return dict(re.findall(rf"^{start}([a-z]\w+)=(.*)$", text, re.MULTILINE))


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("place", KEYS["places"])
def test_every_deployment_has_the_keys_of_the_shared_table(place: str, role: str) -> None:
    systemd, kubernetes = configurations(role)
    secure = (SECURE / f"{role}.conf").read_text(encoding="utf-8")
    text = {"compose": secure, "systemd": systemd, "kubernetes": kubernetes}[place]
    here = {name: path.replace("ROLE", role) for name, path in KEYS["places"][place].items()}
    always, secured = (
        {key: value.format_map(here) for key, value in KEYS[role][part].items()}
        for part in ("always", "tls_and_tokens")
    )
    plain = settings(text, commented=False)
    assert always.items() <= plain.items()
    offered = plain if place == "compose" else settings(text, commented=True)
    assert secured.items() <= offered.items()
    assert place == "compose" or offered.keys() - secured.keys() <= BESIDE_TLS


# --- Kubernetes ------------------------------------------------------------------------------


def problems(document: dict[str, Any]) -> list[str]:
    try:
        kubernetes_validate.validate(document, KUBERNETES_VERSION, strict=True)
    except kubernetes_validate.ValidationError as error:
        return [error.message]
    return []


def test_every_manifest_conforms_to_the_schemas_of_kubernetes() -> None:
    for place, document in manifests():
        assert problems(document) == [], place


@pytest.mark.parametrize("key", ["replica", "replicas"])
def test_the_schemas_refuse_an_unknown_key_and_a_value_of_the_wrong_type(key: str) -> None:
    (document,) = of_kind("Deployment")
    document["spec"][key] = "two"
    assert problems(document)


@pytest.mark.parametrize("role", ROLES)
def test_the_grace_period_of_a_pod_exceeds_its_drain_timeout(role: str, tmp_path: Path) -> None:
    configs = {m["metadata"]["name"]: m["data"] for m in of_kind("ConfigMap")}
    (container,) = pod(role)["containers"]
    drain = drain_seconds(role, configs[f"floodgate-{role}"][f"{role}.conf"], tmp_path)
    _, waits = container["lifecycle"]["preStop"]["exec"]["command"]
    assert pod(role)["terminationGracePeriodSeconds"] >= int(waits) + drain + 10


@pytest.mark.parametrize("role", ROLES)
def test_containers_have_no_capabilities_and_a_read_only_file_system(role: str) -> None:
    assert pod(role)["securityContext"]["runAsNonRoot"]
    for container in pod(role)["containers"] + pod(role).get("initContainers", []):
        context = container["securityContext"]
        assert context["readOnlyRootFilesystem"]
        assert not context["allowPrivilegeEscalation"]
        assert context["capabilities"] == {"drop": ["ALL"]}
        assert container["resources"]["limits"]["memory"]


@pytest.mark.parametrize("role", ROLES)
def test_mounted_volumes_and_probed_ports_of_a_container_are_declared(role: str) -> None:
    (workload,) = (w for w in of_kind(*WORKLOADS) if w["metadata"]["name"] == f"floodgate-{role}")
    claims = workload["spec"].get("volumeClaimTemplates", [])
    volumes = {v["name"] for v in pod(role)["volumes"]} | {c["metadata"]["name"] for c in claims}
    for container in pod(role)["containers"] + pod(role).get("initContainers", []):
        ports = {port["name"] for port in container.get("ports", [])}
        probes = [each for name, each in container.items() if name.endswith("Probe")]
        asked = {next(v["port"] for v in p.values() if isinstance(v, dict)) for p in probes}
        assert {mount["name"] for mount in container["volumeMounts"]} <= volumes
        assert asked <= ports


@pytest.mark.parametrize("role", ROLES)
def test_probes_need_no_credentials_and_liveness_does_not_use_the_status_path(role: str) -> None:
    (container,) = pod(role)["containers"]
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    (configured,) = (m for m in of_kind("ConfigMap") if m["metadata"]["name"].endswith(role))
    asked = {name: each["httpGet"] for name, each in container.items() if name.endswith("Probe")}
    _, _, file = configured["data"][f"{role}.conf"].partition("statusFilePath=")
    assert {one["path"] for one in asked.values()} <= set(OPEN_PATHS)
    assert asked["livenessProbe"]["path"] != STATUS_PATH
    assert asked["readinessProbe"]["path"] == asked["startupProbe"]["path"] == STATUS_PATH
    assert file.splitlines()[0] == f"{mounts['config']}/{role}.conf"


@pytest.mark.parametrize("role", ROLES)
def test_services_and_disruption_budgets_select_the_pods(role: str) -> None:
    name = f"floodgate-{role}"
    (workload,) = (w for w in of_kind(*WORKLOADS) if w["metadata"]["name"] == name)
    labels = workload["spec"]["template"]["metadata"]["labels"]
    services = [s["spec"]["selector"] for s in of_kind("Service") if s["metadata"]["name"] == name]
    budgets = [
        b["spec"]["selector"]["matchLabels"]
        for b in of_kind("PodDisruptionBudget")
        if b["metadata"]["name"] == name
    ]
    assert (services, budgets) == ([labels], [labels])
    assert workload["spec"]["selector"]["matchLabels"] == labels


@pytest.mark.parametrize("role", ROLES)
def test_a_network_policy_limits_ingress_and_egress_of_the_pods(role: str) -> None:
    name = f"floodgate-{role}"
    (workload,) = (w for w in of_kind(*WORKLOADS) if w["metadata"]["name"] == name)
    (policy,) = (p["spec"] for p in of_kind("NetworkPolicy") if p["metadata"]["name"] == name)
    assert policy["podSelector"] == workload["spec"]["selector"]
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    (container,) = pod(role)["containers"]
    named = {port["name"] for port in container["ports"]}
    taken = [rule["ports"] for rule in policy["ingress"]]
    assert {port["port"] for ports in taken for port in ports} == named
    assert all(rule["from"] for rule in policy["ingress"])


# --- systemd ---------------------------------------------------------------------------------


def unit(role: str) -> str:
    return (SYSTEMD / f"floodgate-{role}.service").read_text(encoding="utf-8")


def on_this_machine(role: str, folder: Path) -> Path:
    """Return the unit with a local command."""
    command = folder / f"floodgate-{role}"
    command.write_text("#!/bin/sh\n", encoding="utf-8")
    command.chmod(0o755)
    file = folder / f"floodgate-{role}.service"
    file.write_text(unit(role).replace("/opt/floodgate/bin", str(folder)), encoding="utf-8")
    return file


@needs_systemd
@pytest.mark.parametrize("role", ROLES)
def test_systemd_accepts_the_units(role: str, tmp_path: Path) -> None:
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(on_this_machine(role, tmp_path))],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


@needs_systemd
@pytest.mark.parametrize("role", ROLES)
def test_the_units_stay_below_the_exposure_bound_of_systemd(role: str, tmp_path: Path) -> None:
    command = ["systemd-analyze", "security", "--offline=true", f"--threshold={EXPOSURE}"]
    done = subprocess.run(
        [*command, "--no-pager", str(on_this_machine(role, tmp_path))],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("role", ROLES)
def test_timeout_stop_sec_of_a_unit_exceeds_its_drain_timeout(role: str, tmp_path) -> None:
    drain = drain_seconds(role, (SYSTEMD / f"{role}.conf").read_text(encoding="utf-8"), tmp_path)
    (grace,) = re.findall(r"^TimeoutStopSec=(\d+)s$", unit(role), re.MULTILINE)
    assert int(grace) >= drain + 10


@pytest.mark.parametrize("role", ROLES)
def test_a_unit_uses_only_its_own_state_directory(role: str) -> None:
    parser = configparser.RawConfigParser(strict=False, interpolation=None)
    parser.read_string(unit(role))
    state = f"/var/lib/{parser['Service']['StateDirectory']}"
    text = (SYSTEMD / f"{role}.conf").read_text(encoding="utf-8")
    assert parser["Service"]["WorkingDirectory"] == state
    assert all(found.startswith(state) for found in re.findall(r"/var/[\w/.-]+", text))
