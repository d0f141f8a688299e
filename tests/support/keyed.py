"""A sender of events with keys, and the order in which the events of each key arrived."""

import http.client
import json
import threading
from collections import defaultdict
from collections.abc import Iterable
from typing import Final

from loadgen.scripted import Received

KEYS: Final = 12
EACH_PER_S: Final = 10


class Keyed:
    """Sender of each key's events one at a time, each after the ACK of the last one; `acked[key]` counts them."""

    def __init__(self, port: int, key: str) -> None:
        self._port, self._key = port, key
        self._over = threading.Event()
        self.acked: defaultdict[str, int] = defaultdict(int)
        self._threads = [threading.Thread(target=self._run, args=(f"u{n}",)) for n in range(KEYS)]

    def __enter__(self) -> "Keyed":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join(30)

    def _run(self, user: str) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=15)
        headers = {"authorization": f"Bearer {self._key}", "content-type": "application/json"}
        while not self._over.wait(1 / EACH_PER_S):
            body = json.dumps({"user": user, "n": self.acked[user]})
            connection.request("POST", "/v1/events", body, headers)
            answer = connection.getresponse()
            answer.read()
            assert answer.status == 202
            self.acked[user] += 1
        connection.close()


def numbers_of(received: Iterable[Received]) -> dict[str, list[int]]:
    """Return the events of each key in order of arrival; a repeated event counts at its first arrival."""
    came: defaultdict[str, dict[int, None]] = defaultdict(dict)
    for one in received:
        event = json.loads(one.body)
        came[event["user"]].setdefault(event["n"])
    return {user: list(numbers) for user, numbers in came.items()}
