"""Send events, one JSON document per line of standard input, and print the id of each. Needs only the standard library.

Reads PENSTOCK_INGEST_URL and PENSTOCK_KEY. Only a 202 means that Penstock has stored an event. After 429, 5xx or a
broken connection the event is sent again. It may have been stored the first time: if the receiver must not get it
twice, use `dedup` in the pipe.
"""

import json
import os
import sys
import time
import urllib.error
import urllib.request

URL = os.environ.get("PENSTOCK_INGEST_URL", "http://127.0.0.1:8801") + "/v1/events"
ATTEMPTS = 8
MAX_WAIT_S = 30.0


def send(event: bytes) -> str:
    """Send one event until it is stored; return its id. Raises HTTPError for an event that will never be accepted."""
    headers = {"Authorization": f"Bearer {os.environ['PENSTOCK_KEY']}", "Content-Type": "application/json"}
    wait_s = 0.5
    for attempt in range(1, ATTEMPTS + 1):
        try:
            with urllib.request.urlopen(urllib.request.Request(URL, event, headers), timeout=20) as response:
                return str(json.load(response)["id"])
        except urllib.error.HTTPError as error:
            if attempt == ATTEMPTS or not (error.code == 429 or error.code >= 500):
                raise
            wait_s = float(error.headers.get("Retry-After") or wait_s)
        except OSError:  # no response: refused, reset or timed out
            if attempt == ATTEMPTS:
                raise
        time.sleep(min(wait_s, MAX_WAIT_S))
        wait_s *= 2
    raise AssertionError("the last attempt returns or raises")


if __name__ == "__main__":
    for line in sys.stdin.buffer:
        if line.strip():
            print(send(line))
