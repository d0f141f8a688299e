"""Names of sources and destinations: short and lower case, because topic keys, node names and URLs contain them."""

import re
from typing import Annotated, Final

from msgspec import Meta

# (?!\n): `$` alone lets a final newline pass.
NAME: Final = r"^[a-z0-9][a-z0-9-]{0,39}(?!\n)$"
NAME_PATTERN = re.compile(NAME)
NAME_WORDS: Final = "needs names of 1-40 of a-z, 0-9 and '-'"
Name = Annotated[str, Meta(pattern=NAME)]
