"""docs/reference/api.md is generated from docs/openapi.yaml and has every operation with a command."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from mgmt.web.reference import group_of, reference

DOCS = Path(__file__).parents[3] / "docs"


@pytest.fixture(scope="module")
def document() -> Any:
    return yaml.safe_load((DOCS / "openapi.yaml").read_text())


def test_page_is_generated_from_the_document(document: Any):
    assert (DOCS / "reference" / "api.md").read_text() == reference(document), "run `make reference`"


def test_page_has_every_operation_once_with_a_command(document: Any):
    page = reference(document)
    paths = {path: operations for path, operations in document["paths"].items() if path != "/api/v1/schema/"}
    for path, operations in paths.items():
        for method in operations:
            title = f"\n### {method.upper()} {path.removeprefix('/api/v1')}\n"
            assert page.count(title) == 1, title
    assert page.count("\ncurl -sS") == sum(len(operations) for operations in paths.values())


@pytest.mark.parametrize(
    ("path", "title"),
    [
        ("/pipes/{pipe}/", "Pipes"),
        ("/pipes/{pipe}/minutes/{bucket}/units/", "Minutes, loss and lag"),
        ("/pipes/{pipe}/destinations/{name}/pause/", "Destinations"),
        ("/tenants/{tenant}/usage/", "Usage"),
        ("/something-new/", "Other"),
    ],
)
def test_longest_prefix_decides_the_group(path: str, title: str):
    assert group_of(path) == title
