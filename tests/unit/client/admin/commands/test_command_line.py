"""``floodgate-admin``: requests, output and errors."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import shlex
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import AsyncMock

import pytest
from typer.main import get_command

from client.admin.commands.command_line import app, main
from client.admin.commands.output import MAX_KEY_COLUMNS
from client.admin.rest import AdminRest
from proto.version import VERSION
from tests.support.peers.stand_in_admin import DONE, Given, given, refused, stand_in_admin

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from typing import TextIO

    from tests.support.peers.stand_in_admin import StandInAdmin

    Run = Callable[..., tuple[int, str, str]]

LISTING = "GET /admin/v2/{}/acme/orders"
PERSISTENT, NON_PERSISTENT = LISTING.format("persistent"), LISTING.format("non-persistent")
TOPIC = "/admin/v2/persistent/acme/orders/eu"


@contextlib.contextmanager
def in_a_thread() -> Iterator[StandInAdmin]:
    """Run a stand-in server beside a command line with a separate event loop."""
    started, stop = threading.Event(), asyncio.Event()
    running: list[tuple[asyncio.AbstractEventLoop, StandInAdmin]] = []

    async def serve() -> None:
        async with stand_in_admin() as stand_in:
            running.append((asyncio.get_running_loop(), stand_in))
            started.set()
            await stop.wait()

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    assert started.wait(10)
    loop, stand_in = running[0]
    try:
        yield stand_in
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandInAdmin]:
    with in_a_thread() as running:
        monkeypatch.setenv("FLOODGATE_ADMIN_URL", running.url)
        yield running


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.setenv("COLUMNS", "200")

    def run_line(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["floodgate-admin", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        return int(ended.value.code or 0), out, err

    return run_line


# -- requests -------------------------------------------------------------------------------------

ASKED = {
    "topics create acme/orders/eu -p team=red,tier=1":
        (f"PUT {TOPIC}", '{"team": "red", "tier": "1"}'),
    "topics create acme/orders/eu -m team=red --metadata tier=1":
        (f"PUT {TOPIC}", '{"team": "red", "tier": "1"}'),
    "topics delete acme/orders/eu -f": (f"DELETE {TOPIC}?force=true", ""),
    "topics create-partitioned-topic acme/orders/eu -p 4": (f"PUT {TOPIC}/partitions", "4"),
    "topics create-partitioned-topic acme/orders/eu -p 4 -m a=b":
        (f"PUT {TOPIC}/partitions", '{"partitions": 4, "properties": {"a": "b"}}'),
    "topics update-partitioned-topic acme/orders/eu --partitions 8 -ulo -f":
        (f"POST {TOPIC}/partitions?updateLocalTopicOnly=true&force=true", "8"),
    "topics delete-partitioned-topic acme/orders/eu": (f"DELETE {TOPIC}/partitions", ""),
    "topics update-properties acme/orders/eu -p a=1 -p b=2":
        (f"PUT {TOPIC}/properties", '{"a": "1", "b": "2"}'),
    "topics remove-properties acme/orders/eu -k a": (f"DELETE {TOPIC}/properties?key=a", ""),
    "namespaces create acme/orders -b 8 -c a,b": (
        "PUT /admin/v2/namespaces/acme/orders",
        '{"bundles": {"numBundles": 8}, "replication_clusters": ["a", "b"]}',
    ),
    "namespaces delete acme/orders -f": ("DELETE /admin/v2/namespaces/acme/orders?force=true", ""),
    "tenants create acme -r ann,bob -c one": (
        "PUT /admin/v2/tenants/acme",
        '{"adminRoles": ["ann", "bob"], "allowedClusters": ["one"]}',
    ),
    "tenants delete acme": ("DELETE /admin/v2/tenants/acme", ""),
    "brokers update-dynamic-config -c key -v 1": ("POST /admin/v2/brokers/configuration/key/1", ""),
    "brokers update-dynamic-config --config key --value 1":
        ("POST /admin/v2/brokers/configuration/key/1", ""),
    "brokers delete-dynamic-config --config key":
        ("DELETE /admin/v2/brokers/configuration/key", ""),
}  # fmt: skip


@pytest.mark.parametrize("line", ASKED)
def test_a_pulsar_admin_command_line_sends_the_same_request_as_pulsar_admin(
    line, stand_in, run
) -> None:
    asked, body = ASKED[line]
    stand_in.answers[asked] = DONE
    assert run(*line.split())[0] == 0
    assert (stand_in.asked[0].line, stand_in.asked[0].body) == (asked, body)


@pytest.mark.parametrize(
    ("words", "lines"),
    [
        ("", {PERSISTENT, NON_PERSISTENT}),
        ("-td persistent", {PERSISTENT}),
        ("--topic-domain non_persistent", {NON_PERSISTENT}),
        ("-td persistent -ist", {f"{PERSISTENT}?includeSystemTopic=true"}),
        ("-td persistent -b 0x0_0x1", {f"{PERSISTENT}?bundle=0x0_0x1"}),
        ("-td persistent -p a=1,b=2", {f"{PERSISTENT}?properties=a%3D1%2Cb%3D2"}),
        ("-td persistent --property a=1", {f"{PERSISTENT}?properties=a%3D1"}),
    ],
)
def test_the_options_of_a_topic_listing_select_domains_and_query_parameters(
    words, lines, stand_in, run
) -> None:
    stand_in.answers.update(dict.fromkeys(lines, given([])))
    assert run("topics", "list", "acme/orders", *words.split())[0] == 0
    assert set(stand_in.lines) == lines


# -- output ---------------------------------------------------------------------------------------


def test_listed_names_are_printed_one_per_line(stand_in: StandInAdmin, run: Run) -> None:
    stand_in.answers = {PERSISTENT: given(["p1", "p2"]), NON_PERSISTENT: given(["n1"])}
    assert run("topics", "list", "acme/orders") == (0, "p1\np2\nn1\n", "")


@pytest.mark.parametrize("names", [[], ["one"], ["one", "two", 'a"b\n']])
def test_listed_names_are_a_single_array_in_json(
    names: list[str], stand_in: StandInAdmin, run: Run
) -> None:
    stand_in.answers = {PERSISTENT: given(names), NON_PERSISTENT: given(names)}
    status, out, _ = run("topics", "list", "acme/orders", "--json")
    assert (status, json.loads(out)) == (0, names * 2)


def test_terminal_control_characters_in_a_name_are_escaped(
    stand_in: StandInAdmin, run: Run
) -> None:
    stand_in.answers["GET /admin/v2/tenants"] = given(["ok", "a\x1b[2Jb\nc"])
    assert run("tenants", "list")[1] == "ok\na\\x1b[2Jb\\nc\n"


def test_terminal_control_characters_in_a_refusal_are_escaped(
    stand_in: StandInAdmin, run: Run
) -> None:
    stand_in.answers["GET /admin/v2/tenants"] = refused(412, "no\x1b[2J")
    assert "no\\x1b[2J" in run("tenants", "list")[2]


def test_an_object_is_printed_as_two_aligned_columns(stand_in: StandInAdmin, run: Run) -> None:
    body = {"a": 1, "long": {"er": True, "list": ["x", "y"]}, "none": None, "empty": []}
    stand_in.answers["GET /admin/v2/tenants/acme"] = given(body)
    assert run("tenants", "get", "acme")[1] == (
        "a          1\nlong.er    true\nlong.list  x, y\nnone       -\nempty      -\n"
    )


def test_a_very_long_key_does_not_widen_the_key_column_beyond_its_limit(
    stand_in: StandInAdmin, run: Run
) -> None:
    long = "k" * 100
    stand_in.answers["GET /admin/v2/brokers/configuration/values"] = given({long: "1", "b": "2"})
    out = run("brokers", "get-all-dynamic-config")[1]
    assert out == f"b{' ' * (MAX_KEY_COLUMNS - 1)}  2\n{long}  1\n"


def test_unset_policies_are_omitted_from_text_output_but_not_from_json(stand_in, run) -> None:
    body = {"set": 1, "not_set": None}
    stand_in.answers["GET /admin/v2/namespaces/acme/orders"] = given(body)
    assert run("namespaces", "policies", "acme/orders")[1] == "set  1\n"
    assert json.loads(run("namespaces", "policies", "acme/orders", "--json")[1]) == body


def test_bundle_boundaries_are_printed_as_ranges_one_per_line(
    stand_in: StandInAdmin, run: Run
) -> None:
    body = {"boundaries": ["0x0", "0x8", "0xf"], "numBundles": 2}
    stand_in.answers["GET /admin/v2/namespaces/acme/orders/bundles"] = given(body)
    assert run("namespaces", "bundles", "acme/orders")[1] == "0x0_0x8\n0x8_0xf\n"


def test_clusters_list_marks_the_current_cluster(stand_in: StandInAdmin, run: Run) -> None:
    stand_in.answers["GET /admin/v2/clusters"] = given(["one", "two"])
    stand_in.answers["GET /admin/v2/brokers/configuration/runtime"] = given({"clusterName": "two"})
    assert run("clusters", "list", "-c")[1] == "one\ntwo(*)\n"


def test_a_change_is_confirmed_in_a_sentence_or_as_a_json_object(
    stand_in: StandInAdmin, run: Run
) -> None:
    stand_in.answers[f"PUT {TOPIC}"] = DONE
    assert run("topics", "create", "acme/orders/eu")[1] == "Created persistent://acme/orders/eu.\n"
    out = run("topics", "create", "acme/orders/eu", "--json")[1]
    assert json.loads(out) == {"created": "persistent://acme/orders/eu"}


@pytest.mark.parametrize(
    ("words", "path", "answer", "out", "value"),
    [
        ("brokers version", "/admin/v2/brokers/version", b"4.2.4", "4.2.4", {"version": "4.2.4"}),
        ("brokers healthcheck", "/admin/v2/brokers/health", b"ok", "ok", {"health": "ok"}),
        (
            "topics bundle-range acme/orders/eu",
            "/lookup/v2/topic/persistent/acme/orders/eu/bundle",
            b"0x0_0x8",
            "0x0_0x8",
            {"bundleRange": "0x0_0x8"},
        ),
        (
            "topics lookup acme/orders/eu",
            "/lookup/v2/topic/persistent/acme/orders/eu",
            b'{"brokerUrl":"pulsar://b:1"}',
            "pulsar://b:1",
            {"brokerUrl": "pulsar://b:1"},
        ),
    ],
)
def test_a_single_value_is_printed_bare_and_as_a_named_member_in_json(
    words: str, path: str, answer: bytes, out: str, value: object, stand_in: StandInAdmin, run: Run
) -> None:
    stand_in.answers[f"GET {path}"] = Given((answer,))
    assert run(*words.split())[1] == f"{out}\n"
    assert json.loads(run(*words.split(), "--json")[1]) == value


def test_the_limiter_is_printed_as_the_servers_table_or_its_json(
    stand_in: StandInAdmin, run: Run
) -> None:
    path = "GET /admin/v2/floodgate/limiter"
    stand_in.answers[f"{path}?format=table"] = Given((b"HEAP\n  0 of 1\n",))
    stand_in.answers[path] = given({"heap": 0})
    assert run("floodgate", "limiter")[1] == "HEAP\n  0 of 1\n"
    assert json.loads(run("floodgate", "limiter", "--json")[1]) == {"heap": 0}


def test_an_import_reports_the_numbers_of_topics_and_namespaces_and_its_duration(
    stand_in: StandInAdmin, run: Run
) -> None:
    body = {"topics": 12_345, "namespaces": 1, "seconds": 0.26}
    stand_in.answers["POST /admin/v2/floodgate/import"] = given(body)
    out = run("floodgate", "import", "/data")[1]
    assert out == "Imported 12,345 topics of 1 namespace in 0.3 s.\n"
    assert json.loads(stand_in.asked[0].body) == {"path": "/data"}


def test_the_request_command_sends_any_method_path_query_and_body_and_prints_the_answer(
    stand_in, run
) -> None:
    asked = f"POST {TOPIC}/a%20b?c=%C3%A9&d=1%2C2&e="
    stand_in.answers[asked] = given({"a": {"b": None}})
    stand_in.answers["GET /metrics"] = Given((b"up 1\n",))
    words = ("post", f"{TOPIC}/a b?c=é", "--query", "d=1,2", "--query", "e=", "--body", "null")
    assert run("request", *words) == (0, "a.b  -\n", "")
    assert (stand_in.asked[0].line, stand_in.asked[0].body) == (asked, "null")
    assert run("request", "GET", "/metrics")[1] == "up 1\n"
    assert run("request", "GET", "tenants/x")[2].startswith(
        "floodgate-admin: cannot GET /admin/v2/tenants/x: "
    )


DROP = {"on": ["SEND"], "do": {"action": "drop"}}
FAULTS = "/admin/v2/floodgate/faults"


@pytest.mark.parametrize("from_file", [False, True])
def test_a_fault_is_set_from_the_command_line_or_a_file(from_file, stand_in, run, tmp_path) -> None:
    stand_in.answers[f"POST {FAULTS}"] = given({"id": "fault-1", **DROP})
    file = tmp_path / "fault.json"
    file.write_text(json.dumps(DROP))
    words = f"@{file}" if from_file else json.dumps(DROP)
    assert run("faults", "set", words)[1] == "Set fault-1.\n"
    assert json.loads(stand_in.asked[0].body) == DROP


@pytest.mark.parametrize("words", ["", "[]", "{", "@/nowhere/at/all"])
def test_an_invalid_fault_is_refused_without_a_request(words, stand_in, run) -> None:
    status, out, err = run("faults", "set", words)
    assert (status, out, stand_in.asked) == (2, "", [])
    assert words[:10] in err


def test_faults_list_prints_one_line_per_fault(stand_in: StandInAdmin, run: Run) -> None:
    found = [{"id": f"fault-{one}", **DROP, "seen": 5, "fired": one} for one in (1, 2)]
    stand_in.answers[f"GET {FAULTS}"] = given(found)
    assert run("faults", "list")[1] == "".join(
        f"fault-{one}: acted {one} of 5 times: {json.dumps(DROP)}\n" for one in (1, 2)
    )
    assert json.loads(run("faults", "list", "--json")[1]) == found


def test_a_single_fault_or_all_faults_are_cleared_and_a_broker_is_reset(stand_in, run) -> None:
    for asked in (f"DELETE {FAULTS}/fault-1", f"DELETE {FAULTS}", "POST /admin/v2/floodgate/reset"):
        stand_in.answers[asked] = Given((b"",), status=204)
    assert run("faults", "clear", "fault-1")[1] == "Cleared fault-1.\n"
    assert run("faults", "clear")[1] == "Cleared all faults.\n"
    assert run("floodgate", "reset")[1] == "Reset the broker.\n"


def test_clearing_faults_with_an_empty_id_is_refused(stand_in: StandInAdmin, run: Run) -> None:
    status, _, err = run("faults", "clear", "")
    assert status == 2
    assert "'' names no fault: give its ID, or leave it out to clear all" in err


@pytest.mark.parametrize(
    "words", ["topics list acme/orders", "brokers get-runtime-config", "tenants list --json"]
)
def test_a_closed_pipe_ends_any_listing_with_status_0_and_no_error_output(
    words: str,
    stand_in: StandInAdmin,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    stand_in.answers = {
        "GET /admin/v2/brokers/configuration/runtime": given({"key": "value"}),
        "GET /admin/v2/tenants": given(["acme"]),
        PERSISTENT: given(["x" * 100] * 10_000),
        NON_PERSISTENT: given([]),
    }
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as nobody_reads:
        assert status_with(nobody_reads, words, monkeypatch) == 0
    assert capfd.readouterr().err == ""


def test_a_closed_standard_output_is_no_error(stand_in, monkeypatch, capfd) -> None:
    stand_in.answers["GET /admin/v2/tenants"] = given(["acme"])
    assert status_with(None, "tenants list", monkeypatch) == 0
    sys.stdout.close()
    assert capfd.readouterr().err == ""


def test_a_full_disk_is_reported_in_a_single_sentence(
    stand_in: StandInAdmin, monkeypatch, capfd
) -> None:
    stand_in.answers["GET /admin/v2/tenants"] = given(["acme"])
    with Path("/dev/full").open("w") as full:
        assert status_with(full, "tenants list", monkeypatch) == 1
    assert capfd.readouterr().err == (
        "floodgate-admin: cannot write to standard output: No space left on device\n"
    )


def status_with(output: TextIO | None, words: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """Return the exit status of a call writing to the given output."""
    monkeypatch.setattr(sys, "stdout", output)
    monkeypatch.setattr(sys, "argv", ["floodgate-admin", *words.split()])
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0)


# -- errors ---------------------------------------------------------------------------------------


def test_a_refusal_is_reported_with_the_servers_reason_and_a_hint(stand_in, run) -> None:
    stand_in.answers["PUT /admin/v2/namespaces/none/n"] = refused(404, "Tenant does not exist")
    assert run("namespaces", "create", "none/n") == (
        1,
        "",
        "floodgate-admin: cannot create the namespace none/n: Tenant does not exist (HTTP 404); "
        "`floodgate-admin tenants list` shows what there is\n",
    )


def test_a_refusal_in_json_has_status_and_reason(stand_in: StandInAdmin, run: Run) -> None:
    stand_in.answers["GET /admin/v2/tenants"] = refused(401, "who are you?")
    status, out, err = run("tenants", "list", "--json")
    assert (status, out) == (1, "")
    assert json.loads(err) == {
        "error": "cannot list the tenants: who are you? (HTTP 401)",
        "status": 401,
        "reason": "who are you?",
    }


def test_an_unreachable_server_is_reported_with_a_hint_at_the_admin_url_option(run: Run) -> None:
    assert run("--admin-url", "http://127.0.0.1:1", "tenants", "list") == (
        1,
        "",
        "floodgate-admin: cannot list the tenants: http://127.0.0.1:1 cannot be reached "
        "(Connection refused); start the broker, or name its web port with --admin-url or "
        "FLOODGATE_ADMIN_URL\n",
    )


def test_an_interrupted_listing_prints_its_received_names_and_then_an_error(stand_in, run) -> None:
    line = LISTING.format("persistent")
    stand_in.answers[line] = Given((b'["one","two"', b',"thr'), breaks=True)
    status, out, err = run("topics", "list", "acme/orders", "-td", "persistent")
    assert (status, out) == (1, "one\ntwo\n")
    assert "broke off" in err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("topics list acme", "'acme' is no namespace: write tenant/namespace"),
        ("topics create a/b", "Invalid short topic name 'a/b'"),
        ("topics list a/b -p team", "'team' is no key=value: write k1=v1,k2=v2"),
        ("topics create a/b/c -p =red", "'=red' is no key=value"),
        (
            "topics create-partitioned-topic a/b/c -p 0",
            "Input should be greater than or equal to 1",
        ),
        ("topics lst", "No such command 'lst'. Did you mean 'list'?"),
        ("request fetch tenants", "'fetch' should be one of: GET, PUT, POST, DELETE"),
        ("request GET tenants --query a", "'a' is no key=value"),
        ("request PUT tenants/a --body {", "'{' is no JSON: write it, or @FILE with it"),
        ("--request-timeout 0 tenants list", "Input should be greater than or equal to 1"),
    ],
)
def test_an_invalid_command_line_is_refused_without_a_request(
    words, sentence, stand_in, run
) -> None:
    status, out, err = run(*words.split())
    assert (status, out, stand_in.asked) == (2, "", [])
    assert sentence in err
    status, out, err = run("--json", *words.split())
    assert (status, out) == (2, "")
    assert sentence in json.loads(err)["error"]


@pytest.mark.parametrize(
    "words", ["topics list acme/{}", "topics create acme/orders/{}", "tenants create {}", "{}"]
)
def test_an_argument_that_is_not_utf_8_is_refused_and_shown_escaped(words, stand_in, run) -> None:
    given_words = words.format("a\udcff").split()
    status, out, err = run(*given_words)
    assert (status, out, stand_in.asked) == (2, "", [])
    assert err.endswith("a\\xff' is not UTF-8: write names and values in UTF-8\n")
    assert err.count("\n") == 1
    assert json.loads(run("--json", *given_words)[2])["error"] in err


def test_an_invalid_admin_url_is_a_usage_error(run: Run) -> None:
    status, _, err = run("--admin-url", "localhost:8080", "tenants", "list")
    assert status == 2
    assert "'localhost:8080' is no web address" in err


# -- options of the whole program -----------------------------------------------------------------


def test_admin_url_behind_the_verb_overrides_the_option_before_the_verb_and_the_environment(
    stand_in: StandInAdmin, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    stand_in.answers["GET /admin/v2/tenants"] = given(["here"])
    monkeypatch.setenv("FLOODGATE_ADMIN_URL", "http://127.0.0.1:1")
    here = ["--admin-url", stand_in.url]
    assert run("tenants", "list")[0] == 1
    assert run(*here, "tenants", "list")[1] == "here\n"
    assert run("--admin-url", "http://127.0.0.1:1", "tenants", "list", *here)[1] == "here\n"


def test_a_silent_server_is_abandoned_after_the_request_timeout(
    stand_in: StandInAdmin, run: Run
) -> None:
    stand_in.answers["GET /admin/v2/brokers/version"] = Given((b"4.", None))
    status, _, err = run("brokers", "version", "--request-timeout", "1")
    assert status == 1
    assert "sent nothing for 1 s" in err


@pytest.mark.parametrize("words", ["", "topics", "topics list"])
def test_the_help_of_every_command_level_has_examples(words: str, run: Run) -> None:
    status, out, _ = run(*words.split(), "--help")
    assert status == 0
    assert f"Examples:\n floodgate-admin {words}" in "\n".join(map(str.rstrip, out.splitlines()))


def every_command(command: Any) -> Iterator[Any]:
    yield command
    for each in getattr(command, "commands", {}).values():
        yield from every_command(each)


async def no_names(*_: object) -> AsyncIterator[list[str]]:
    yield []


def test_the_examples_of_every_verb_fit_80_columns_and_run_without_an_error(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("schema.json").write_text('{"type": "AVRO", "schema": "{}"}')
    Path("slow-lookups.json").write_text("{}")
    nothing = {"text": "", "mapping": {}, "value": None, "strings": [], "message": {}}
    for name, answer in nothing.items():
        monkeypatch.setattr(AdminRest, name, AsyncMock(return_value=answer))
    monkeypatch.setattr(AdminRest, "names", no_names)
    for command in every_command(get_command(app)):
        text = f"{command.help}\n\n{command.epilog}".partition("Examples:\n")[2]
        examples = text.partition("\n\n")[0]
        assert 0 < max(map(len, examples.splitlines())) <= 78, command.name
        for line in re.findall(r"^floodgate-admin (.*)", examples.replace("\\\n", ""), re.M):
            words = shlex.split(re.split(r" && | \| ", line)[0])
            if not {"tokens", "VERB"} & set(words):
                assert run(*words)[0] == 0, line


@pytest.mark.parametrize("words", ["-h", "topics -h", "topics list -h"])
def test_h_shows_the_help_on_every_command_level(run: Run, words: str) -> None:
    status, out, _ = run(*words.split())
    assert (status, "Usage:" in out) == (0, True)


def test_the_version_option_prints_the_version(run: Run) -> None:
    assert run("--version")[:2] == (0, f"Floodgate {VERSION}\n")


def test_help_has_no_colour_when_output_is_no_terminal(run: Run) -> None:
    assert "\x1b" not in run("topics", "list", "--help")[1]


# -- credentials ----------------------------------------------------------------------------------

TENANTS = "GET /admin/v2/tenants"


@pytest.mark.parametrize("before", [True, False], ids=["before the verb", "behind it"])
def test_a_token_is_sent_from_the_file_that_auth_params_names(
    stand_in, run, tmp_path, before
) -> None:
    (tmp_path / "ann.jwt").write_text("a.b.c\n")
    stand_in.answers[TENANTS] = given([])
    options = ["--auth-params", f"file:{tmp_path / 'ann.jwt'}"]
    words = ["tenants", "list"]
    status, _, _ = run(*(options + words if before else words + options))
    assert (status, stand_in.asked[0].authorization) == (0, "Bearer a.b.c")


def test_a_token_is_sent_from_the_variable_that_the_environment_names(
    stand_in, run, monkeypatch
) -> None:
    stand_in.answers[TENANTS] = given([])
    monkeypatch.setenv("A_TOKEN", "a.b.c")
    monkeypatch.setenv("FLOODGATE_AUTH_PARAMS", "env:A_TOKEN")
    status, _, _ = run("tenants", "list")
    assert (status, stand_in.asked[0].authorization) == (0, "Bearer a.b.c")


def test_a_secret_on_the_command_line_is_refused_and_not_repeated(stand_in, run) -> None:
    status, out, err = run("tenants", "list", "--auth-params", "planted.secret")
    assert status == 2
    assert "--auth-params file:///path" in err
    assert "planted" not in out + err
    assert stand_in.asked == []


def test_a_401_is_reported_with_a_hint_at_the_auth_params_option(
    stand_in: StandInAdmin, run: Run
) -> None:
    stand_in.answers[TENANTS] = refused(401, "Authentication required")
    status, _, err = run("tenants", "list")
    assert status == 1
    assert "--auth-params" in err


def test_a_password_in_the_admin_url_is_refused_and_not_repeated(run: Run) -> None:
    status, out, err = run("--admin-url", "http://ann:planted@127.0.0.1:1", "tenants", "list")
    assert status == 2
    assert "--auth-plugin basic" in err
    assert "planted" not in out + err
