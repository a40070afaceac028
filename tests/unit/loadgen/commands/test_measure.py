"""Impossible measurements are refused in advance, in one sentence each."""

import pytest

from loadgen.commands import measure as command
from loadgen.commands.measure import measure
from loadgen.errors import UsageError
from loadgen.studies.advise.question import NamespaceShape


@pytest.mark.parametrize(
    "said",
    [{"service_url": "pulsar://10.0.0.1:6650"}, {"admin_url": "http://10.0.0.1:8080"}],
)
def test_a_remote_cluster_is_refused_without_the_confirmation_of_its_owner(
    said: dict[str, str], monkeypatch
) -> None:
    # The refusal precedes all requests to the cluster.
    monkeypatch.setattr(command, "own_namespaces", None)
    with pytest.raises(UsageError, match=r"10\.0\.0\.1.* add --yes-this-is-my-cluster"):
        measure(**said)


def test_measurement_options_out_of_range_are_refused() -> None:
    with pytest.raises(UsageError, match=r"--seconds 0.5: must be 1 to 600"):
        measure(seconds=0.5)
    with pytest.raises(UsageError, match=r"--name-bytes 20: must be 70 to 512"):
        measure(name_bytes=20)


def test_namespaces_of_similar_size_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    alike = (NamespaceShape("t/a", 1_000, 90_000), NamespaceShape("t/b", 1_500, 90_000))
    monkeypatch.setattr(command, "shapes_of_cluster", lambda url, names: alike)
    with pytest.raises(UsageError, match="they have 1,000 and 1,500 topics: name some of which"):
        measure(namespace=["t/a", "t/b"])
