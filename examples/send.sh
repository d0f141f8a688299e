#!/bin/sh
# Send one event, the JSON document on standard input, with curl. Reads PENSTOCK_INGEST_URL and PENSTOCK_KEY.
# curl repeats the request after 429, 5xx and time-outs, and waits as long as Retry-After says.
exec curl --silent --show-error --fail-with-body --retry 7 --retry-connrefused --max-time 20 \
  --header "Authorization: Bearer $PENSTOCK_KEY" \
  --header "Content-Type: application/json" \
  --data-binary @- \
  "${PENSTOCK_INGEST_URL:-http://127.0.0.1:8801}/v1/events"
