"""Figures of the console's pages, read from their HTML."""

import re
from collections.abc import Mapping
from typing import Final

OUTCOMES: Final = ("delivered", "filtered", "dead", "retrying", "lost")
_THIN_SPACE: Final = "\u202f"  # between the thousands of a number


def number(text: str) -> int:
    """Return a number as a page shows it."""
    return int(re.sub(r"\D", "", text))


def plain(page: str) -> str:
    """Return a page without tags, with one space between texts."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page.replace(_THIN_SPACE, "")))


def has_table(page: str, label: str) -> bool:
    """Return whether the region `label` of a page is shown and has a table."""
    return f'aria-label="{label}"' in page and "<table" in page.split(f'aria-label="{label}"')[1]


def table(page: str, label: str) -> list[dict[str, str]]:
    """Return the rows of the table in the region `label`, by heading; the foot's rows are included."""
    html = page.replace(_THIN_SPACE, "").split(f'aria-label="{label}"')[1].split("</table>")[0]
    rows = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.S) for row in re.findall(r"<tr.*?</tr>", html, re.S)]
    texts = [[re.sub(r"<svg.*?</svg>|<[^>]+>|\s+", " ", cell).strip() for cell in row] for row in rows]
    return [dict(zip(texts[0], row, strict=False)) for row in texts[1:]]


def outcomes_of(row: Mapping[str, str], name: str) -> int:
    """Return one outcome of a row of a page; a column that is not shown is 0."""
    return number(row.get(name.capitalize()) or "0")


def outcomes(row: Mapping[str, str]) -> dict[str, int]:
    """Return the outcomes of a row of a page, whose headings are capitalised; a column that is not shown is 0."""
    return {name: number(row.get(name.capitalize()) or row.get(name) or "0") for name in OUTCOMES}
