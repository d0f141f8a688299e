// Checks of values, and their form in JSON, as Penstock's ingest takes them. Decimals, times and ids are texts.

import { emptyObject, type Json, JsonNumber, parseJson, writeJson } from "./json.js";
import { TimeUuid } from "./time-uuid.js";

const UUID = /^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$/;
const MOMENT = /^(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?([Zz]|[+-]\d\d:\d\d)?$/;
const TIME = /^(\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?$/;
const DAY = /^(\d{4})-(\d\d)-(\d\d)$/;
const DECIMAL = /^[+-]?(\d*)(?:\.(\d*))?$/;
const DAY_MS = 86_400_000;
const NANOSECONDS = 9; // digits after the second

/** A value does not fit its type. `pointer`: JSON pointer to it; `reason`: what is needed. */
export class InvalidValueError extends Error {
  constructor(readonly reason: string, readonly pointer = "") {
    super(pointer ? `${pointer}: ${reason}` : reason);
    this.name = "InvalidValueError";
  }

  /** Return the error as seen from the value that contains this one. */
  below(name: string): InvalidValueError {
    return new InvalidValueError(this.reason, `/${name.replaceAll("~", "~0").replaceAll("/", "~1")}${this.pointer}`);
  }
}

/** Turns values of a type into JSON and back. Both functions throw InvalidValueError. */
export interface Codec<T> {
  encode(value: unknown): Json;
  decode(value: Json): T;
}

/** Codec of a field. `name`: in JSON; `property`: in the class; `isOptional`: omitted if it is null. */
export interface FieldCodec {
  readonly name: string;
  readonly property: string;
  readonly codec: Codec<unknown>;
  readonly isOptional: boolean;
}

type Fields = { readonly [property: string]: unknown };

/** Return the JSON of a record's value. Throws InvalidValueError. */
export function encodeFields(fields: readonly FieldCodec[], value: object): { [name: string]: Json } {
  const found = emptyObject<Json>();
  for (const one of fields) {
    const part = (value as Fields)[one.property] ?? null;
    if (part === null && one.isOptional) continue;
    found[one.name] = at(one.name, () => one.codec.encode(part));
  }
  return found;
}

/** Return the properties of a record from JSON; unknown fields are ignored. Throws InvalidValueError. */
export function decodeFields(fields: readonly FieldCodec[], value: Json): { [property: string]: unknown } {
  const given = asObject(value);
  const found = emptyObject<unknown>();
  for (const one of fields) {
    const part = Object.hasOwn(given, one.name) ? given[one.name] : undefined;
    if (part === undefined) {
      if (!one.isOptional) throw new InvalidValueError("is required, but missing").below(one.name);
      found[one.property] = null;
    } else {
      found[one.property] = part === null && one.isOptional ? null : at(one.name, () => one.codec.decode(part));
    }
  }
  return found;
}

/** Return decoded JSON whose numbers are exact. Throws InvalidValueError. */
export function decodeJson(text: string): Json {
  try {
    return parseJson(text);
  } catch (error) {
    throw new InvalidValueError(error instanceof Error ? error.message : String(error));
  }
}

export { writeJson };

function at<T>(name: string, run: () => T): T {
  try {
    return run();
  } catch (error) {
    throw error instanceof InvalidValueError ? error.below(name) : error;
  }
}

function asObject(value: unknown): { [name: string]: Json } {
  if (typeof value !== "object" || value === null || Array.isArray(value) || value instanceof JsonNumber) {
    throw new InvalidValueError("needs an object");
  }
  return value as { [name: string]: Json };
}

function checkSize(size: number, low: number | null, high: number | null, unit: string): void {
  if (low !== null && size < low) throw new InvalidValueError(`needs at least ${low} ${unit}, got ${size}`);
  if (high !== null && size > high) throw new InvalidValueError(`needs at most ${high} ${unit}, got ${size}`);
}

/** Return a codec whose values have the same form in JSON. */
function same<T extends Json>(check: (value: unknown) => T): Codec<T> {
  return { encode: check, decode: check };
}

export function nothing(): Codec<null> {
  return same((value) => {
    if (value !== null) throw new InvalidValueError("needs null");
    return null;
  });
}

export function boolean(): Codec<boolean> {
  return same((value) => {
    if (typeof value !== "boolean") throw new InvalidValueError("needs a boolean");
    return value;
  });
}

/** Codec of whole numbers of 32 bits. */
export function int(): Codec<number> {
  const wide = long(-2147483648n, 2147483647n);
  return {
    encode(value) {
      if (typeof value !== "number" || !Number.isInteger(value)) throw new InvalidValueError("needs a whole number");
      return wide.encode(BigInt(value));
    },
    decode: (value) => Number(wide.decode(value)),
  };
}

/** Codec of whole numbers, `low` and `high` included. */
export function long(low: bigint, high: bigint): Codec<bigint> {
  const check = (value: bigint | null): bigint => {
    if (value === null || value < low || value > high) {
      throw new InvalidValueError(`needs a whole number of ${low} to ${high}`);
    }
    return value;
  };
  return {
    encode: (value) => check(typeof value === "bigint" ? value : null),
    decode: (value) => check(value instanceof JsonNumber ? wholeOf(value.text) : null),
  };
}

function wholeOf(text: string): bigint | null {
  if (/^-?\d{1,40}$/.test(text)) return BigInt(text);
  const found = Number(text); // 1.0 and 1e3 are whole numbers, too
  return Number.isSafeInteger(found) ? BigInt(found) : null;
}

/** Codec of floating-point numbers; a single one has 32 bits, a finite one is not NaN or infinite. */
export function float(kind: "single" | "double" | "finite"): Codec<number> {
  const check = (value: unknown): number => {
    if (typeof value !== "number") throw new InvalidValueError("needs a number");
    const found = kind === "single" ? Math.fround(value) : value;
    if (!Number.isFinite(found) && (kind === "finite" || Number.isFinite(value))) {
      throw new InvalidValueError("needs a number in the range of its type");
    }
    return found;
  };
  return {
    encode(value) {
      const found = check(value);
      return Number.isFinite(found) ? found : String(found);
    },
    decode(value) {
      if (value === "NaN" || value === "Infinity" || value === "-Infinity") return check(Number(value));
      return check(value instanceof JsonNumber ? Number(value.text) : value);
    },
  };
}

/** Codec of texts of `low` to `high` characters. */
export function text(low: number | null = null, high: number | null = null): Codec<string> {
  return same((value) => {
    if (typeof value !== "string") throw new InvalidValueError("needs a text");
    let size = 0;
    for (const one of value) {
      const code = one.codePointAt(0)!;
      if (code >= 0xd800 && code <= 0xdfff) throw new InvalidValueError("has half of a character (a lone surrogate)");
      size++;
    }
    checkSize(size, low, high, "characters");
    return value;
  });
}

/** Codec of bytes: in JSON, one character for each byte. */
export function octets(low: number | null = null, high: number | null = null): Codec<Uint8Array> {
  return {
    encode(value) {
      if (!(value instanceof Uint8Array)) throw new InvalidValueError("needs a Uint8Array");
      checkSize(value.length, low, high, "bytes");
      return Array.from(value, (one) => String.fromCharCode(one)).join("");
    },
    decode(value) {
      if (typeof value !== "string" || /[^\u0000-\u00ff]/.test(value)) {
        throw new InvalidValueError("needs a text with one character for each byte");
      }
      checkSize(value.length, low, high, "bytes");
      return Uint8Array.from(value, (one) => one.charCodeAt(0));
    },
  };
}

export function uniqueId(): Codec<string> {
  return same((value) => {
    if (typeof value !== "string" || !UUID.test(value)) throw new InvalidValueError("needs a UUID");
    return value;
  });
}

export function timeUuid(): Codec<TimeUuid> {
  return {
    encode(value) {
      if (!(value instanceof TimeUuid)) throw new InvalidValueError("needs a TimeUuid");
      return value.toString();
    },
    decode(value) {
      if (typeof value !== "string") throw new InvalidValueError("needs a UUID of version 1 or 7");
      try {
        return new TimeUuid(value);
      } catch (error) {
        throw new InvalidValueError(error instanceof Error ? error.message : String(error));
      }
    },
  };
}

/** Codec of decimals as text, with `scale` digits after the point and `precision` digits in total. */
export function decimal(precision: number, scale: number): Codec<string> {
  const check = (value: unknown): string => {
    const parts = typeof value === "string" ? DECIMAL.exec(value) : null;
    if (parts === null || !(parts[1] || parts[2])) throw new InvalidValueError("needs a number as text, such as 12.50");
    if ((parts[1] ?? "").replace(/^0+/, "").length > precision - scale) {
      throw new InvalidValueError(`needs at most ${precision - scale} digits before the point`);
    }
    if ((parts[2] ?? "").replace(/0+$/, "").length > scale) {
      throw new InvalidValueError(`needs at most ${scale} digits after the point`);
    }
    return value as string;
  };
  return { encode: check, decode: (value) => check(value instanceof JsonNumber ? value.text : value) };
}

/** Codec of moments as of RFC 3339: `2026-11-25T08:00:00.123Z`, with up to `digits` digits after the second. */
export function timestamp(digits: number): Codec<string> {
  return moment(digits, false);
}

/** Codec of moments without a zone. */
export function localTimestamp(digits: number): Codec<string> {
  return moment(digits, true);
}

function moment(digits: number, isLocal: boolean): Codec<string> {
  const needed = `needs a time as of RFC 3339${isLocal ? " without" : " with"} a zone`;
  const check = (value: unknown): string => {
    const parts = typeof value === "string" ? MOMENT.exec(value) : null;
    if (parts === null || (parts[8] === undefined) !== isLocal) throw new InvalidValueError(needed);
    if (!isDay(parts[1]!, parts[2]!, parts[3]!) || !isTime(parts[4]!, parts[5]!, parts[6]!)) {
      throw new InvalidValueError("needs a day and a time that exist");
    }
    return value as string;
  };
  return {
    encode(value) {
      const found = check(value);
      const parts = MOMENT.exec(found)!;
      checkDigits(parts[7], digits);
      const year = Number(parts[1]);
      if (digits === NANOSECONDS && (year < 1678 || year > 2261)) {
        throw new InvalidValueError("needs a year of 1678 to 2261, because it is counted in nanoseconds");
      }
      return found;
    },
    decode: (value) => check(value instanceof JsonNumber ? momentOf(value, digits, isLocal, needed) : value),
  };
}

/** Return the text of a moment that is a number of units since 1970. */
function momentOf(value: JsonNumber, digits: number, isLocal: boolean, needed: string): string {
  const units = 10n ** BigInt(digits);
  const count = wholeOf(value.text);
  if (count === null) throw new InvalidValueError(needed);
  const fraction = ((count % units) + units) % units;
  const seconds = new Date(Number((count - fraction) / units) * 1_000);
  if (Number.isNaN(seconds.getTime())) throw new InvalidValueError(needed);
  return `${seconds.toISOString().slice(0, -5)}${fractionOf(fraction, digits)}${isLocal ? "" : "Z"}`;
}

function fractionOf(fraction: bigint, digits: number): string {
  return fraction === 0n ? "" : `.${fraction.toString().padStart(digits, "0")}`;
}

function checkDigits(fraction: string | undefined, digits: number): void {
  if ((fraction ?? "").replace(/0+$/, "").length > digits) {
    throw new InvalidValueError(`needs at most ${digits} digits after the second`);
  }
}

function isDay(year: string, month: string, day: string): boolean {
  const found = new Date(`${year}-${month}-${day}T00:00:00Z`);
  return !Number.isNaN(found.getTime()) && found.getUTCDate() === Number(day) && Number(year) > 0;
}

function isTime(hours: string, minutes: string, seconds: string): boolean {
  return Number(hours) < 24 && Number(minutes) < 60 && Number(seconds) < 60;
}

/** Codec of dates as text: `2026-11-25`. */
export function day(): Codec<string> {
  const check = (value: unknown): string => {
    const parts = typeof value === "string" ? DAY.exec(value) : null;
    if (parts === null || !isDay(parts[1]!, parts[2]!, parts[3]!)) {
      throw new InvalidValueError("needs a date, such as 2026-11-25");
    }
    return value as string;
  };
  return {
    encode: check,
    decode(value) {
      if (!(value instanceof JsonNumber)) return check(value);
      const found = new Date(Number(value.text) * DAY_MS);
      return check(Number.isNaN(found.getTime()) ? null : found.toISOString().slice(0, 10));
    },
  };
}

/** Codec of times of day as text: `08:00:00.123`, with up to `digits` digits after the second. */
export function timeOfDay(digits: number): Codec<string> {
  const check = (value: unknown): string => {
    const parts = typeof value === "string" ? TIME.exec(value) : null;
    if (parts === null || !isTime(parts[1]!, parts[2]!, parts[3]!)) {
      throw new InvalidValueError("needs a time of day, such as 08:00:00.123");
    }
    checkDigits(parts[4], digits);
    return value as string;
  };
  return {
    encode: check,
    decode(value) {
      const count = value instanceof JsonNumber ? wholeOf(value.text) : null;
      if (count === null) return check(value);
      const units = 10n ** BigInt(digits);
      const seconds = Number(count / units);
      const parts = [seconds / 3600, (seconds / 60) % 60, seconds % 60].map((one) =>
        String(Math.floor(one)).padStart(2, "0"),
      );
      return check(parts.join(":") + fractionOf(count % units, digits));
    },
  };
}

/** Codec of any JSON. Whole numbers beyond 53 bits are bigint. */
export function anyJson(): Codec<unknown> {
  return { encode: jsonOf, decode: plainOf };
}

function jsonOf(value: unknown): Json {
  if (value === null || typeof value === "boolean" || typeof value === "bigint") return value;
  if (typeof value === "string") return text().encode(value);
  if (typeof value === "number" && Number.isFinite(value)) return value;
  if (Array.isArray(value)) return value.map(jsonOf);
  if (typeof value === "object" && value !== undefined) {
    const found = emptyObject<Json>();
    for (const [name, one] of Object.entries(value)) found[name] = at(name, () => jsonOf(one));
    return found;
  }
  throw new InvalidValueError("needs JSON");
}

function plainOf(value: Json): unknown {
  if (value instanceof JsonNumber) {
    const whole = wholeOf(value.text);
    return whole === null || Number.isSafeInteger(Number(whole)) ? Number(value.text) : whole;
  }
  if (Array.isArray(value)) return value.map(plainOf);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, plainOf(one)]));
}

/** Codec of an enum with these symbols. */
export function oneOf<T extends string>(symbols: readonly T[]): Codec<T> {
  return same((value) => {
    const found = symbols.find((one) => one === value);
    if (found === undefined) throw new InvalidValueError(`needs one of ${symbols.join(", ")}`.slice(0, 200));
    return found;
  });
}

interface RecordValue {
  toObject(): { [name: string]: Json };
}

/** Codec of a generated class; a function returns it, because records may contain each other. */
export function record<T extends RecordValue>(
  kind: () => (new (fields: never) => T) & { fromObject(value: Json): T },
): Codec<T> {
  return {
    encode(value) {
      if (!(value instanceof kind())) throw new InvalidValueError(`needs a value of the class ${kind().name}`);
      return value.toObject();
    },
    decode: (value) => kind().fromObject(value),
  };
}

/** Codec of lists of `low` to `high` items. */
export function list<T>(
  item: Codec<T>,
  low: number | null = null,
  high: number | null = null,
): Codec<readonly T[]> {
  const check = <I>(value: unknown): I[] => {
    if (!Array.isArray(value)) throw new InvalidValueError("needs a list");
    checkSize(value.length, low, high, "items");
    return value as I[];
  };
  return {
    encode: (value) => check<unknown>(value).map((one, place) => at(String(place), () => item.encode(one))),
    decode: (value) => check<Json>(value).map((one, place) => at(String(place), () => item.decode(one))),
  };
}

/** Codec of values by text. */
export function map<T>(item: Codec<T>): Codec<{ readonly [name: string]: T }> {
  return {
    encode(value) {
      const found = emptyObject<Json>();
      for (const [name, one] of Object.entries(asObject(value))) found[name] = at(name, () => item.encode(one));
      return found;
    },
    decode(value) {
      const found = emptyObject<T>();
      for (const [name, one] of Object.entries(asObject(value))) found[name] = at(name, () => item.decode(one));
      return found;
    },
  };
}

/** Codec of a type that also has null. */
export function nullable<T>(item: Codec<T>): Codec<T | null> {
  return {
    encode: (value) => (value === null ? null : item.encode(value)),
    decode: (value) => (value === null ? null : item.decode(value)),
  };
}

/** Codec of a union; a value is of the first branch that takes it.
 *
 * In JSON it is `{"<branch>": value}` if it could be taken for an earlier branch, else the value. */
export function union<T>(...branches: [string, Codec<T>][]): Codec<T> {
  const labels = branches.map(([label]) => label);
  const needed = `needs a value of ${labels.join(", ")}`.slice(0, 200);
  return {
    encode(value) {
      for (const [place, [label, branch]] of branches.entries()) {
        const found = attempt(() => branch.encode(value));
        if (found === undefined) continue;
        const isTaken = branches.slice(0, place).some(([, one]) => attempt(() => one.decode(readable(found))) !== undefined);
        if (!isTaken && labelOf(found, labels) === undefined) return found;
        const named = emptyObject<Json>();
        named[label] = found;
        return named;
      }
      throw new InvalidValueError(needed);
    },
    decode(value) {
      const label = labelOf(value, labels);
      for (const [name, branch] of branches) {
        if (name === label) return at(name, () => branch.decode((value as { [name: string]: Json })[name]!));
      }
      for (const [, branch] of branches) {
        const found = attempt(() => branch.decode(value));
        if (found !== undefined) return found;
      }
      throw new InvalidValueError(needed);
    },
  };
}

/** Return the branch that an object with a single field names. */
function labelOf(value: Json, labels: readonly string[]): string | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value) || value instanceof JsonNumber) return undefined;
  const names = Object.keys(value);
  return names.length === 1 ? labels.find((one) => one === names[0]) : undefined;
}

/** Return encoded JSON as a reader gets it, with numbers as text. */
function readable(value: Json): Json {
  return parseJson(writeJson(value));
}

function attempt<T>(run: () => T): T | undefined {
  try {
    return run();
  } catch (error) {
    if (error instanceof InvalidValueError) return undefined;
    throw error;
  }
}
