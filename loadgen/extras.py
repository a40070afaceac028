"""Packages that only Spark needs: they come with the extra ``floodgate[loadgen]``."""

from __future__ import annotations

from importlib.util import find_spec

from loadgen.errors import LoadgenError

REMEDY = 'pip install "floodgate[loadgen]"'
SPARK = "pyspark"
_WITHOUT = dict.fromkeys(
    (SPARK, "py4j"), f"Spark needs the package {SPARK}: {REMEDY}, or use --place processes"
)


def require(package: str) -> None:
    """Refuse what needs a package of an extra, before anything of it is begun.

    Raises:
        LoadgenError: It is not installed.
    """
    if find_spec(package) is None:
        raise LoadgenError(_WITHOUT[package])


def missing_extra(error: ModuleNotFoundError) -> LoadgenError | None:
    """Return the sentence for an import that failed; None if no extra brings that module."""
    sentence = _WITHOUT.get((error.name or "").partition(".")[0])
    return LoadgenError(sentence) if sentence else None
