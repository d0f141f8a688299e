"""Commands of the box, which runs Penstock on this machine, from a checkout or from the installed wheel."""

import os
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NoReturn

from penstock_cli.errors import CliError, ExitCode

# Some of what `pip install --no-deps` leaves out.
NEEDED: Final = ("django", "celery", "pyspark", "granian", "httptools", "psutil")


def run_box(words: Sequence[str]) -> NoReturn:
    """Replace this process by the command of the box. Raises CliError.

    words: those of localbox; `demo`, whose options are variables; or `manage` and the words of a Django command
    """
    if missing := [name for name in NEEDED if find_spec(name) is None]:
        hint = "Install all of them: pip install 'penstock[box]'"
        raise CliError(f"the box needs packages that are not installed: {', '.join(missing)}", ExitCode.FAILED, hint)
    home = home_of(Path(__file__))
    path = os.pathsep.join((str(home), str(home / "platform")))
    python = [sys.executable, "-P", "-m"]  # -P: no module of the current directory
    sys.stdout.flush()
    os.execve(python[0], [*python, *_module(list(words), home)], os.environ | {"PYTHONPATH": path})  # noqa: S606 no shell is wanted


def _module(words: list[str], home: Path) -> list[str]:
    match words:
        case ["demo"]:
            return ["localbox.demo"]
        case ["demo", *_]:
            hint = "Its options are variables, such as: ONCE=1 COUNT=200 penstock box demo"
            raise CliError("demo: needs no further words", ExitCode.USAGE, hint)
        case ["run", *rest]:
            return ["localbox", "run", "--", *rest]
        case ["manage", *rest]:
            return ["localbox", "run", "--", sys.executable, str(home / "manage.py"), *rest]
    return ["localbox", *words]


def home_of(module: Path) -> Path:
    """Return the folder of the server: of the checkout, or of the wheel. Raises CliError if there is none.

    module: file of this package
    """
    above = module.resolve().parents[1]
    for home in (above / "penstock_home", above.parent):
        if (home / "platform" / "localbox").is_dir():
            return home
    raise CliError("the server is not part of this installation", ExitCode.FAILED, "Install the wheel of a release")
