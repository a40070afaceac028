from pathlib import Path

from tools.size import code_lines


def test_docstrings_comments_blanks_and_imports_are_not_counted_as_code(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text(
        '"""What it is."""\n\nimport ast\n\n# Why.\nNAMES = (\n    "a",\n)\n"""Texts."""\n\n\n'
        'def f() -> int:\n    """Return 1."""\n    return 1\n'
    )
    assert code_lines(module) == 5
