"""JVM options are read in Pulsar's format; limits leave a part of the allowed memory."""

import pytest

from loadgen.errors import UsageError
from loadgen.jvm_options import JvmOptions, left_of, parse_jvm_options

GB = 2**30


@pytest.mark.parametrize(
    ("text", "heap", "direct"),
    [
        ("-Xms2g -Xmx2g -XX:MaxDirectMemorySize=4g", 2 * GB, 4 * GB),
        ('"-Xmx512M"', GB // 2, GB // 2),
        ("-Xmx1g -Xmx2048m", 2 * GB, 2 * GB),
        ("-XX:MaxDirectMemorySize=1048576k", None, GB),
    ],
)
def test_memory_options_are_read_as_by_a_jvm(text, heap, direct) -> None:
    assert parse_jvm_options("--jvm", text) == JvmOptions(heap, direct)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("-Xmx2gb", r"--jvm: -Xmx '2gb' is not a size such as 512m or 2g"),
        ("-XX:MaxDirectMemorySize=0", "MaxDirectMemorySize '0' is not a size"),
        ("2g", r"--jvm '2g' has no -Xmx or -XX:MaxDirectMemorySize"),
    ],
)
def test_invalid_memory_options_are_refused(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        parse_jvm_options("--jvm", text)


def test_each_limit_is_reported_with_the_rest_of_the_jvm_memory() -> None:
    assert left_of("broker", JvmOptions(GB, 2 * GB), 600, 100) == [
        "The broker's heap limit leaves 424 MB of -Xmx (1,024 MB) to everything else. "
        "That is less than half.",
        "The broker's direct limit leaves 1,948 MB of -XX:MaxDirectMemorySize (2,048 MB) "
        "to everything else.",
    ]
    assert left_of("proxy", JvmOptions(None, GB), 600, 1024) == [
        "The proxy's direct limit, 1,024 MB, is not below -XX:MaxDirectMemorySize (1,024 MB): "
        "memory ends before the limiter refuses anybody."
    ]
    assert left_of("broker", JvmOptions(GB, GB), 0, 0)[0] == (
        "The broker has no heap limit: lists may take all of -Xmx (1,024 MB)."
    )
