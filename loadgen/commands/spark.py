"""``loadgen spark``: packs loadgen for a Spark cluster, and prints the cluster's settings."""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from loadgen.commands.explained import explained
from loadgen.commands.options import AsJson  # noqa: TC001 (evaluated by Typer)
from loadgen.commands.shown import counting, print_json, print_object
from loadgen.errors import write_text
from loadgen.spark.packaging import JOB, pack, packed_files
from loadgen.spark.settings import as_properties, cluster_settings

spark = typer.Typer(add_completion=False, pretty_exceptions_enable=False, no_args_is_help=True)
ARCHIVE = "loadgen-environment.tar.gz"


@spark.callback()
def about() -> None:
    """Pack loadgen for a Spark cluster, and print the required settings.

    Examples:
      loadgen spark package --out out/spark

      loadgen spark conf
    """


@spark.command()
@explained
def package(out: Path = Path("out/spark"), as_json: AsJson = False) -> None:
    """Write an archive of loadgen and its packages, a job for spark-submit, and settings.

    Nodes need the operating system and the Python version of this machine, and
    Java. PySpark comes with the cluster.

    Examples:
      loadgen spark package --out out/spark

    Options:
        out (DIR): Directory for the files.
    """
    archive = (out / ARCHIVE).resolve()
    files = {"archive": archive, "job": out / "loadgen_job.py", "conf": out / "spark-defaults.conf"}
    write_text(files["job"], JOB)
    write_text(files["conf"], as_properties(cluster_settings(str(archive))))
    with counting(f"Packing {archive.name}", len(packed_files()), as_json=as_json) as on_files:
        size = pack(archive, on_files)
    submit = (
        "spark-submit --master spark://HOST:7077 --load-spark-defaults "
        f"--properties-file {files['conf']} {files['job']} "
        "run restart-storm --place spark --tasks 2"
    )
    if as_json:
        told = {name: str(path) for name, path in files.items()}
        print_object(1, {**told, "archive_bytes": size, "submit": submit})
    else:
        names = f"{files['job'].name} and {files['conf'].name}"
        typer.echo(f"{archive} ({size / 1e6:.0f} MB), {names} are written. Then:\n\n  {submit}")


@spark.command()
@explained
def conf(archive: str = ARCHIVE, as_json: AsJson = False) -> None:
    """Print the settings for spark-defaults.conf, each with its reason.

    Examples:
      loadgen spark conf > spark-defaults.conf

    Options:
        archive (PATH): The archive of `loadgen spark package`, as nodes see it.
    """
    if as_json:
        print_json([vars(each) for each in cluster_settings(archive)])
    else:
        sys.stdout.write(as_properties(cluster_settings(archive)))
