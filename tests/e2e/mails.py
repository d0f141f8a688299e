"""E-mails of a box, which writes them to files."""

import re
import time
from collections.abc import Iterator
from email import message_from_bytes, policy
from pathlib import Path
from typing import Final

from tests.support.patience import Patience

MAIL_S: Final = 30


class Mails:
    """E-mails that the box sent, as files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._seen: set[str] = set()

    def link(self, to: str, path: str) -> str:
        """Wait for a new e-mail to an address; return the path of its link that starts with `path`."""
        patience = Patience(MAIL_S)
        while not patience.is_over:
            for text in self._texts(to):
                found = re.search(rf"https?://\S*?({path}\S+)", text)
                if found and found[1] not in self._seen:
                    self._seen.add(found[1])
                    return found[1]
            time.sleep(0.1)
        raise AssertionError(f"no e-mail to {to} with a link to {path}")

    def _texts(self, to: str) -> Iterator[str]:
        for file in sorted(self.folder.glob("*.log")):
            for part in re.split(rb"\n-{79}\n", file.read_bytes()):
                message = message_from_bytes(part.lstrip(), policy=policy.default)
                if message["To"] == to:
                    yield message.get_content()
