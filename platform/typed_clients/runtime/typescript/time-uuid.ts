// TimeUuid: a UUID whose clock orders events. Version 7 (RFC 9562) is created; version 1 is accepted, too.

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[17][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const EARLIEST_US = 946_684_800_000_000n; // 2000-01-01, as Penstock checks it
const GREGORIAN_TO_UNIX_US = 12_219_292_800_000_000n;
let last = 0n;

/** UUID of version 1 or 7. Those that `now` returns in one process ascend. */
export class TimeUuid {
  private readonly text: string;

  /** Throws RangeError for a text that is not a TimeUuid. */
  constructor(text: string) {
    this.text = text.toLowerCase();
    if (!UUID.test(this.text)) throw new RangeError("needs a UUID of version 1 or 7");
    if (this.clockUs < EARLIEST_US) throw new RangeError("needs a UUID whose clock is after 1999");
  }

  /** Return a new version 7: milliseconds, twelve bits of their fraction, and random bits. */
  static now(): TimeUuid {
    const ms = performance.timeOrigin + performance.now();
    const whole = Math.floor(ms);
    const clock = (BigInt(whole) << 12n) | BigInt(Math.floor((ms - whole) * 4096));
    last = clock > last ? clock : last + 1n;
    const time = last.toString(16).padStart(15, "0");
    const chance = globalThis.crypto.getRandomValues(new Uint8Array(8));
    chance[0] = (chance[0]! & 0x3f) | 0x80;
    const tail = Array.from(chance, (one) => one.toString(16).padStart(2, "0")).join("");
    return new TimeUuid(
      `${time.slice(0, 8)}-${time.slice(8, 12)}-7${time.slice(12)}-${tail.slice(0, 4)}-${tail.slice(4)}`,
    );
  }

  /** The clock in microseconds since 1970. */
  get clockUs(): bigint {
    const parts = this.text.split("-") as [string, string, string];
    if (parts[2].startsWith("7")) return BigInt(`0x${parts[0]}${parts[1]}`) * 1_000n;
    return BigInt(`0x${parts[2].slice(1)}${parts[1]}${parts[0]}`) / 10n - GREGORIAN_TO_UNIX_US;
  }

  /** The clock, to the millisecond. */
  get time(): Date {
    return new Date(Number(this.clockUs / 1_000n));
  }

  /** Return a negative number, 0 or a positive number, for `sort`. */
  compare(other: TimeUuid): number {
    if (this.clockUs !== other.clockUs) return this.clockUs < other.clockUs ? -1 : 1;
    return this.text === other.text ? 0 : this.text < other.text ? -1 : 1;
  }

  toString(): string {
    return this.text;
  }

  toJSON(): string {
    return this.text;
  }
}
