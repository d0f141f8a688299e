"""Create a pipe by the API: `python examples/create_pipe.py examples/pipe.json`. Needs only the standard library.

Reads PENSTOCK_URL, and PENSTOCK_TOKEN, an API token with the scope publish. Prints two lines for a shell: the new API
key, for the sender, and the signing secret of the first destination, for the receiver. Penstock shows each of them
only once.
"""

import json
import os
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

URL = os.environ.get("PENSTOCK_URL", "http://127.0.0.1:8800")
LIVE_WITHIN_S = 180  # the first pipe waits for its cell to start


def call(method: str, path: str, body: Any = None) -> Any:
    """Call the API. Raises urllib.error.HTTPError; its body is application/problem+json and says what is wrong."""
    headers = {"Authorization": f"Bearer {os.environ['PENSTOCK_TOKEN']}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{URL}/api/v1/{path}", data, headers, method=method)
    with urllib.request.urlopen(request, timeout=30) as response:
        return json.load(response)


def main() -> int:
    """Create the pipe, an API key and a signing secret, and wait until the pipe accepts events."""
    wanted = json.loads(Path(sys.argv[1]).read_text())
    source, destination = next(iter(wanted["spec"]["sources"])), next(iter(wanted["spec"]["destinations"]))
    pipe = call("POST", "pipes/", wanted)["id"]
    secret = call("POST", f"pipes/{pipe}/destinations/{destination}/rotate-secret/")["secret"]
    key = call("POST", f"pipes/{pipe}/keys/", {"source": source, "label": "example"})["key"]
    give_up_at = time.monotonic() + LIVE_WITHIN_S
    while call("GET", f"pipes/{pipe}/")["live_revision"] is None:
        if time.monotonic() > give_up_at:
            print("the pipe is not live yet; its page says why", file=sys.stderr)
            return 1
        time.sleep(1)
    print(f"export PENSTOCK_KEY={key}\nexport PENSTOCK_SIGNING_SECRET={secret}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
