// Verification of deliveries: Standard Webhooks signatures (standardwebhooks.com, specification 1.0), by Web Crypto.

const TOLERANCE_S = 300; // between the receiver's clock and the signed time

/** The request is not a delivery by the holder of the secret, or is too old. Return 401. */
export class SignatureInvalidError extends Error {
  override name = "SignatureInvalidError";
}

/** A delivery whose signature is valid. */
export interface VerifiedDelivery {
  /** The same for each attempt of Penstock to deliver it. */
  readonly id: string;
  /** The same even if the sender repeated the event; "" without CloudEvents attributes. Handle each once. */
  readonly eventId: string;
  /** Type of the CloudEvent; "" if there is none. */
  readonly eventType: string;
  readonly sentAtS: number;
  readonly body: Uint8Array;
}

/** Headers as Fetch and Node have them. */
export type RequestHeaders = Headers | { readonly [name: string]: string | readonly string[] | undefined };

type Check = (signed: Uint8Array<ArrayBuffer>, signature: string) => Promise<boolean>;

/** Verifies requests with one secret, or several during a rotation: `whsec_` (v1), or a public key `whpk_` (v1a). */
export class WebhookVerifier {
  private readonly checks: readonly Check[];

  /** Throws RangeError for a malformed secret. */
  constructor(secrets: string | readonly string[], private readonly toleranceS = TOLERANCE_S) {
    this.checks = (typeof secrets === "string" ? [secrets] : secrets).map(checkOf);
    if (this.checks.length === 0) throw new RangeError("needs at least one secret");
  }

  /** Return the delivery. `body`: the exact bytes of the request. Throws SignatureInvalidError. */
  async verify(headers: RequestHeaders, body: Uint8Array, nowS = Date.now() / 1_000): Promise<VerifiedDelivery> {
    const [id, sent, signatures] = ["webhook-id", "webhook-timestamp", "webhook-signature"].map((name) =>
      valueOf(headers, name),
    ) as [string, string, string];
    if (!id || !/^\d{1,12}$/.test(sent) || !signatures) {
      throw new SignatureInvalidError("needs the headers webhook-id, webhook-timestamp and webhook-signature");
    }
    if (Math.abs(nowS - Number(sent)) > this.toleranceS) {
      throw new SignatureInvalidError(`needs a time within ${this.toleranceS} seconds of this clock`);
    }
    const head = new TextEncoder().encode(`${id}.${sent}.`);
    const signed = new Uint8Array(head.length + body.length);
    signed.set(head);
    signed.set(body, head.length);
    for (const signature of signatures.split(" ")) {
      for (const check of this.checks) {
        if (await check(signed, signature)) {
          const [eventId, eventType] = [valueOf(headers, "ce-id"), valueOf(headers, "ce-type")];
          return { id, eventId, eventType, sentAtS: Number(sent), body };
        }
      }
    }
    throw new SignatureInvalidError("needs a signature by one of the secrets");
  }
}

function valueOf(headers: RequestHeaders, name: string): string {
  if (headers instanceof Headers) return headers.get(name) ?? "";
  for (const [given, value] of Object.entries(headers)) {
    if (given.toLowerCase() === name) return typeof value === "string" ? value : (value?.[0] ?? "");
  }
  return "";
}

function checkOf(secret: string): Check {
  const place = secret.indexOf("_");
  const prefix = secret.slice(0, place);
  const key = bytesOf(secret.slice(place + 1));
  if (key === undefined) throw new RangeError("needs base64 after the prefix of the secret");
  if (prefix === "whsec" && key.length > 0) return checker(key, { name: "HMAC", hash: "SHA-256" }, "v1,");
  if (prefix === "whpk" && key.length === 32) return checker(key, { name: "Ed25519" }, "v1a,");
  throw new RangeError("needs a secret with the prefix whsec_, or a public key of 32 bytes with the prefix whpk_");
}

function checker(key: Uint8Array<ArrayBuffer>, algorithm: { name: string; hash?: string }, prefix: string): Check {
  let imported: Promise<CryptoKey> | undefined;
  return async (signed, signature) => {
    const given = signature.startsWith(prefix) ? bytesOf(signature.slice(prefix.length)) : undefined;
    if (given === undefined) return false;
    imported ??= globalThis.crypto.subtle.importKey("raw", key, algorithm, false, ["verify"]);
    return globalThis.crypto.subtle.verify(algorithm.name, await imported, given, signed);
  };
}

function bytesOf(base64: string): Uint8Array<ArrayBuffer> | undefined {
  if (!/^[A-Za-z0-9+/]*={0,2}$/.test(base64) || base64.length % 4 !== 0) return undefined;
  return Uint8Array.from(atob(base64), (one) => one.charCodeAt(0));
}
