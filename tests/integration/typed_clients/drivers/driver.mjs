// Program of a customer: sends with the generated TypeScript client, receives with it, and prints what it saw as JSON.
// Arguments: URL of ingest, API key, port to receive on, signing secret; and a public key with a time
// and a signature of the body `{}`, id `msg_1`. Each event is expected twice.

import { createServer } from "node:http";
import { BatchSender, decodeEvent, EventRefusedError, SignatureInvalidError, WebhookVerifier } from "./dist/index.js";
import { everything, invalidPointer, order, refund } from "./dist/samples.js";

const [ingest, key, port, secret, publicKey, sent, signature] = process.argv.slice(2);
const verifier = new WebhookVerifier(secret);
const received = {};
let deliveries = 0;
let tampered = 0;
let changed = () => {};

async function receive(request, response) {
  const parts = [];
  for await (const part of request) parts.push(part);
  const body = Buffer.concat(parts);
  try {
    const delivery = await verifier.verify(request.headers, body);
    const event = decodeEvent(delivery);
    await verifier.verify(request.headers, Buffer.concat([body, Buffer.from(" ")])).catch((error) => {
      if (error instanceof SignatureInvalidError) tampered++;
    });
    received[delivery.eventId] = { type: delivery.eventType, json: event.toJson() };
    deliveries++;
    response.writeHead(204).end();
  } catch (error) {
    console.error(error);
    response.writeHead(401).end();
  }
  changed();
}

const server = createServer(receive);
await new Promise((resolve) => server.listen(Number(port), "127.0.0.1", resolve));
const orders = [order("12.50"), order("9999999.99"), order("1", "eur")];
const settings = { firstBackoffMs: 100, maxWaitMs: 30_000 }; // one batch, which `flush` sends
const sender = new BatchSender({ url: ingest, key, source: "test", settings });
const results = [...orders, everything(everything()), refund()].map((event) => sender.send(event));
const accepted = [];
const refused = [];
const settled = Promise.allSettled(results);
await sender.flush();
for (const result of await settled) {
  if (result.status === "fulfilled") accepted.push(result.value.eventId);
  else if (result.reason instanceof EventRefusedError) {
    const { status, code, pointer } = result.reason;
    refused.push({ status, code, pointer });
  } else throw result.reason;
}
await sender.close();
const end = Date.now() + 60_000;
while (!(accepted.every((id) => id in received) && deliveries >= 2 * accepted.length) && Date.now() < end) {
  await new Promise((resolve) => {
    changed = resolve;
    setTimeout(resolve, end - Date.now()).unref();
  });
}
server.close();
server.closeAllConnections();
const ids = orders.slice(0, 2).map((one) => one.eventId);
const headers = { "webhook-id": "msg_1", "webhook-timestamp": sent, "webhook-signature": `v1,AAAA ${signature}` };
const asymmetric = [];
for (const body of ["{}", "[]"]) {
  const verified = new WebhookVerifier(publicKey).verify(headers, Buffer.from(body));
  asymmetric.push(await verified.then(() => true, (error) => !(error instanceof SignatureInvalidError)));
}
const invalid = invalidPointer();
console.log(JSON.stringify({ invalid, ids, accepted, refused, deliveries, tampered, asymmetric, received }));
