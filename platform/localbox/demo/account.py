"""What each destination of the full demo must have got, worked out from the events alone, against what it did get.

Imports nothing of Penstock. `account.py EVENTS TEAMS KAFKA TOPIC LAKE RECEIVED SENT...`; sets of (id, SHA-256 of body).
"""

import gzip
import json
import sys
from collections import defaultdict
from hashlib import sha256
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, TopicPartition
from deltalake import DeltaTable, QueryBuilder

EVENTS, TEAMS, KAFKA, TOPIC, LAKE, RECEIVED, *SENT = sys.argv[1:]


def due_of(event: dict[str, Any]) -> dict[str, dict[str, Any] | None]:
    event["payload"].get("repository", {}).pop("owner", None)
    event["team"] = {"name": teams.get(event["event"], "all")}
    feed = {"event": event["event"], "payload": {"action": "created"}, "team": event["team"]}
    created, ours = event["payload"].get("action") == "created", event["team"]["name"] == "code"
    return {"lake": event, "receiver": event if ours else None, "feed": feed if created else None}


due, got = defaultdict[str, set[Any]](set), defaultdict[str, set[Any]](set)
teams = json.loads(Path(TEAMS).read_text())
events = [line for line in gzip.decompress(Path(EVENTS).read_bytes()).splitlines() if line.strip()]
for sent in (line.split("\t") for log in SENT for line in Path(log).read_text().splitlines()):
    event = json.loads(events[int(sent[0]) % len(events)])
    for name, body in due_of(event).items() if sent[3] == "202" and event["event"] != "star" else ():
        text = json.dumps(body, separators=(",", ":"), ensure_ascii=False)
        due[name] |= {(sent[4], sha256(text.encode()).hexdigest())} if body else set()
got["receiver"] = {tuple(line.split("\t")[1::2]) for line in Path(RECEIVED).read_text().splitlines()}
table = QueryBuilder().register("lake", DeltaTable(LAKE)).execute("select id, body from lake").read_all()
rows = list(zip(table["id"].to_pylist(), table["body"].to_pylist(), strict=True))
got["lake"] = {(id_, sha256(body.encode()).hexdigest()) for id_, body in rows}
consumer = Consumer({"bootstrap.servers": KAFKA, "group.id": "account", "enable.partition.eof": True})
places = [TopicPartition(TOPIC, number, 0) for number in consumer.list_topics(TOPIC).topics[TOPIC].partitions]
consumer.assign(places)
while places:
    if (message := consumer.poll(30)).error():
        places.pop()  # the end of one partition
    else:
        got["feed"].add((dict(message.headers())["penstock-id"].decode(), sha256(message.value()).hexdigest()))
counts = {name: {"due": len(due[name]), "missing": len(due[name] - got[name])} for name in sorted(due)}
print(json.dumps(counts | {"strange": sum(len(got[name] - due[name]) for name in due)}))
sys.exit(due != got or len(due) != 3 or len(rows) != len(got["lake"]))
