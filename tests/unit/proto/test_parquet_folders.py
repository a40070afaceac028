"""Folders of Parquet files encode column values in names."""

from pathlib import Path

from proto.parquet_folders import parquet_files, values_said


def test_parquet_files_are_found_in_the_folder_and_in_key_value_subfolders_only(tmp_path) -> None:
    for name in (
        *("b.parquet", "namespace=a%2Fb/0.parquet", "tenant=a/namespace=b/0.parquet"),
        *("_delta_log/0.parquet", ".scratch/0.parquet", "mine/0.parquet", "_SUCCESS"),
        *("_metadata.parquet", ".b.parquet", "tenant=a/.0.parquet", ".at=1/0.parquet"),
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    found = parquet_files(tmp_path)
    assert [str(file.relative_to(tmp_path)) for file in found] == [
        "b.parquet", "namespace=a%2Fb/0.parquet", "tenant=a/namespace=b/0.parquet",
    ]  # fmt: skip
    assert [values_said(tmp_path, file) for file in found] == [
        {}, {"namespace": "a/b"}, {"tenant": "a", "namespace": "b"},
    ]  # fmt: skip


def test_a_folder_value_may_be_null_and_a_single_file_has_no_values(tmp_path: Path) -> None:
    file = tmp_path / "partitions=__HIVE_DEFAULT_PARTITION__" / "0.parquet"
    assert values_said(tmp_path, file) == {"partitions": None}
    assert values_said(file, file) == {}
