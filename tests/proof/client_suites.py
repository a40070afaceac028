"""The client's suites by URL: the same files against Floodgate and a real broker."""

import os
import shutil
from collections.abc import Mapping

from tests.integration.client.server import PROXY_URL, SERVICE_URL, WEB_URL
from tests.official.servers import floodgate
from tests.proof.commands import run_pytest
from tests.proof.result import ProofOptions, ProofResult

SUITES = ("tests/integration/client", "tests/official_api")
PROFILES = ("floodgate", "pulsar")
PATIENCE_SECONDS = 400.0
NAMES = (SERVICE_URL, WEB_URL, PROXY_URL)


def prove(options: ProofOptions) -> ProofResult:
    """Run both suites against every available server."""
    result = ProofResult({"servers": {}})
    for profile in PROFILES[:1] if options.quick else PROFILES:
        folder = options.out / profile
        shutil.rmtree(folder, ignore_errors=True)
        with floodgate(profile, folder) as servers:
            urls = (
                servers.direct.service_url,
                servers.direct.admin_url,
                servers.through_proxy.service_url,
            )
            _run(f"profile {profile}", dict(zip(NAMES, urls, strict=True)), options, result)
    if os.environ.get(SERVICE_URL) and os.environ.get(WEB_URL):
        _run("the named one", {}, options, result)
    else:
        said = f"not played to a real Pulsar: {SERVICE_URL} and {WEB_URL} name none"
        result.check("the named one", True, said)
    return result


def _run(server: str, urls: Mapping[str, str], options: ProofOptions, result: ProofResult) -> None:
    for suite in SUITES:
        options.note(f"{suite}, {server}")
        log = options.out / f"{server}-{suite.rpartition('/')[2]}.log".replace(" ", "-")
        environment = {**os.environ, **urls}
        code, last = run_pytest([suite, "-rs"], log, PATIENCE_SECONDS, environment)
        result.figures["servers"][f"{suite}, {server}"] = last
        result.check(f"{suite}, {server}", code == 0, f"{suite}, {server}: {last}")
