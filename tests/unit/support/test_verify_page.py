"""docs/verify-signatures.md shows the receivers of examples/verify_signatures, which an integration test runs."""

import re
from typing import Final

from localbox.settings import ROOT

EXAMPLES: Final = ROOT / "examples" / "verify_signatures"
PAGE: Final = ROOT / "docs" / "verify-signatures.md"
# A link to the file, then its code in a fence.
SHOWN: Final = re.compile(r"^\[(\S+)\]\(\.\./examples/verify_signatures/\1\).*?\n+```\w+\n(.*?)^```$", re.M | re.S)


def test_page_shows_every_receiver_as_it_is():
    shown = dict(SHOWN.findall(PAGE.read_text()))
    assert shown == {path.name: path.read_text() for path in EXAMPLES.iterdir() if path.is_file()}
