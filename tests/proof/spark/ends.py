"""Ends of runs on separate hosts: Ctrl-C, a missed expectation, a dead host."""

import time

from loadgen.topics.corpus import open_corpus
from tests.proof.commands import wait_until
from tests.proof.spark.play import Play, require
from tests.proof.spark.stage import DOOMED, WORKERS

SOON_SECONDS, AT_ONCE_SECONDS = 30.0, 15.0
"""Deadline of a run's early or immediate end, Spark included."""
MANY_TOPICS, QUICK_MANY_TOPICS, MANY_NAMESPACES = 3_000_000, 2_000_000, 120
_STEADY = """\
name: steady
description: Clients that ask for a minute, and some that ask once.
seed: 7
topics: {{corpus: {corpus}}}
clients:
  - {{name: steady, do: list, count: 60, every: 500ms}}
  - {{name: once, do: list, count: {tasks}}}
phases: {{measure: 60s, drain: 2s}}
"""


def interrupt(play: Play) -> None:
    """Press Ctrl-C once, and twice."""
    steady = play.written("steady.yaml", _STEADY.format(corpus=play.corpus, tasks=play.tasks))
    play.options.note("Ctrl-C")
    run = play.run("once", steady)
    run.until_said("measuring: ")
    time.sleep(3.0)
    pressed = time.monotonic()
    run.ctrl_c()
    ended = run.ended(pressed)
    told, rows = play.manifest("once"), play.rows(play.out / "runs" / "once")
    play.result.check(
        "Ctrl-C once",
        ended.code == 130
        and told["interrupted"]
        and rows["tasks"] == play.tasks
        and rows["seconds"] > 2
        and ended.seconds < SOON_SECONDS,
        f"one Ctrl-C: exit code {ended.code} after {ended.seconds:.1f} s, {rows['requests']:,} "
        f"rows of {rows['tasks']} tasks, of {rows['seconds']:.1f} s",
    )
    run = play.run("twice", steady)
    run.until_said("measuring: ")
    pressed = time.monotonic()
    run.ctrl_c()
    time.sleep(0.3)
    run.ctrl_c()
    ended = run.ended(pressed)
    left = play.out / "runs" / "twice"
    play.result.check(
        "Ctrl-C twice",
        ended.code == 130
        and not left.exists()
        and ended.seconds < AT_ONCE_SECONDS
        and "\nTraceback" not in ended.said,
        f"two: exit code {ended.code} after {ended.seconds:.1f} s, and "
        + ("a directory of the run is left" if left.exists() else "no half a run is left"),
    )


def abort_early(play: Play) -> None:
    """End a run by an expectation that cannot be met."""
    play.options.note("--abort-early")
    text = _STEADY.format(corpus=play.corpus, tasks=play.tasks)
    document = play.written(
        "hopeless.yaml", f"{text}expect:\n  - once.list.answered.count >= 1000\n"
    )
    ended = play.run("hopeless", document, "--abort-early").ended()
    told, rows = play.manifest("hopeless"), play.rows(play.out / "runs" / "hopeless")
    play.result.check(
        "--abort-early",
        ended.code in (98, 99) and bool(told["aborted"]) and rows["seconds"] < SOON_SECONDS,
        f"exit code {ended.code}: {told['aborted']} could not be met, and the minute of the "
        f"document ended after {rows['seconds']:.1f} s, with {rows['requests']:,} rows",
    )


def kill_load(play: Play) -> None:
    """Kill a host during a load."""
    play.options.note("a host dies during a load")
    run = play.run("killed", play.out / "steady.yaml")
    run.until_said("measuring: ")
    time.sleep(3.0)
    pressed = time.monotonic()
    play.stage.hosts[DOOMED].kill()
    ended = run.ended(pressed)
    told, rows = play.manifest("killed"), play.rows(play.out / "runs" / "killed")
    left = play.tasks - play.tasks // len(WORKERS)
    says = "The load was not whole: " in " ".join(ended.said.split())
    play.result.check(
        "a host dies during a load",
        ended.code == 98
        and rows["tasks"] == left
        and says
        and rows["seconds"] > 2
        and ended.seconds < SOON_SECONDS
        and "\nTraceback" not in ended.said,
        f"{DOOMED} is killed: exit code {ended.code} after {ended.seconds:.1f} s, "
        f"{rows['requests']:,} rows of the {rows['tasks']} other tasks, of {rows['seconds']:.1f} "
        f"s, and: {told['lost']}",
    )
    play.result.figures["lost"] = told["lost"]
    play.stage.start_worker(DOOMED)


def kill_topics(play: Play) -> None:
    """Kill a host during the making of topics, and compare with a single process's topics."""
    play.options.note("a host dies while topics are made")
    count = QUICK_MANY_TOPICS if play.options.quick else MANY_TOPICS
    shape = ["topics", "--topics", str(count), "--namespaces", str(MANY_NAMESPACES), "--json"]
    play.stage.await_workers(len(WORKERS))
    many, alone = play.out / "many", play.out / "many-alone"
    run = play.stage.submit("many", *shape, "--out", str(many), "--place", "spark")
    wait_until(
        "the first file of topics",
        lambda: [*play.out.glob(".many.*/part-*.parquet")] or run.process.poll() is not None,
        120.0,
    )
    files = len([*play.out.glob(".many.*/part-*.parquet")])
    play.stage.hosts[DOOMED].kill()
    ended = run.ended()
    require(ended)
    require(play.stage.local("many-alone", "servers", *shape, "--out", str(alone)).ended())
    made, expected = open_corpus(many), open_corpus(alone)
    logs = [each.read_text(errors="replace") for each in (play.out / "events").iterdir()]
    lost = sum(
        "SparkListenerTaskEnd" in line and "ExecutorLostFailure" in line
        for log in logs
        if '"App Name":"many"' in log
        for line in log.splitlines()
    )
    others = [each.name for each in many.iterdir() if each not in made.files]
    play.result.check(
        "a host dies while topics are made",
        made.manifest == expected.manifest and 0 < files < len(made.files) and lost > 0,
        f"{DOOMED} is killed with {files} of {len(made.files)} files written: {lost} tasks "
        f"were lost, the job ends with {ended.code} after {ended.seconds:.0f} s, and "
        f"{made.manifest.topics:,} topics have the manifest of one host's; beside them: "
        f"{', '.join(others)}",
    )
