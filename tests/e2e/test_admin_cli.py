"""``floodgate-admin`` against a broker: each call sees the changes of earlier calls."""

import io
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from client.admin.commands.command_line import main
from client.admin.commands.policies import POLICIES
from tests.support.processes.server_process import REPOSITORY, ServerProcess, running_server

pytestmark = pytest.mark.processes

SETTINGS = {
    "brokerServicePort": "0",
    "webServicePort": "0",
    "bindAddress": "127.0.0.1",
    "pulsarResourcesExtendedClassName": "broker.property_index:PropertyIndex",
    "enableBrokerTopicListWatcher": "false",
}


@pytest.fixture(scope="module")
def imports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("imports")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory, imports: Path) -> Iterator[ServerProcess]:
    settings = SETTINGS | {"floodgateImportDirectory": str(imports)}
    command = ["-m", "broker", *(f"--set={key}={value}" for key, value in settings.items())]
    with running_server(command, tmp_path_factory.mktemp("broker") / "log") as running:
        yield running


@pytest.fixture
def namespace(broker: ServerProcess, request: pytest.FixtureRequest) -> str:
    """Return a namespace for a single test."""
    name = f"{request.node.name.partition('[')[0][:40]}/n"
    asked(broker, "tenants", "create", name.partition("/")[0])
    asked(broker, "namespaces", "create", name)
    return name


def run(broker: ServerProcess, *words: str) -> tuple[int, str, str]:
    """Run the command line in this process, which saves a second per call."""
    out, err = io.StringIO(), io.StringIO()
    before, sys.argv = sys.argv, ["floodgate-admin", "--admin-url", broker.web_url, *words]
    try:
        with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as ended:
            main()
    finally:
        sys.argv = before
    return int(ended.value.code or 0), out.getvalue(), err.getvalue()


def asked(broker: ServerProcess, *words: str) -> list[str]:
    status, out, err = run(broker, *words)
    assert (status, err) == (0, "")
    return out.splitlines()


def test_created_topics_are_listed_until_they_are_deleted(
    broker: ServerProcess, namespace: str
) -> None:
    asked(broker, "topics", "create", f"{namespace}/plain 1/2".replace("1/2", "½ + %"))
    asked(broker, "topics", "create", f"non-persistent://{namespace}/live")
    asked(broker, "topics", "create-partitioned-topic", f"{namespace}/parted", "-p", "2")
    assert asked(broker, "topics", "list", namespace) == [
        f"persistent://{namespace}/parted-partition-0",
        f"persistent://{namespace}/parted-partition-1",
        f"persistent://{namespace}/plain ½ + %",
        f"non-persistent://{namespace}/live",
    ]
    asked(broker, "topics", "update-partitioned-topic", f"{namespace}/parted", "-p", "3")
    asked(broker, "topics", "delete", f"{namespace}/plain ½ + %")
    listed = asked(broker, "topics", "list", namespace, "-td", "persistent")
    assert listed == [f"persistent://{namespace}/parted-partition-{index}" for index in range(3)]
    asked(broker, "topics", "delete-partitioned-topic", f"{namespace}/parted")
    asked(broker, "topics", "delete", f"non-persistent://{namespace}/live")
    assert asked(broker, "topics", "list", namespace) == []
    assert asked(broker, "namespaces", "delete", namespace) == [f"Deleted {namespace}."]


def test_topics_are_listed_by_their_properties(broker, namespace) -> None:
    asked(broker, "topics", "create", f"{namespace}/red", "-p", "team=red,tier=1")
    asked(
        broker, "topics", "create-partitioned-topic", f"{namespace}/blue", "-p", "1", "-m", "tier=1"
    )
    red, blue = f"persistent://{namespace}/red", f"persistent://{namespace}/blue-partition-0"
    by = ["topics", "list", namespace, "-p"]
    assert asked(broker, *by, "tier=1") == [blue, red]
    assert asked(broker, *by, "tier=1,team=red") == [red]
    asked(broker, "topics", "update-properties", f"{namespace}/red", "-p", "tier=2")
    asked(broker, "topics", "remove-properties", f"{namespace}/red", "-k", "team")
    assert asked(broker, *by, "tier=1") == [blue]
    properties = json.loads(
        run(broker, "topics", "get-properties", f"{namespace}/red", "--json")[1]
    )
    assert properties == {"tier": "2"}


def test_each_topic_is_listed_in_exactly_one_bundle_of_its_namespace(broker, namespace) -> None:
    asked(broker, "topics", "create-partitioned-topic", f"{namespace}/parted", "-p", "32")
    every = asked(broker, "topics", "list", namespace, "-td", "persistent")
    bundles = asked(broker, "namespaces", "bundles", namespace)
    divided = [
        asked(broker, "topics", "list", namespace, "-td", "persistent", "-b", bundle)
        for bundle in bundles
    ]
    assert len(every) == 32
    assert sorted(name for part in divided for name in part) == sorted(every)
    place = asked(broker, "topics", "bundle-range", every[0])
    assert every[0] in divided[bundles.index(place[0])]


def test_a_dynamic_value_applies_until_it_is_deleted(broker: ServerProcess) -> None:
    key = "maxTopicListInFlightHeapMemSizeMB"
    asked(broker, "brokers", "update-dynamic-config", "--config", key, "--value", "7")
    assert asked(broker, "brokers", "get-all-dynamic-config") == [f"{key}  7"]
    limiter = "\n".join(asked(broker, "floodgate", "limiter"))
    assert f"{7 * 1024 * 1024:,} held" in limiter
    status, _, err = run(broker, "brokers", "update-dynamic-config", "-c", key, "-v", "many")
    assert (status, "'many'" in err) == (1, True)
    asked(broker, "brokers", "delete-dynamic-config", "-c", key)
    assert asked(broker, "brokers", "get-all-dynamic-config") == []


def test_topics_are_imported_while_the_broker_runs(broker: ServerProcess, imports: Path) -> None:
    (imports / "topics.txt").write_text(
        "".join(f"persistent://imported/n/t-{number}\n" for number in range(2_000))
    )
    done = asked(broker, "floodgate", "import", str(imports / "topics.txt"))
    assert done[0].startswith("Imported 2,000 topics of 1 namespace in ")
    assert len(asked(broker, "topics", "list", "imported/n")) == 2_000


def test_skip_invalid_imports_only_the_valid_topics(broker: ServerProcess, imports: Path) -> None:
    (imports / "some.txt").write_text("persistent://imported/some/t\nbroken\n# comment\n")
    done = asked(broker, "floodgate", "import", "--skip-invalid", str(imports / "some.txt"))
    assert done[0].startswith("Imported 1 topic of 1 namespace in ")
    assert done[1:] == ["Left out 1 invalid topic."]


def test_an_output_pipe_that_closes_early_is_no_error(broker: ServerProcess, imports: Path) -> None:
    names = "".join(f"persistent://piped/n/t-{number:060}\n" for number in range(5_000))
    (imports / "piped.txt").write_text(names)
    asked(broker, "floodgate", "import", str(imports / "piped.txt"))
    done = subprocess.run(
        ["bash", "-c", '"$0" -m client.admin topics list piped/n | head -2; echo ${PIPESTATUS[0]}',
         sys.executable],
        env={"FLOODGATE_ADMIN_URL": broker.web_url, "PATH": "/usr/bin:/bin"},
        capture_output=True, text=True, cwd=REPOSITORY,
    )  # fmt: skip
    assert done.stdout == "".join(names.splitlines(keepends=True)[:2]) + "0\n"
    assert done.stderr == ""


def test_a_healthy_broker_passes_the_health_check_and_is_listed(broker: ServerProcess) -> None:
    assert asked(broker, "brokers", "healthcheck") == ["ok"]
    cluster = asked(broker, "clusters", "list")
    assert asked(broker, "brokers", "list", cluster[0]) == [broker.web_url.removeprefix("http://")]
    assert asked(broker, "topics", "lookup", "any") == [broker.service_url]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("topics list nobody/n", "Namespace does not exist (HTTP 404)"),
        ("namespaces list nobody", "Tenant not found (HTTP 404)"),
        ("tenants create public", "Tenant already exist (HTTP 409)"),
        ("namespaces create nobody/n", "Tenant does not exist (HTTP 404)"),
        ("topics delete nobody/n/t", "(HTTP 404)"),
        ("floodgate import /etc", "does not lie in floodgateImportDirectory"),
    ],
)
def test_a_refusal_is_shown_with_the_reason_of_the_broker(words, reason, broker) -> None:
    status, out, err = run(broker, *words.split())
    assert (status, out) == (1, "")
    assert err.startswith("floodgate-admin: cannot ")
    assert reason in err
    assert err.count("\n") == 1


def test_a_policy_that_is_set_is_shown_until_it_is_removed(broker, namespace) -> None:
    topic = f"{namespace}/t"
    asked(broker, "topics", "create", topic)
    for group, thing in (("namespaces", namespace), ("topicPolicies", topic)):
        of_topics = group == "topicPolicies"
        rows = [row for row in POLICIES if row.end(topics=of_topics)]
        assert len(rows) > 20
        for row in rows:
            asked(broker, group, f"set-{row.name}", thing, *row.example.split())
            shown = asked(broker, group, f"get-{row.name}", thing)
            assert shown, row.name
            if row.removable[of_topics]:
                asked(broker, group, f"remove-{row.name}", thing)
                assert asked(broker, group, f"get-{row.name}", thing) != shown, row.name


def test_a_backlog_quota_is_shown_until_it_is_removed(broker, namespace) -> None:
    topic = f"{namespace}/t"
    asked(broker, "topics", "create", topic)
    for group, thing in (("namespaces", namespace), ("topicPolicies", topic)):
        asked(broker, group, "set-backlog-quota", thing, "-l", "10M", "-p", "producer_exception")
        shown = json.loads(run(broker, group, "get-backlog-quotas", thing, "--json")[1])
        assert shown["destination_storage"]["limitSize"] == 10 * 2**20
        asked(broker, group, "remove-backlog-quota", thing)
        assert json.loads(run(broker, group, "get-backlog-quotas", thing, "--json")[1]) == {}


def test_applied_shows_the_effective_policy_of_the_namespace(broker, namespace) -> None:
    topic = f"{namespace}/t"
    asked(broker, "topics", "create", topic)
    asked(broker, "namespaces", "set-message-ttl", namespace, "-t", "1h")
    assert asked(broker, "topicPolicies", "get-message-ttl", topic) == []
    assert asked(broker, "topicPolicies", "get-message-ttl", topic, "--applied") == ["3600"]


def test_a_subscription_is_changed_shown_and_deleted(broker: ServerProcess, namespace: str) -> None:
    topic = f"{namespace}/t"
    asked(broker, "topics", "create-subscription", topic, "-s", "s", "-m", "earliest")
    assert asked(broker, "topics", "subscriptions", topic) == ["s"]
    asked(broker, "topics", "update-subscription-properties", topic, "-s", "s", "-p", "a=b")
    assert asked(broker, "topics", "get-subscription-properties", topic, "-s", "s") == ["a  b"]
    for words in (
        ("skip", "-s", "s", "-n", "1"),
        ("clear-backlog", "-s", "s"),
        ("reset-cursor", "-s", "s", "-t", "1h"),
        ("reset-cursor", "-s", "s", "-m", "earliest"),
        ("truncate",),
        ("trim-topic",),
        ("unload",),
    ):
        asked(broker, "topics", words[0], topic, *words[1:])
    for verb in ("stats", "stats-internal", "info-internal", "last-message-id"):
        assert asked(broker, "topics", verb, topic)
    status, _, err = run(broker, "topics", "peek-messages", topic, "-s", "s")
    assert (status, "Message not found (HTTP 404)" in err) == (1, True)
    status, _, err = run(broker, "topics", "reset-cursor", topic, "-s", "s")
    assert (status, "give either -t or -m" in err) == (2, True)
    assert asked(broker, "topics", "terminate", topic)
    asked(broker, "namespaces", "unsubscribe", namespace, "-s", "s")
    assert asked(broker, "topics", "subscriptions", topic) == []


def test_permissions_are_granted_shown_and_revoked(broker: ServerProcess, namespace: str) -> None:
    def shown(*words: str) -> object:
        return json.loads("".join(asked(broker, *words, "--json")))

    topic = f"{namespace}/eu"
    asked(broker, "topics", "create", topic)
    for group, subject in (("namespaces", namespace), ("topics", topic)):
        role = f"of-{group}"
        actions = ("--actions", "produce,consume")
        asked(broker, group, "grant-permission", subject, "--role", role, *actions)
        granted = shown(group, "permissions", subject)
        assert isinstance(granted, dict)
        assert granted[role] == ["produce", "consume"]
        asked(broker, group, "revoke-permission", subject, "--role", role)
        assert shown(group, "permissions", subject) == {}
    of_subscription = (namespace, "-s", "billing")
    asked(broker, "namespaces", "grant-subscription-permission", *of_subscription, "--roles", "a,b")
    asked(broker, "namespaces", "revoke-subscription-permission", *of_subscription, "--role", "a")
    assert shown("namespaces", "subscription-permission", namespace) == {"billing": ["b"]}
