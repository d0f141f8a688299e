"""Sphinx configuration of the documentation site: `make docs` builds the Markdown files of the repository.

The source directory is the root of the repository, so that a link has the same path here and on a code host. The
navigation is read from the tables of docs/README.md: a page that is added there is in the menu.
"""

import os
import re
import tomllib
from pathlib import Path
from typing import Final

from sphinx.application import Sphinx

ROOT: Final = Path(__file__).resolve().parent.parent
INDEX: Final = "docs/README"
_SECTION: Final = re.compile(r"^## (\w[\w -]*).*?\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_PAGE: Final = re.compile(r"\]\(([\w./-]+)\.md[)#]")

project = "Penstock"
author = "The Penstock authors"
release = version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
extensions = ["myst_parser"]
root_doc = INDEX
include_patterns = ["*.md", "docs/**.md", "examples/*.md"]
exclude_patterns = [
    ".*", "var", "**/node_modules", "controlplane", "dataplane", "deploy", "mgmt", "penstock_client", "platform",
    "static", "templates", "tests",
]  # fmt: skip
html_theme = "furo"
html_title = f"Penstock {release}"
html_copy_source = False
html_show_sphinx = False
myst_heading_anchors = 4
myst_enable_extensions = ["fieldlist"]


def _menu(text: str) -> str:
    """Return one hidden list of pages for each section of the index."""
    parts = []
    for title, body in _SECTION.findall(text):
        paths = dict.fromkeys(os.path.normpath(f"/docs/{page}") for page in _PAGE.findall(body))
        parts.append("\n".join([f"```{{toctree}}\n:hidden:\n:caption: {title}\n", *paths, "```\n"]))
    return "\n".join(parts)


def _add_menu(_: Sphinx, page: str, source: list[str]) -> None:
    """Append the navigation to the index, and the records to the list of decisions."""
    if page == INDEX:
        source[0] += "\n" + _menu(source[0])
    elif page == "docs/decisions/README":
        source[0] += "\n```{toctree}\n:hidden:\n:glob:\n\n0*\n```\n"


def _write_entrance(app: Sphinx, failure: Exception | None) -> None:
    """Let the root of the site lead to the index."""
    if failure is None and app.builder.name == "html":
        page = f'<!doctype html><title>Penstock</title><meta http-equiv="refresh" content="0; url={INDEX}.html">\n'
        (Path(app.outdir) / "index.html").write_text(page)


def setup(app: Sphinx) -> None:
    """Register the handlers."""
    app.connect("source-read", _add_menu)
    app.connect("build-finished", _write_entrance)
