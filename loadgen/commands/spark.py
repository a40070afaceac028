"""``loadgen spark``: what a cluster of Spark needs to run loadgen."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from loadgen.commands.options import AsJson  # noqa: TC001 (evaluated by Typer)
from loadgen.commands.shown import counting, print_json
from loadgen.errors import LoadgenError
from loadgen.spark.packaging import JOB, pack, packed_files
from loadgen.spark.settings import as_properties, cluster_settings

spark = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    help="Pack loadgen for a Spark cluster, and print the settings that it needs.\n\n"
    "Examples:\n\n  loadgen spark package --out out/spark\n\n  loadgen spark conf",
)
ARCHIVE = "loadgen-environment.tar.gz"
_JOB, _CONF = "loadgen_job.py", "spark-defaults.conf"


@spark.callback()
def overview() -> None:
    """Pack loadgen for a Spark cluster, and print the settings that it needs."""


@spark.command()
def package(
    out: Annotated[Path, typer.Option(help="Directory for the files.")] = Path("out/spark"),
    as_json: AsJson = False,
) -> None:
    """Write an archive of loadgen and its packages, a job for spark-submit, and settings.

    Nodes need the operating system and the Python version of this machine, and
    Java. PySpark comes with the cluster.

    Examples:
      loadgen spark package --out out/spark
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LoadgenError(f"{out} cannot be made: {error.strerror}.") from error
    archive = (out / ARCHIVE).resolve()
    with counting(f"Packing {archive.name}", len(packed_files())) as on_files:
        size = pack(archive, on_files)
    (out / _JOB).write_text(JOB, encoding="utf-8")
    (out / _CONF).write_text(as_properties(cluster_settings(str(archive))), encoding="utf-8")
    submit = (
        f"spark-submit --master spark://HOST:7077 --properties-file {out / _CONF} {out / _JOB} "
        "run restart-storm --place spark --tasks 2"
    )
    if as_json:
        files = {"archive": archive, "job": out / _JOB, "conf": out / _CONF}
        told = {name: str(path) for name, path in files.items()}
        print_json({**told, "archive_bytes": size, "submit": submit})
    else:
        typer.echo(f"{archive} ({size / 1e6:.0f} MB), {_JOB} and {_CONF} are written. Then:\n")
        typer.echo(f"  {submit}")


@spark.command()
def conf(
    archive: Annotated[
        str,
        typer.Option(
            help="Path of the archive that `loadgen spark package` made, as nodes see it."
        ),
    ] = ARCHIVE,
    as_json: AsJson = False,
) -> None:
    """Print the settings for spark-defaults.conf, each with its reason.

    Examples:
      loadgen spark conf > spark-defaults.conf
    """
    if as_json:
        print_json([vars(each) for each in cluster_settings(archive)])
    else:
        sys.stdout.write(as_properties(cluster_settings(archive)))
