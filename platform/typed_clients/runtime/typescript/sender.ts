// Send events in batches: one result for each event, retries with backoff, and the same id for each repeat of an event.
// One batch is sent at a time, so that events stay in order. The queue is bounded: a full one refuses events.

import { type Json, writeJson } from "./json.js";
import { TimeUuid } from "./time-uuid.js";

const MAX_RETRY_AFTER_MS = 300_000; // a longer Retry-After is cut to this

/** An event that Penstock has stored. `eventId`: ours; `messageId`, `position`: Penstock's. */
export interface AcceptedEvent {
  readonly eventId: string;
  readonly messageId: string;
  readonly position: string;
}

/** Penstock refuses the event; sending it again does not help. `pointer`: JSON pointer into the event. */
export class EventRefusedError extends Error {
  override name = "EventRefusedError";

  constructor(
    readonly eventId: string,
    readonly status: number,
    readonly code: string,
    readonly detail: string,
    readonly pointer: string,
  ) {
    super(`${status} ${code}: ${detail}`);
  }
}

/** No attempt had a final response. The event may be stored; send it again with the same id. */
export class EventNotStoredError extends Error {
  override name = "EventNotStoredError";

  constructor(readonly eventId: string, reason: string) {
    super(reason);
  }
}

/** The queue has no room, or the sender is closed. Wait for earlier results, then send again. */
export class QueueFullError extends Error {
  override name = "QueueFullError";
}

/** Value of a generated class that is sent as an event. */
export interface TypedEvent {
  readonly eventType: string;
  /** Id of the event; "" if it has none and each gets a new one. */
  readonly eventId: string;
  toObject(): { [name: string]: Json };
}

/** Limits of a sender. A wait before a repeat is random, up to twice the last one, within the limits of backoff. */
export interface SenderSettings {
  readonly maxBatchEvents: number;
  readonly maxBatchBytes: number;
  readonly maxWaitMs: number;
  readonly maxQueueEvents: number;
  readonly attempts: number;
  readonly firstBackoffMs: number;
  readonly maxBackoffMs: number;
  readonly timeoutMs: number;
}

export const DEFAULT_SETTINGS: SenderSettings = {
  maxBatchEvents: 500,
  maxBatchBytes: 512 * 1024,
  maxWaitMs: 50,
  maxQueueEvents: 10_000,
  attempts: 8,
  firstBackoffMs: 500,
  maxBackoffMs: 30_000,
  timeoutMs: 30_000,
};

export interface SenderOptions {
  /** Address of ingest. */
  readonly url: string;
  /** API key of a source. */
  readonly key: string;
  /** Names your system, as the attribute `source` of CloudEvents. */
  readonly source: string;
  /** Additional headers of each request. */
  readonly headers?: { readonly [name: string]: string };
  readonly settings?: Partial<SenderSettings>;
}

interface QueuedEvent {
  readonly id: string;
  readonly text: string;
  readonly bytes: number;
  readonly accept: (event: AcceptedEvent) => void;
  readonly reject: (error: Error) => void;
}

interface EventResult {
  readonly status: number;
  readonly id?: unknown;
  readonly position?: unknown;
  readonly code?: unknown;
  readonly detail?: unknown;
  readonly pointer?: unknown;
}

/** Answer to a request. `status`: 0 if there was none. */
interface Answer {
  readonly status: number;
  readonly body: unknown;
  readonly retryAfterMs: number;
}

/** Sends events of generated classes. */
export class BatchSender {
  private readonly url: string;
  private readonly settings: SenderSettings;
  private readonly headers: { readonly [name: string]: string };
  private readonly queue: QueuedEvent[] = [];
  private unsettled = 0;
  private isClosed = false;
  private isStopped = false;
  private running: Promise<void> | undefined;
  private wake: () => void = () => {};
  private idle: (() => void)[] = [];

  constructor(private readonly options: SenderOptions) {
    this.url = `${options.url.replace(/\/+$/, "")}/v1/events`;
    this.settings = { ...DEFAULT_SETTINGS, ...options.settings };
    this.headers = {
      ...options.headers,
      authorization: `Bearer ${options.key}`,
      "content-type": "application/cloudevents-batch+json",
    };
  }

  /** Queue an event. The promise has its result, or is rejected with EventRefusedError or EventNotStoredError.
   *
   * `eventId`: by default the event's TimeUuid, or a new one if it has none. Throws QueueFullError. */
  send(event: TypedEvent, eventId = event.eventId || TimeUuid.now().toString()): Promise<AcceptedEvent> {
    if (this.isClosed) throw new QueueFullError("the sender is closed");
    if (this.unsettled >= this.settings.maxQueueEvents) {
      throw new QueueFullError(`${this.unsettled} events wait for their results`);
    }
    const text = writeJson({
      specversion: "1.0",
      id: eventId,
      source: this.options.source,
      type: event.eventType,
      time: new Date().toISOString(),
      data: event.toObject(),
    });
    this.unsettled++;
    const bytes = new TextEncoder().encode(text).length;
    const result = new Promise<AcceptedEvent>((accept, reject) => {
      this.queue.push({ id: eventId, text, bytes, accept, reject });
    });
    if (this.queue.length >= this.settings.maxBatchEvents) this.wake();
    this.running ??= this.run();
    return result;
  }

  /** Send what is queued now, and wait until each event has its result. */
  async flush(): Promise<void> {
    if (this.unsettled === 0) return;
    this.wake();
    await new Promise<void>((resolve) => this.idle.push(resolve));
  }

  /** Send what is queued, then end. Events without a result after `timeoutMs` get EventNotStoredError. */
  async close(timeoutMs = 60_000): Promise<void> {
    this.isClosed = true;
    const timer = setTimeout(() => {
      this.isStopped = true;
      for (const one of this.queue.splice(0)) this.fail(one, "the sender was closed");
      this.wake();
    }, timeoutMs);
    await this.flush();
    clearTimeout(timer);
  }

  private async run(): Promise<void> {
    try {
      while (this.queue.length > 0) {
        const isFull = this.queue.length >= this.settings.maxBatchEvents;
        if (!isFull && !this.isClosed && this.idle.length === 0) await this.pause(this.settings.maxWaitMs);
        await this.deliver(this.nextBatch());
      }
    } finally {
      this.running = undefined;
    }
  }

  private nextBatch(): QueuedEvent[] {
    let count = 0;
    let bytes = 0;
    for (const one of this.queue) {
      bytes += one.bytes + 1;
      if (count === this.settings.maxBatchEvents || (count > 0 && bytes > this.settings.maxBatchBytes)) break;
      count++;
    }
    return this.queue.splice(0, count);
  }

  /** Send a batch until each of its events has a result; only those without one are repeated. */
  private async deliver(batch: QueuedEvent[]): Promise<void> {
    let reason = "";
    let backoffMs = this.settings.firstBackoffMs;
    for (let attempt = 1; batch.length > 0; attempt++) {
      const answer = await this.post(`[${batch.map((one) => one.text).join(",")}]`);
      const results = resultsOf(answer, batch.length);
      batch = batch.filter((one, place) => {
        const result = results[place]!;
        if (!isRetried(result.status)) {
          this.settle(one, result);
          return false;
        }
        reason = `${result.status || "no response"}: ${String(result.detail ?? "")}`;
        return true;
      });
      if (batch.length === 0) return;
      if (attempt >= this.settings.attempts) break;
      await this.pauseUntilStopped(Math.max(answer.retryAfterMs, backoffMs * (0.5 + Math.random() / 2)));
      if (this.isStopped) break;
      backoffMs = Math.min(2 * backoffMs, this.settings.maxBackoffMs);
    }
    for (const one of batch) this.fail(one, reason);
  }

  private async post(body: string): Promise<Answer> {
    try {
      const signal = AbortSignal.timeout(this.settings.timeoutMs);
      const response = await fetch(this.url, { method: "POST", headers: this.headers, body, signal });
      const text = await response.text();
      const retryAfter = response.headers.get("retry-after") ?? "";
      const retryAfterMs = /^\d{1,9}$/.test(retryAfter) ? Math.min(Number(retryAfter) * 1_000, MAX_RETRY_AFTER_MS) : 0;
      const decoded = decodedJson(text);
      if (decoded === undefined && response.ok) {
        return { status: 0, body: { detail: "the response is not JSON" }, retryAfterMs }; // of a proxy, or cut off
      }
      return { status: response.status, body: decoded, retryAfterMs };
    } catch (error) {
      return { status: 0, body: { detail: error instanceof Error ? error.message : String(error) }, retryAfterMs: 0 };
    }
  }

  private settle(one: QueuedEvent, result: EventResult): void {
    const [id, position, code, detail, pointer] = (["id", "position", "code", "detail", "pointer"] as const).map((name) =>
      String(result[name] ?? ""),
    ) as [string, string, string, string, string];
    if (result.status === 202) one.accept({ eventId: one.id, messageId: id, position });
    else one.reject(new EventRefusedError(one.id, result.status, code, detail, pointer));
    this.settled();
  }

  private fail(one: QueuedEvent, reason: string): void {
    one.reject(new EventNotStoredError(one.id, reason));
    this.settled();
  }

  private settled(): void {
    this.unsettled--;
    if (this.unsettled === 0) for (const resolve of this.idle.splice(0)) resolve();
  }

  private async pauseUntilStopped(ms: number): Promise<void> {
    const end = Date.now() + ms;
    while (!this.isStopped && Date.now() < end) await this.pause(end - Date.now());
  }

  private pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

function resultsOf(answer: Answer, count: number): EventResult[] {
  const body = (typeof answer.body === "object" && answer.body !== null ? answer.body : {}) as { items?: unknown };
  if (Array.isArray(body.items) && body.items.length === count) return body.items as EventResult[];
  return new Array<EventResult>(count).fill({ ...body, status: answer.status });
}

function isRetried(status: number): boolean {
  return status === 0 || status === 408 || status === 425 || status === 429 || status >= 500;
}

function decodedJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
