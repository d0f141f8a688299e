"""A release is named by its content and made once."""

import zipfile
from pathlib import Path

from controlplane.compute.releases import pack_release


def code(root: Path, text: str) -> Path:
    package = root / "dataplane"
    package.mkdir(parents=True, exist_ok=True)
    (package / "__init__.py").write_text(text)
    return root


def test_the_same_code_gives_the_same_zip_wherever_it_lies(tmp_path: Path):
    first = pack_release(code(tmp_path / "a", "x = 1"), tmp_path / "r1")
    second = pack_release(code(tmp_path / "b", "x = 1"), tmp_path / "r2")
    assert (first.name, first.read_bytes()) == (second.name, second.read_bytes())


def test_other_code_gets_another_name_and_the_old_zip_stays(tmp_path: Path):
    first = pack_release(code(tmp_path, "x = 1"), tmp_path / "r")
    second = pack_release(code(tmp_path, "x = 2"), tmp_path / "r")
    assert first != second
    assert first.exists()


def test_the_zip_can_be_imported_from(tmp_path: Path):
    path = pack_release(code(tmp_path, "x = 1"), tmp_path / "r")
    assert zipfile.ZipFile(path).namelist() == ["dataplane/__init__.py"]
