"""Every entry point of both images, run: commands, servers under a storm, and the comparison."""

import json
import shutil
import tomllib
from contextlib import ExitStack
from pathlib import Path
from subprocess import CompletedProcess

from benchmarks.processes import ROOT
from tests.proof.images.buildah import Image
from tests.proof.images.containers import USER, Container, Served, serving
from tests.proof.result import ProofResult
from tests.support.processes.postgresql import running_postgresql

TOPICS, CLIENTS = 2_000, 20
STORM = ("run", "storm", "--set", f"clients.all.count={CLIENTS}", "--place", "spark")
HEALTH_CHECK = ("python", "/opt/floodgate/healthcheck.py")
DATABASE = "postgresql://floodgate@/postgres?host=/postgresql"
ANY_WEB_PORT = ("--set", "webServicePort=0")


def run_all(servers: Image, loadgen: Image, shared: Path, logs: Path, result: ProofResult) -> None:
    """Run everything; ``shared`` is an empty folder with this lifetime."""
    shared.chmod(0o755)
    mounts = {path: shared / path[1:] for path in ("/data", "/out")}
    for folder in mounts.values():
        folder.mkdir()
        shutil.chown(folder, USER, USER)
    for image in (servers, loadgen):
        _commands(image, result)
    client = Container(loadgen, mounts)
    with running_postgresql() as database:
        socket = Path(database.url().partition("?host=")[2])
        socket.chmod(0o755)
        server = Container(servers, {**mounts, "/postgresql": socket})
        topics = ("--topics", str(TOPICS), "--namespaces", "2", "--place", "spark")
        _ends(client, ("loadgen", "topics", *topics, "--out", "/data/topics"), result)
        _storm(server, client, logs, result)
    # With so few clients a difference is not required: the page itself is the verdict.
    words = ("--profiles", "--repeats", "1", *STORM[2:4], "--out", "/out/compose")
    done = client.run("loadgen", "compare", STORM[1], *words)
    made = (shared / "out" / "compose" / "beside.html").exists()
    said = "the comparison's page lies in the host's folder" if made else _last_line(done)
    result.check("report", made, said)


def _commands(image: Image, result: ProofResult) -> None:
    """Run every command's help, and try to write to the read-only root."""
    container = Container(image)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for command in project["scripts"]:
        _ends(container, (command, "--help"), result)
    tried = container.run("touch", "/opt/floodgate/written")
    refused = "Read-only file system" in tried.stderr
    result.check("read-only", refused, f"{image.name} cannot write to its root")


def _storm(server: Container, client: Container, logs: Path, result: ProofResult) -> None:
    """Run the image's command and a proxy on PostgreSQL, and a storm through both."""
    with ExitStack() as stack:
        command = [*server.image.config["Cmd"], *ANY_WEB_PORT, "--set", "brokerServicePort=0"]
        command += ["--set", f"metadataStoreUrl={DATABASE}", "--import", "/data/topics"]
        command += ["--set", "floodgateMessageStore=sqlite:///data/messages.db"]
        command += ["--set", "advertisedAddress=127.0.0.1"]
        broker = stack.enter_context(serving(server, "broker", command, logs / "broker.log"))
        command = ["floodgate-proxy", *ANY_WEB_PORT, "--set", "servicePort=0"]
        command += ["--set", f"brokerServiceURL={broker.process.service_url}"]
        command += ["--set", f"brokerWebServiceURL={broker.process.web_url}"]
        proxy = stack.enter_context(serving(server, "proxy", command, logs / "proxy.log"))
        for each in (broker, proxy):
            ready = f"{each.process.web_url}/admin/v2/brokers/ready"
            _ends(server, (*HEALTH_CHECK, ready), result)
        admin = ("floodgate-admin", "--admin-url", broker.process.web_url)
        _ends(server, (*admin, "topics", "list", "public/default"), result)
        _answered(client, broker, proxy, result)
    for each in (broker, proxy):
        role, code = each.process.module, each.exit_code
        result.check("drain", code == 0, f"SIGTERM ends the {role} with {code}")


def _answered(client: Container, broker: Served, proxy: Served, result: ProofResult) -> None:
    words = ["loadgen", *STORM, "--service-url", proxy.process.service_url]
    words += ["--set", "topics.corpus=/data/topics", "--out", "/out/runs"]
    for role, served in (("broker", broker), ("proxy", proxy)):
        words += ["--admin-url", f"{role}={served.process.web_url}"]
    _ends(client, tuple(words), result)
    summaries = client.mounts["/out"].glob("runs/*/summary.json")
    answered = [
        json.loads(path.read_text(encoding="utf-8"))["total"]["answered"] for path in summaries
    ]
    sentence = f"{answered} of {CLIENTS} clients are answered through the proxy"
    result.check("storm", answered == [CLIENTS], sentence)


def _ends(container: Container, words: tuple[str, ...], result: ProofResult) -> None:
    """Run a command, which must exit with 0."""
    done = container.run(*words)
    text = " ".join(words[:2])
    said = "" if done.returncode == 0 else f" {_last_line(done)}"
    result.check(text, not said, f"{container.image.name}: {text}{said}")


def _last_line(done: CompletedProcess[str]) -> str:
    last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
    return f"ended with {done.returncode}: {last}"
