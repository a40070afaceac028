"""Unit tests mirror the folders of their modules, and pages name existing paths."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
UNIT = ROOT / "tests" / "unit"
PACKAGES = ("limiter", "proto", "client", "server", "broker", "proxy", "loadgen")
# Folders of tests/unit whose subject is not a shipped package.
BESIDE = {
    "benchmarks": "benchmarks",
    "examples": "examples",
}
NAMED_PATH = re.compile(rf"`((?:{'|'.join(PACKAGES)}|tests|tools)/[\w/.]*)`")
TESTS = sorted(path for path in UNIT.rglob("test_*.py") if path.parent != UNIT)


def test_a_unit_test_is_in_the_folder_of_its_module() -> None:
    lost = [str(path.relative_to(UNIT)) for path in TESTS if not stands_with_its_module(path)]
    assert not lost, "named for no module of the folder, and importing none"


def test_a_test_file_named_after_a_module_mirrors_its_folder() -> None:
    places = {}
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            places.setdefault((package, path.stem), set()).add(path.parent.relative_to(ROOT))
    lost = [
        str(path.relative_to(UNIT))
        for path in TESTS
        if (homes := places.get((path.relative_to(UNIT).parts[0], path.stem[len("test_") :])))
        and subject(path.parent) not in homes
    ]
    assert not lost


def test_every_page_of_the_documentation_is_linked() -> None:
    linked = {
        (page.parent / target).resolve()
        for page in (ROOT / "README.md", ROOT / "docs" / "README.md")
        for target in re.findall(r"\]\(([\w./-]+\.md)", page.read_text(encoding="utf-8"))
    }
    assert not set((ROOT / "docs").glob("*.md")) - linked


def test_every_path_named_in_a_page_exists() -> None:
    named = {
        (page.name, path)
        for page in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
        if page.name != "CHANGELOG.md"
        for path in NAMED_PATH.findall(page.read_text(encoding="utf-8"))
    }
    assert not [(page, path) for page, path in sorted(named) if not (ROOT / path).exists()]


def stands_with_its_module(path: Path) -> bool:
    """Tell whether the mirrored folder has a module that a test is named for, or imports."""
    folder = subject(path.parent)
    if any(is_for(path.stem, one.stem) for one in (ROOT / folder).glob("*.py")):
        return True
    name = str(folder).replace("/", ".")
    return any(one == name or one.startswith(f"{name}.") for one in imports(path))


def is_for(test: str, module: str) -> bool:
    """Tell whether a test is named for a module, alone or as a prefix."""
    return test == f"test_{module}" or test.startswith(f"test_{module}_")


def imports(path: Path) -> set[str]:
    """Return the dotted names imported by a file."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found


def subject(folder: Path) -> Path:
    """Return the folder of the code tested in ``folder``, relative to the repository."""
    first, *rest = folder.relative_to(UNIT).parts
    return Path(BESIDE.get(first, first), *rest)
