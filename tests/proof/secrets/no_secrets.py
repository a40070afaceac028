"""No planted secret is in the output of broker, proxy, command line and load generator."""

import asyncio
import shutil

from server.authentication.basic.passwords import apr1
from tests.proof.result import ProofOptions, ProofResult
from tests.proof.secrets.command_lines import run_commands, start_wrongly
from tests.proof.secrets.planted import Planted
from tests.proof.secrets.searching import ProcessWatch, Search
from tests.proof.secrets.stage import Said, Stage, run_words, running_stage
from tests.proof.secrets.strangers import ask_pages, say_wrong_things
from tests.support.processes.postgresql import PostgresqlServer, running_postgresql

_OF_A_WHOLE_RUN = {
    "broker.log": ("ZeroDivisionError", "fresh credentials", "AUTH_RESPONSE", "SEND"),
    "proxy.log": ("AUTH_CHALLENGE", "Failed to authenticate", "refused a request"),
}
"""Words of the logs that every valid run contains."""


def prove(options: ProofOptions) -> ProofResult:
    """Run in each form of logs, and search all output."""
    result = ProofResult()
    planted = Planted(options.out / "planted")
    hashed = apr1(planted.words["password"].encode(), "saltsalt")
    planted.passwords.write_text(f"ann:{hashed}\n", encoding="utf-8")
    said = Said()
    with running_postgresql() as database, ProcessWatch() as watch:
        for log_format in ("console", "json"):
            out = options.out / log_format
            shutil.rmtree(out, ignore_errors=True)
            out.mkdir(parents=True)
            options.note(f"servers with logs for {log_format}")
            with running_stage(planted, out, log_format, said, watch, database) as stage:
                _play(stage, result, options)
                options.note("the database is away")
                _without_database(stage, database, result)
        options.note("configurations that are wrong")
        start_wrongly(planted, options.out, said, result)
    options.note("search")
    search = Search(planted.forms())
    for place, content in said.texts:
        search.text(place, content)
    for kind, content in watch.seen:
        search.text(
            f"a process's {kind}", content, but="in-a-variable" if kind == "environ" else ""
        )
    search.folder(options.out, [planted.folder])
    result.figures |= {
        "forms": len(planted.forms()),
        "places": search.places,
        "bytes_searched": search.bytes_searched,
        "finds": search.finds,
    }
    _check_search(planted, result)
    result.check(
        "no secrets",
        not search.finds,
        f"{len(planted.words)} secrets, {search.places} places, {search.bytes_searched:,} bytes: "
        + ("; ".join(search.finds[:5]) or "nothing found"),
    )
    return result


def _without_database(stage: Stage, database: PostgresqlServer, result: ProofResult) -> None:
    database.kill()
    words = ["-m", "client.admin", "--admin-url", stage.broker.web_url]
    words += ["--auth-params", stage.planted.where("admin"), "topics", "create", "public/default/x"]
    status = run_words(stage.said, "topics create without a database", words, stage.planted)
    result.check("without a database", status == 1, f"topics create ended with {status}")
    database.start_again()


def _check_search(planted: Planted, result: ProofResult) -> None:
    """Check that the search finds secrets: in the secret files."""
    control = Search(planted.forms())
    control.folder(planted.folder, [])
    found = {name for name in planted.words if any(f": {name} " in one for one in control.finds)}
    expected = {"secret-key", "private-key", "tls-key"}
    tokens = sum(name.startswith("token-of") for name in found)
    result.check(
        "the search finds",
        expected <= found and tokens > 1,
        f"{len(found)} of the secrets are found in the files that hold them",
    )


def _play(stage: Stage, result: ProofResult, options: ProofOptions) -> None:
    for name, status in run_commands(stage, result).items():
        result.check(name, status == 0, f"{name} ended with {status}")
    asyncio.run(say_wrong_things(stage.planted, stage.broker, stage.proxy, stage.said.add))
    options.note("pages")
    for server in (stage.broker, stage.proxy):
        ask_pages(stage.planted, server, stage.said.add)
    for log, words in _OF_A_WHOLE_RUN.items():
        text = (stage.out / log).read_text(encoding="utf-8")
        missing = [word for word in words if word not in text]
        result.check(f"{log} is of a whole run", not missing, f"{log} lacks {missing or 'nothing'}")
