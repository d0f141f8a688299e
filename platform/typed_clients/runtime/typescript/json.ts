// JSON without loss: numbers are read as their text, because a JavaScript number holds only 53 bits of a whole number.

export type Json = null | boolean | number | bigint | string | JsonNumber | Json[] | { [name: string]: Json };

/** A number as it is written in JSON. */
export class JsonNumber {
  constructor(readonly text: string) {}
}

const MAX_LEVELS = 200;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const SPACE = /[ \t\r\n]*/y;
const STRING = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y;

/** Return an object for fields of any name; `__proto__` is a name like others in it. */
export function emptyObject<T>(): { [name: string]: T } {
  return Object.create(null) as { [name: string]: T };
}

/** Return decoded JSON. Throws SyntaxError. */
export function parseJson(text: string): Json {
  const reader = new Reader(text);
  const found = reader.value(0);
  reader.end();
  return found;
}

class Reader {
  private place = 0;

  constructor(private readonly text: string) {}

  value(level: number): Json {
    if (level > MAX_LEVELS) throw new SyntaxError(`needs at most ${MAX_LEVELS} levels`);
    this.match(SPACE);
    let found: Json;
    switch (this.text[this.place]) {
      case "{":
        found = this.object(level);
        break;
      case "[":
        found = this.array(level);
        break;
      case '"':
        found = this.string();
        break;
      default:
        found = this.plain();
    }
    this.match(SPACE);
    return found;
  }

  end(): void {
    if (this.place !== this.text.length) throw this.error();
  }

  private object(level: number): Json {
    const found = emptyObject<Json>();
    this.place++;
    this.match(SPACE);
    if (this.takes("}")) return found;
    for (;;) {
      this.match(SPACE);
      const name = this.string();
      this.match(SPACE);
      if (!this.takes(":")) throw this.error();
      found[name] = this.value(level + 1);
      if (this.takes("}")) return found;
      if (!this.takes(",")) throw this.error();
    }
  }

  private array(level: number): Json {
    const found: Json[] = [];
    this.place++;
    this.match(SPACE);
    if (this.takes("]")) return found;
    for (;;) {
      found.push(this.value(level + 1));
      if (this.takes("]")) return found;
      if (!this.takes(",")) throw this.error();
    }
  }

  private string(): string {
    const text = this.match(STRING);
    if (text === "") throw this.error();
    return JSON.parse(text) as string;
  }

  private plain(): Json {
    for (const [word, value] of [["null", null], ["true", true], ["false", false]] as const) {
      if (this.text.startsWith(word, this.place)) {
        this.place += word.length;
        return value;
      }
    }
    const text = this.match(NUMBER);
    if (text === "") throw this.error();
    return new JsonNumber(text);
  }

  private match(pattern: RegExp): string {
    pattern.lastIndex = this.place;
    const found = pattern.exec(this.text)?.[0] ?? "";
    this.place += found.length;
    return found;
  }

  private takes(one: string): boolean {
    if (this.text[this.place] !== one) return false;
    this.place++;
    return true;
  }

  private error(): SyntaxError {
    return new SyntaxError(`needs JSON; character ${this.place} is unexpected`);
  }
}

/** Return the JSON of a value. */
export function writeJson(value: Json): string {
  if (typeof value === "bigint") return value.toString();
  if (value instanceof JsonNumber) return value.text;
  if (Array.isArray(value)) return `[${value.map(writeJson).join(",")}]`;
  if (typeof value === "object" && value !== null) {
    return `{${Object.entries(value).map(([name, one]) => `${JSON.stringify(name)}:${writeJson(one)}`).join(",")}}`;
  }
  return JSON.stringify(value);
}
