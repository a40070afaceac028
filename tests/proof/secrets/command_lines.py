"""Command lines: right lines with secrets in files, and wrong lines that are refused."""

import json
from pathlib import Path

from tests.proof.result import ProofResult
from tests.proof.secrets.planted import Planted
from tests.proof.secrets.stage import PROVIDER, Said, Stage, run_words, written_conf
from tests.proof.servers import LOCAL

_REFUSED = (1, 2)
_DOCUMENT = """\
extends: restart-storm
name: planted
servers:
  broker:
    tokenSecretKey: {}
"""
_LOAD = """\
name: planted-load
topics: {of: [public/default]}
clients: [{name: all, do: list, count: 20}]
"""


def run_commands(stage: Stage, result: ProofResult) -> dict[str, int]:
    """Run the command lines, right and wrong; return the exit codes of the right lines."""
    planted, out = stage.planted, stage.out
    admin = ["-m", "client.admin", "--admin-url", stage.broker.web_url]
    good = [*admin, "--auth-params", planted.where("admin")]
    option, url = planted.words["in-an-option"], planted.words["in-a-url"]
    with_user = stage.broker.web_url.replace("://", f"://ann:{url}@")
    load = ["-m", "loadgen", "--auth-params", planted.where("admin"), "run"]
    load += [str(planted.file("load.yaml", _LOAD)), "--out", str(out / "runs")]
    load += ["--service-url", stage.proxy.service_url]
    watched = [*load, "--admin-url", f"broker={stage.broker.web_url}"]
    right = {
        "topics create": [*good, "topics", "create", f"public/default/{out.name}"],
        "topics list": [*good, "topics", "list", "public/default", "--json"],
        "configuration": [*good, "brokers", "get-runtime-config", "--json"],
        "a fault": [
            *good, "faults", "set",
            json.dumps({"on": ["SEEK"], "do": {"action": "error", "error": "ServiceNotReady"}}),
        ],
        "faults list": [*good, "faults", "list"],
        "tokens show": ["-m", "client.admin", "tokens", "show", "--token-file",
                        str(planted.folder / "admin.jwt")],
        "a load with a report": [*watched, "--name", "right"],
    }  # fmt: skip
    wrong = {
        "nobody": [*admin, "tenants", "list"],
        "late": [*admin, "--auth-params", planted.where("late"), "tenants", "list"],
        "a password": [*admin, "--auth-plugin", "basic", "--auth-params", "env:PLANTED",
                       "tenants", "list"],
        "no token": [*admin, "--auth-params", f"file:{planted.private_key}", "tenants", "list"],
        "a load of nobody": [one.replace("admin.jwt", "late.jwt") for one in watched],
        "another key": ["-m", "client.admin", "tokens", "validate", "--secret-key",
                        f"file:{planted.private_key}", "--token-file",
                        str(planted.folder / "admin.jwt")],
        "a private key for a public one": ["-m", "client.admin", "tokens", "validate",
                        "--public-key", f"file:{planted.private_key}", "--token-file",
                        str(planted.folder / "admin.jwt")],
    }  # fmt: skip
    ended = {name: run_words(stage.said, name, words, planted) for name, words in right.items()}
    refused = {name: run_words(stage.said, name, words, planted) for name, words in wrong.items()}
    # A user's command line is in the list of processes: it is refused immediately, and not
    # repeated. These run separately, so that the watch does not take the user's word for ours.
    own = {
        "a token as an option": [*admin, "--auth-params", option, "tenants", "list"],
        "a load with a token": ["-m", "loadgen", "--auth-params", option, "run", "storm"],
        "a token to be shown": ["-m", "client.admin", "tokens", "show", "--token", option],
        "a secret to sign with": ["-m", "client.admin", "tokens", "create", "--secret-key",
                                  option, "--subject", "x"],
        "a secret set": ["-m", "broker", "--set", f"tokenSecretKey={option}"],
        "a password set": ["-m", "broker", "--set", f"metadataStoreUrl=postgresql://u:{url}@h/d"],
        "a user in a URL": [*load, "--name", "with-a-user", "--admin-url", f"broker={with_user}"],
        "a user in a URL of the admin": ["-m", "client.admin", "--admin-url", with_user,
                                         "tenants", "list"],
        "a token of the proxy": ["-m", "proxy", "--set",
                                 f"brokerClientAuthenticationParameters=token:{option}"],
    }  # fmt: skip
    with stage.watch.paused():
        refused |= {
            name: run_words(stage.said, name, words, planted) for name, words in own.items()
        }
    result.check(
        "wrong command lines are refused",
        all(status in _REFUSED for status in refused.values()),
        ", ".join(f"{name}: {status}" for name, status in refused.items()),
    )
    return ended


def start_wrongly(planted: Planted, out: Path, said: Said, result: ProofResult) -> None:
    """Start servers with wrong configurations about, or beside, a secret."""
    words = planted.words
    tokens = {"authenticationEnabled": "true", "authenticationProviders": f"{PROVIDER}Token"}
    bad_hashes = planted.file("hashes", f"bob:{words['in-a-hash']}\n")
    database = f"postgresql://floodgate:{words['database-password']}@127.0.0.1:1/floodgate"
    wrong = {
        "a short key": {**tokens, "tokenSecretKey": words["in-a-setting"][:20]},
        "a key that is none": {**tokens, "tokenPublicKey": words["in-a-setting"]},
        "a private key": {**tokens, "tokenPublicKey": f"file://{planted.private_key}"},
        "an unreachable database": {"metadataStoreUrl": database},
        "a database whose URL is broken": {"metadataStoreUrl": database.replace(":1/", ":x/")},
        "no certificate": {"brokerServicePortTls": "0", "tlsKeyFilePath": planted.pem.server[1],
                           "tlsCertificateFilePath": str(planted.private_key)},
        "other hashes": {"authenticationEnabled": "true", "basicAuthConf": f"file://{bad_hashes}",
                         "authenticationProviders": f"{PROVIDER}Basic"},
        "a misspelt key": {"tokenSecretKeyy": words["in-a-setting"], "brokerServicePort": "x"},
    }  # fmt: skip
    ended = {}
    for number, (name, keys) in enumerate(wrong.items()):
        file = written_conf(planted, f"wrong-{number}.conf", {**LOCAL, **keys})
        if number == 0:
            file.write_text(file.read_text() + f"{words['in-a-broken-line']}\n", encoding="utf-8")
        ended[name] = run_words(said, name, ["-m", "broker", str(file)], planted)
    ended["a load of a broken file"] = run_words(
        said,
        "a load of a broken file",
        ["-m", "loadgen", "run", "restart-storm", "--broker-conf",
         str(planted.folder / "wrong-0.conf"), "--out", str(out / "own")],
        planted,
    )  # fmt: skip
    document = planted.file("own.yaml", _DOCUMENT.format(words["in-a-setting"]))
    ended["a load of a document"] = run_words(
        said,
        "a load of a document",
        ["-m", "loadgen", "run", str(document), "--out", str(out / "own")],
        planted,
    )
    result.check(
        "wrong configurations are refused",
        all(status in _REFUSED for status in ended.values()),
        ", ".join(f"{name}: {status}" for name, status in ended.items()),
    )
