"""Licenses of the packages that Penstock needs: `python -m tests.license_gate LOCK`, in Markdown. 1 if one is refused.

Allowed are licenses that let a company run, change and distribute the server. LGPL is one, because its packages are
loaded as shared libraries that can be exchanged.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

# Words of licenses, as packages state them: one of them is enough in each part of `A AND B`.
ALLOWED: Final = (
    "MIT", "BSD", "Apache", "ISC", "MPL-2.0", "Mozilla Public License 2.0", "PSF-2.0", "Python Software Foundation",
    "LGPL-2.1", "LGPL-3.0", "OLDAP-2.8", "0BSD", "Zlib", "CC0-1.0",
)  # fmt: skip
_PINNED: Final = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^\]]*\])?==", re.MULTILINE)


def names_in(lock: str) -> list[str]:
    """Return the names of the packages of a lock file's text."""
    return _PINNED.findall(lock)


def not_allowed(packages: Iterable[Mapping[str, str]]) -> list[str]:
    """Return the packages whose license has none of the allowed words, with it."""
    return [
        f"{one['Name']}: {one['License']}"
        for one in packages
        if not all(any(_has(part, word) for word in ALLOWED) for part in one["License"].split(" AND "))
    ]


def _has(license_text: str, word: str) -> bool:
    return re.search(rf"(?<![A-Z]){re.escape(word)}", license_text) is not None


def licenses_of(names: Iterable[str]) -> list[dict[str, str]]:
    """Return name, version, license and URL of installed packages, as pip-licenses reads them."""
    options = ["--format=json", "--with-urls", "--with-system", "--packages", *names]
    answer = subprocess.run([sys.executable, "-m", "piplicenses", *options], capture_output=True, text=True, check=True)
    found: list[dict[str, str]] = json.loads(answer.stdout)
    return found


def page(packages: Iterable[Mapping[str, str]]) -> str:
    """Return the table of licenses."""
    rows = [f"| [{one['Name']}]({one['URL']}) | {one['Version']} | {one['License']} |" for one in packages]
    head = ["# Licenses of the packages that Penstock needs", "", "| package | version | license |", "|---|---|---|"]
    return "\n".join([*head, *rows]) + "\n"


def main() -> int:
    """Print the table; return 1 if a license is not allowed or a package of the lock is not installed."""
    names = names_in(Path(sys.argv[1]).read_text())
    packages = licenses_of(names)
    sys.stdout.write(page(packages))
    known = {_normal(one["Name"]) for one in packages}
    problems = [f"not allowed: {text}" for text in not_allowed(packages)]
    problems += [f"not installed: {name}" for name in names if _normal(name) not in known]
    sys.stderr.write("".join(f"{text}\n" for text in problems))
    return int(bool(problems))


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


if __name__ == "__main__":
    sys.exit(main())
