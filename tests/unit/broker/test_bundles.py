import pytest

from broker.bundles import boundaries, bundle_named, bundle_of


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (1, ["0x00000000", "0xffffffff"]),
        (3, ["0x00000000", "0x55555555", "0xaaaaaaaa", "0xffffffff"]),
        (4, ["0x00000000", "0x40000000", "0x80000000", "0xc0000000", "0xffffffff"]),
        (
            7,
            [
                "0x00000000",
                "0x24924924",
                "0x49249248",
                "0x6db6db6c",
                "0x92492490",
                "0xb6db6db4",
                "0xdb6db6d8",
                "0xffffffff",
            ],
        ),
    ],
)
def test_bundle_boundaries_equal_the_boundaries_of_a_real_broker(
    count: int, expected: list[str]
) -> None:
    assert boundaries(count) == expected


@pytest.mark.parametrize(
    ("local", "bundle"),
    [
        ("p1-partition-2", "0x00000000_0x40000000"),
        ("p2-partition-1", "0x00000000_0x40000000"),
        ("p1-partition-3", "0x40000000_0x80000000"),
        ("t2", "0xc0000000_0xffffffff"),
    ],
)
def test_a_topic_belongs_to_the_recorded_bundle(local: str, bundle: str) -> None:
    assert str(bundle_of(f"persistent://goldt/n1/{local}".encode(), 4)) == bundle


@pytest.mark.parametrize(
    "text", ["", "bogus", "0x00000000_0x40000001", "0x00000000_0xffffffff", "0xg_0x", "-0x1_0x0"]
)
def test_a_text_that_names_no_bundle_of_the_namespace_is_none(text: str) -> None:
    assert bundle_named(text, 4) is None
