"""Terminal of a user: runs commands in bash, exactly as they are shown, with the real curl."""

import os
import re
import subprocess
from pathlib import Path
from typing import Final

_STATUS: Final = "penstock-test-status="
_STREAMS: Final = re.compile(r"^curl -\w*N\b", re.MULTILINE)  # without buffering: the response does not end


class Terminal:
    """Bash in a folder with environment variables. curl reports each status through its own configuration file."""

    def __init__(self, folder: Path, **variables: str) -> None:
        self.folder = folder
        self.env = {"PATH": os.environ["PATH"], "CURL_HOME": str(folder), "NO_PROXY": "*", **variables}

    def run(self, command: str) -> tuple[list[int], str]:
        """Run a command; return the status of each response, and all that was printed."""
        most_s = 2 if _STREAMS.search(command) else 20
        settings = f'write-out = "%{{stderr}}{_STATUS}%{{http_code}}\\n"\nmax-time = {most_s}\n'
        (self.folder / ".curlrc").write_text(settings)
        words = ["bash", "--noprofile", "--norc", "-eu", "-c", command]
        done = subprocess.run(
            words, env=self.env, cwd=self.folder, capture_output=True, text=True, timeout=60, check=False
        )
        statuses = [int(status) for status in re.findall(rf"{_STATUS}(\d+)", done.stderr)]
        return statuses, f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
