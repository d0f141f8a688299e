"""Compares the deliveries of each destination of the full demo with those that are due, computed from the events alone.

Imports nothing of Penstock. `account.py EVENTS TEAMS KAFKA TOPIC LAKE RECEIVED SENT...`; sets of (id, SHA-256 of body).
An id is a UUID of version 7, whose time gives an event's window; a window's own message has another id, here "".
"""

import gzip
import json
import os
import sys
from collections import defaultdict
from hashlib import sha256
from pathlib import Path
from time import gmtime, strftime
from typing import Any

from confluent_kafka import Consumer, TopicPartition
from deltalake import DeltaTable, QueryBuilder

EVENTS, TEAMS, KAFKA, TOPIC, LAKE, RECEIVED, *SENT = sys.argv[1:]
due, panes = defaultdict[str, set[Any]](set), defaultdict[Any, list[Any]](list)
compact = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode
teams, events = json.loads(Path(TEAMS).read_text()), gzip.decompress(Path(EVENTS).read_bytes()).splitlines()
sent = [line.split("\t") for log in SENT for line in Path(log).read_text().splitlines()]
for number, id_ in ((int(fields[0]), fields[4]) for fields in sent if fields[3] == "202"):
    if (event := json.loads(events[number % len(events)]))["event"] != "star":
        event["payload"].get("repository", {}).pop("owner", None)
        event["team"] = {"name": teams.get(event["event"], "all")}
        feed = compact({"event": event["event"], "payload": {"action": "created"}, "team": event["team"]})
        due["lake"].add((id_, compact(event)))
        due["receiver"] |= {(id_, compact(event))} if event["team"]["name"] == "code" else set()
        due["feed"] |= {(id_, feed)} if event["payload"].get("action") == "created" else set()
        panes[event["team"]["name"], int(id_.replace("-", "")[:12], 16) // 10_000 * 10].append(event["payload"])
for (team, at_s), seen in panes.items():
    start, end = (strftime("%Y-%m-%dT%H:%M:%SZ", gmtime(second)) for second in (at_s, at_s + 10))
    values = {"repositories": len({payload["repository"]["full_name"] for payload in seen if "repository" in payload})}
    said = {"window": "teams", "start": start, "end": end, "by": {"team.name": team}, "events": len(seen)}
    due["lake"].add(("", compact(said | {"values": values})))
table = QueryBuilder().register("lake", DeltaTable(LAKE)).execute("select id, body from lake").read_all()
rows = list(zip(table["id"].to_pylist(), table["body"].to_pylist(), strict=True))
signed_in = json.loads(Path(os.environ.get("PENSTOCK_KAFKA_SETTINGS") or os.devnull).read_text() or "{}")
settings = {"bootstrap.servers": KAFKA, "group.id": "penstock-account", "enable.auto.commit": False}
consumer = Consumer(settings | signed_in)
consumer.assign([TopicPartition(TOPIC, number, 0) for number in consumer.list_topics(TOPIC).topics[TOPIC].partitions])
records = [(dict(record.headers()), record.value().decode()) for record in consumer.consume(1_000_000, 5)]
got: dict[str, set[Any]] = {"feed": {(headers["penstock-id"].decode(), body) for headers, body in records}}
got["lake"] = {("" if body.startswith('{"window":') else id_, body) for id_, body in rows}
for of in (due, got):
    of.update({name: {(id_, sha256(text.encode()).hexdigest()) for id_, text in of[name]} for name in of})
got["receiver"] = {tuple(line.split("\t")[1::2]) for line in Path(RECEIVED).read_text().splitlines()}
counts = {name: {"due": len(due[name]), "missing": len(due[name] - got[name])} for name in sorted(due)}
print(json.dumps(counts | {"windows": len(panes), "strange": sum(len(got[name] - due[name]) for name in due)}))
sys.exit(due != got or len(due) != 3 or len(rows) != len(got["lake"]))
