// Events of the test, built with the generated classes: the compiler checks their types.

import { Everything, InvalidValueError, Left, Money, Order, Refund, RefundLinesItem, Right, TimeUuid } from "./index.js";

const UUID = "6ba7b810-9dad-11d1-80b4-00c04fd430c8";

export function order(amount: string, currency = "EUR"): Order {
  return new Order({
    id: TimeUuid.now(),
    price: new Money({ amount, currency }),
    count: 3,
    serial: 9_007_199_254_740_993n,
    state: "PAID",
    placedAt: "2026-11-25T08:00:00.123457Z",
    tags: ["a", 'b"\u2028\u00fc\u{1f600}'],
  });
}

export function everything(child: Everything | null = null): Everything {
  return new Everything({
    nothing: null,
    flag: true,
    small: -2147483648,
    large: 2n ** 63n - 1n,
    single: 1.5,
    double: 0.1,
    raw: Uint8Array.of(0, 255),
    digest: new TextEncoder().encode("abcd"),
    uuid: UUID,
    date: "2026-11-25",
    timestampMillis: "2026-11-25T08:00:00.123Z",
    timestampMicros: "2026-11-25T08:00:00.123457Z",
    timestampNanos: "2026-11-25T08:00:00Z",
    localTimestampMicros: "2026-11-25T08:00:00.000005",
    timeMicros: "08:00:00.000001",
    timeMillis: "08:00:00",
    prices: { EUR: "12.50" },
    either: child ? new Right({ x: 1 }) : new Left({ x: 1 }),
    maybe: null,
    child,
  });
}

export function refund(): Refund {
  return new Refund({
    refundId: UUID,
    amount: 12.5,
    at: "2026-11-25T08:00:00Z",
    kind: "part of it",
    count: 10n,
    lines: [new RefundLinesItem({ sku: "s" }), new RefundLinesItem({})],
    extra: { a: 1n },
    free: { x: [1.5, null] },
    weirdName: true,
  });
}

/** Return the pointer of the error that a value with too many digits meets. */
export function invalidPointer(): string {
  try {
    order("1.234");
    return "";
  } catch (error) {
    return error instanceof InvalidValueError ? error.pointer : String(error);
  }
}
