"""Profiles: URL and token of an installation, in a file that only the user can read.

PENSTOCK_URL and PENSTOCK_TOKEN win over the file. PENSTOCK_USER and PENSTOCK_PASSWORD sign in without a token.
"""

import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from penstock_cli.errors import CliError, ExitCode

DEFAULT: Final = "default"
LOG_IN: Final = "Run `penstock login`, or set PENSTOCK_URL and PENSTOCK_TOKEN."


@dataclass(frozen=True)
class Profile:
    """Installation and credentials: a token, or a user name and password."""

    url: str
    token: str = ""
    user: str = ""
    password: str = ""


def config_folder(env: Mapping[str, str] = os.environ) -> Path:
    """Return the folder of the user's settings: PENSTOCK_CONFIG_DIR, or the one of the operating system."""
    if folder := env.get("PENSTOCK_CONFIG_DIR"):
        return Path(folder)
    import typer

    return Path(typer.get_app_dir("penstock"))


def profile_from(name: str, env: Mapping[str, str] = os.environ) -> Profile:
    """Return the profile to use: the environment, then the stored profile of this name. Raises CliError."""
    stored = _read(config_folder(env))
    chosen = name or env.get("PENSTOCK_PROFILE", "") or DEFAULT
    saved = stored.get(chosen, {})
    if name and not saved:
        known = f"Known profiles: {', '.join(sorted(stored))}." if stored else "There are none yet."
        raise CliError(f"profile `{name}` does not exist", ExitCode.REFUSED, f"{known} {LOG_IN}")
    url = checked_url(env.get("PENSTOCK_URL") or saved.get("url", ""))
    if token := env.get("PENSTOCK_TOKEN"):
        return Profile(url, token)
    if (user := env.get("PENSTOCK_USER")) and (password := env.get("PENSTOCK_PASSWORD")):
        return Profile(url, user=user, password=password)
    if saved.get("token") and url == saved.get("url"):
        return Profile(url, saved["token"])
    raise CliError(f"not signed in to {url}", ExitCode.REFUSED, LOG_IN)


def checked_url(text: str) -> str:
    """Return the URL of a console without a slash at the end. Raises CliError."""
    if not text:
        raise CliError("not signed in", ExitCode.REFUSED, LOG_IN)
    if not text.startswith(("http://", "https://")):
        raise CliError(f"{text}: needs the URL of the console, such as https://penstock.example.com")
    return text.rstrip("/")


def save_profile(name: str, profile: Profile, env: Mapping[str, str] = os.environ) -> Path:
    """Store a profile, readable by the user only; return the path of the file."""
    folder = config_folder(env)
    profiles = _read(folder) | {name: {"url": profile.url, "token": profile.token}}
    return write_private(folder / "profiles.json", json.dumps(profiles, indent=2, sort_keys=True) + "\n")


def write_private(path: Path, text: str) -> Path:
    """Replace a file, with mode 0600, so that a reader sees the old text or the new one. Raises CliError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # mode 0600
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(temporary).replace(path)
    except OSError as exc:
        raise CliError(f"{path}: cannot be written: {exc}") from exc
    return path


def _read(folder: Path) -> dict[str, Any]:
    path = folder / "profiles.json"
    if not path.exists():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as exc:
        raise CliError(f"{path}: cannot be read: {exc}", hint="Correct or remove the file.") from exc
    if not isinstance(found, dict):
        raise CliError(f"{path}: needs an object", hint="Remove the file, then run `penstock login`.")
    return found
