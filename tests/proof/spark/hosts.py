"""Spark on separate hosts: skewed clocks, an undersized driver, Ctrl-C, a dead host, secrets.

A master, three workers, broker and proxy, and the driver are in network namespaces of this machine.
Storms, topics and their ends are played there with spark-submit; the results are compared with the
rows, the servers' clock and the same topics and storm on one host.
"""

import shutil

from tests.proof.result import ProofOptions, ProofResult
from tests.proof.spark.ends import abort_early, interrupt, kill_load, kill_topics
from tests.proof.spark.planted import Planted, ProcessWatch, Search
from tests.proof.spark.play import Play
from tests.proof.spark.stage import running_stage
from tests.proof.spark.storms import make_topics, play_storm


def prove(options: ProofOptions) -> ProofResult:
    """Play all parts, and judge the results."""
    result = ProofResult()
    shutil.rmtree(options.out, ignore_errors=True)
    options.out.mkdir(parents=True)
    planted = Planted(options.out.resolve() / "planted")
    options.note("six hosts, a master and three workers")
    with running_stage(options.out, planted) as stage:
        play = Play(stage, options, result)
        make_topics(play)
        play_storm(play)
        with ProcessWatch() as watch:
            interrupt(play)
            abort_early(play)
        kill_load(play)
        kill_topics(play)
        options.note("what Spark's own pages tell")
        pages = stage.history()
    options.note("the search for the secret")
    search = Search(planted.forms())
    search.folder(options.out, [planted.folder])
    for number, page in enumerate(pages):
        search.text(f"page {number} of Spark", page.encode())
    for kind, content in watch.seen:
        search.text(f"a process's {kind}", content)
    control = Search(planted.forms())
    control.folder(planted.folder, [])
    result.figures["searched_bytes"] = search.bytes_searched
    result.check(
        "no secret",
        not search.finds and bool(control.finds),
        f"{search.places:,} places, {search.bytes_searched:,} bytes: logs, event logs, "
        f"{len(pages)} pages of Spark's, runs, {len(watch.seen):,} command lines and environments "
        "of processes; the token is in "
        + ("; ".join(search.finds[:5]) or "none, and found in its own file"),
    )
    return result
