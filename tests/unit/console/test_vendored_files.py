"""Vendored files of the browser: each file matches its reviewed checksum, each package has its licence."""

import hashlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
for_each_vendor = pytest.mark.parametrize("vendor", [ROOT / "static" / "vendor", ROOT / "tests" / "vendor"])


@for_each_vendor
def test_every_vendored_file_matches_its_checksum_and_none_is_unlisted(vendor: Path):
    lines = [line.split("  ") for line in (vendor / "SHA256SUMS").read_text().splitlines()]
    listed = {name: digest for digest, name in lines}
    found = {str(f.relative_to(vendor)): f for f in vendor.rglob("*") if f.is_file() and f.name != "SHA256SUMS"}
    assert {name: hashlib.sha256(file.read_bytes()).hexdigest() for name, file in found.items()} == listed


@for_each_vendor
def test_every_vendored_package_has_a_version_and_a_licence(vendor: Path):
    for package in vendor.iterdir():
        if package.is_dir():
            assert re.search(r"-\d+\.\d+\.\d+$", package.name), package
            assert (package / "LICENSE").is_file(), package


def test_no_template_loads_anything_from_another_host():
    for template in (ROOT / "templates").rglob("*.html"):
        loads = re.findall(r"<(?:script|link|img|iframe)[^>]*(?:src|href)=\"([^\"]*)\"", template.read_text())
        assert not [url for url in loads if url.startswith(("http", "//"))], template


def test_no_template_contains_inline_script_or_style():
    for template in (ROOT / "templates").rglob("*.html"):
        text = template.read_text()
        assert not re.search(r'<script(?![^>]*(src=|type="application/json"))', text), template
        assert not re.search(r"\s(style|on[a-z]+)=\"", text), template
