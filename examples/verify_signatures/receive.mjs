// Verify deliveries with Node 18 or newer, without packages: `PENSTOCK_SIGNING_SECRET=whsec_... node receive.mjs`.
import { createHmac, timingSafeEqual } from "node:crypto";
import { createServer } from "node:http";

const KEY = Buffer.from(process.env.PENSTOCK_SIGNING_SECRET.replace(/^whsec_/, ""), "base64");
const TOLERANCE_S = 300;

/** Return whether Penstock signed these exact bytes less than five minutes ago. `body` is a Buffer. */
export function isValid(headers, body) {
  const id = headers["webhook-id"] ?? "";
  const sent = headers["webhook-timestamp"] ?? "";
  const signatures = headers["webhook-signature"] ?? "";
  if (!id || !/^\d+$/.test(sent) || Math.abs(Date.now() / 1000 - Number(sent)) > TOLERANCE_S) return false;
  const digest = createHmac("sha256", KEY).update(`${id}.${sent}.`).update(body).digest("base64");
  const expected = Buffer.from(`v1,${digest}`);
  return signatures.split(" ").some((signature) => {
    const given = Buffer.from(signature);
    return given.length === expected.length && timingSafeEqual(given, expected);
  });
}

const server = createServer(async (request, response) => {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const valid = isValid(request.headers, Buffer.concat(chunks)); // verify the body before it is parsed
  // Handle each id once: a retry has the id of the first attempt.
  if (valid) console.log("received", request.headers["webhook-id"]);
  response.writeHead(valid ? 204 : 401).end();
});
server.listen(Number(process.env.PORT ?? 9000), "127.0.0.1");
