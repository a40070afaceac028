"""All logs go to one stream, in one format."""

import io
import json
import logging
from collections.abc import Iterator

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from server.logs import (
    TRACE_LINES,
    LogFormat,
    LogLevel,
    configure_logs,
    shown_path,
    with_request_fields,
)


@pytest.fixture(autouse=True)
def _logging_as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def test_json_logs_have_an_object_per_line_with_extra_fields() -> None:
    stream = io.StringIO()
    configure_logs(LogLevel.INFO, LogFormat.JSON, stream)
    logging.getLogger("broker.cnx").warning("%s refused", "lookup", extra={"request_id": 7})
    logging.getLogger("proxy").info("started", extra={"port": 1})
    first, second = map(json.loads, stream.getvalue().splitlines())
    assert first["event"] == "lookup refused"
    assert (first["level"], first["logger"], first["request_id"]) == ("warning", "broker.cnx", 7)
    assert (second["event"], second["port"]) == ("started", 1)


@pytest.mark.parametrize(("given", "kept"), [("a-1", True), ("bad id", False), ("x" * 65, False)])
async def test_log_lines_within_an_http_request_have_its_request_id_and_address(
    given, *, kept
) -> None:
    stream = io.StringIO()
    configure_logs(LogLevel.DEBUG, LogFormat.JSON, stream)
    request = make_mocked_request("GET", "/a?token=s3cret", headers={"X-Request-Id": given})

    async def answered(_: web.Request) -> web.Response:
        logging.getLogger("a").info("asked")
        return web.Response()

    await with_request_fields(request, answered)
    logging.getLogger("a").info("later")
    asked, answer, later = map(json.loads, stream.getvalue().splitlines())
    assert (answer["event"], answer["request_id"]) == ("GET /a: 200", asked["request_id"])
    assert (asked["request_id"] == given) is kept
    assert "address" in asked
    assert "request_id" not in later


def test_records_below_the_log_level_are_not_written() -> None:
    stream = io.StringIO()
    configure_logs(LogLevel.WARNING, LogFormat.CONSOLE, stream)
    logging.getLogger("a").info("quiet")
    logging.getLogger("b").info("quiet")
    logging.getLogger("a").warning("loud")
    assert "quiet" not in stream.getvalue()
    assert "loud" in stream.getvalue()


def test_an_exception_is_written_with_its_trace_on_a_single_line() -> None:
    stream = io.StringIO()
    configure_logs(LogLevel.INFO, LogFormat.JSON, stream)
    try:
        int("bug")
    except ValueError:
        logging.getLogger("a").exception("failed")
    (line,) = stream.getvalue().splitlines()
    assert "ValueError" in json.loads(line)["exception"]


def test_no_log_line_is_written_to_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs(LogLevel.INFO, LogFormat.CONSOLE)
    logging.getLogger("a").warning("to standard error")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "to standard error" in captured.err


def test_text_of_a_peer_forges_no_field_of_a_log_line() -> None:
    stream = io.StringIO()
    configure_logs(LogLevel.INFO, LogFormat.CONSOLE, stream)
    logging.getLogger("a").info("closed", extra={"said": "v1' principal=admin", "number": 3})
    assert stream.getvalue().endswith(" said='v1\\' principal=admin' number=3\n")


@pytest.mark.parametrize("log_format", LogFormat)
def test_text_of_a_peer_takes_a_single_log_line_of_bounded_length(log_format) -> None:
    stream = io.StringIO()
    configure_logs(LogLevel.INFO, log_format, stream)
    said = "forged\n2026-01-01 [error] line" + "\x01" * 1_000_000
    logging.getLogger("a").warning("closing %s: %s", "peer", said)
    logging.getLogger("a").info("closed", extra={"said": said})
    lines = stream.getvalue().splitlines()
    assert len(lines) == 2
    assert max(map(len, lines)) < 2_000
    assert all("forged" in line and "... (1000" in line for line in lines)


@pytest.mark.parametrize("log_format", LogFormat)
def test_the_length_of_a_trace_is_bounded(log_format: LogFormat) -> None:
    stream = io.StringIO()
    configure_logs(LogLevel.INFO, log_format, stream)
    said = "\x01" * 1_000_000 + "\n" * 1_000 + "last words"
    logging.getLogger("a").error("failed", exc_info=ValueError(said))
    text = stream.getvalue()
    assert "last words" in text
    assert len(text) < 200 * TRACE_LINES


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("/admin/v2/brokers/configuration/maxTenants/5", None),
        ("/admin/v2/brokers/configuration/brokerClientAuthenticationParameters/a/b", "/******"),
        ("/admin/v2/brokers/configuration;x//brokerClientAuthenticationParameters//a", "//******"),
        ("/admin/v2/brokers/configuration/anyUrl/http://me:word@host", "anyUrl/******"),
    ],
)
def test_the_value_of_a_secret_key_in_a_path_is_hidden(path: str, shown: str | None) -> None:
    assert shown_path(path) == path if shown is None else shown_path(path).endswith(shown)


async def test_the_log_line_of_a_request_setting_a_secret_key_hides_the_value() -> None:
    stream = io.StringIO()
    configure_logs(LogLevel.DEBUG, LogFormat.JSON, stream)
    path = "/admin/v2/brokers/%63onfiguration/brokerClientAuthenticationParameters/s3cret"

    async def answered(_: web.Request) -> web.Response:
        return web.Response()

    await with_request_fields(make_mocked_request("POST", path), answered)
    assert "brokerClientAuthenticationParameters/******: 200" in stream.getvalue()
    assert "s3cret" not in stream.getvalue()
