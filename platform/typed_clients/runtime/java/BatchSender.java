package PACKAGE;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ThreadLocalRandom;

/**
 * Sends events in batches: one result for each event, retries with backoff, and the same id for each repeat of an event.
 * One thread sends one batch at a time, so that events stay in order. The queue is bounded: a full one refuses events.
 */
public final class BatchSender implements AutoCloseable {
    private static final Duration MAX_RETRY_AFTER = Duration.ofSeconds(300); // a longer Retry-After is cut to this
    private static final Duration CLOSE_WITHIN = Duration.ofSeconds(60);
    private final URI url;
    private final String key;
    private final String source;
    private final Settings settings;
    private final Map<String, String> headers;
    private final HttpClient client;
    private final Deque<QueuedEvent> queue = new ArrayDeque<>();
    private final Thread thread;
    private int unsettled;
    private int flushing;
    private boolean isClosing;
    private boolean isStopped;

    /** An event that Penstock has stored: our id, and Penstock's id and position. */
    public record AcceptedEvent(String eventId, String messageId, String position) {}

    /** Base of the errors that an event may end with. */
    public abstract static sealed class EventException extends RuntimeException {
        private static final long serialVersionUID = 1L;
        private final String eventId;

        private EventException(String eventId, String message) {
            super(message);
            this.eventId = eventId;
        }

        /** Returns the id of the event. */
        public String eventId() {
            return eventId;
        }
    }

    /** Penstock refuses the event; sending it again does not help. */
    public static final class EventRefusedException extends EventException {
        private static final long serialVersionUID = 1L;
        private final int status;
        private final String code;
        private final String pointer;

        private EventRefusedException(String eventId, int status, String code, String detail, String pointer) {
            super(eventId, status + " " + code + ": " + detail);
            this.status = status;
            this.code = code;
            this.pointer = pointer;
        }

        /** Returns the HTTP status. */
        public int status() {
            return status;
        }

        /** Returns the stable code of the reason. */
        public String code() {
            return code;
        }

        /** Returns the JSON pointer into the event; empty for all of it. */
        public String pointer() {
            return pointer;
        }
    }

    /** No attempt had a final response. The event may be stored; send it again with the same id. */
    public static final class EventNotStoredException extends EventException {
        private static final long serialVersionUID = 1L;

        private EventNotStoredException(String eventId, String reason) {
            super(eventId, reason);
        }
    }

    /** The queue has no room, or the sender is closed. Wait for earlier results, then send again. */
    public static final class QueueFullException extends RuntimeException {
        private static final long serialVersionUID = 1L;

        private QueueFullException(String message) {
            super(message);
        }
    }

    /**
     * Limits of a sender. A wait before a repeat is random, up to twice the last one, within the limits of backoff.
     *
     * @param maxWait longest wait for a batch to fill
     * @param attempts of a batch
     * @param timeout of one attempt
     */
    public record Settings(
            int maxBatchEvents,
            int maxBatchBytes,
            Duration maxWait,
            int maxQueueEvents,
            int attempts,
            Duration firstBackoff,
            Duration maxBackoff,
            Duration timeout) {
        /** Returns the defaults. */
        public static Settings defaults() {
            return new Settings(500, 512 * 1024, Duration.ofMillis(50), 10_000, 8, Duration.ofMillis(500),
                    Duration.ofSeconds(30), Duration.ofSeconds(30));
        }
    }

    private record QueuedEvent(String id, byte[] text, CompletableFuture<AcceptedEvent> result) {}

    private record Answer(int status, Object body, Duration retryAfter) {
        /** Returns the result of the event at a place: its own, or that of the request. */
        Map<?, ?> of(int place, int count) {
            if (body instanceof Map<?, ?> map) {
                if (map.get("items") instanceof List<?> items && items.size() == count
                        && items.get(place) instanceof Map<?, ?> item) {
                    return item;
                }
                Map<Object, Object> found = new LinkedHashMap<>(map);
                found.put("status", status);
                return found;
            }
            return Map.of("status", status);
        }
    }

    /** Creates a sender with default settings: address of ingest, API key, and the {@code source} of its CloudEvents. */
    public BatchSender(String url, String key, String source) {
        this(url, key, source, Settings.defaults(), Map.of());
    }

    /** Creates a sender; {@code headers} are added to each request. */
    public BatchSender(String url, String key, String source, Settings settings, Map<String, String> headers) {
        this.url = URI.create(url.replaceAll("/+$", "") + "/v1/events");
        this.key = key;
        this.source = source;
        this.settings = settings;
        this.headers = Map.copyOf(headers);
        client = HttpClient.newBuilder()
                .version(HttpClient.Version.HTTP_1_1)
                .connectTimeout(settings.timeout())
                .build();
        thread = new Thread(this::run, "penstock-sender");
        thread.setDaemon(true);
        thread.start();
    }

    /** Queues an event under its own id, or a new one if it has none. */
    public CompletableFuture<AcceptedEvent> send(TypedEvent event) {
        return send(event, event.eventId().isEmpty() ? TimeUuid.now().toString() : event.eventId());
    }

    /**
     * Queues an event. The future has its result, or ends with EventRefusedException or EventNotStoredException. Throws
     * QueueFullException.
     */
    public CompletableFuture<AcceptedEvent> send(TypedEvent event, String eventId) {
        String text = "{\"specversion\":\"1.0\",\"id\":" + Json.write(eventId) + ",\"source\":" + Json.write(source)
                + ",\"type\":" + Json.write(event.eventType()) + ",\"time\":" + Json.write(Instant.now().toString())
                + ",\"data\":" + event.toJson() + "}";
        CompletableFuture<AcceptedEvent> result = new CompletableFuture<>();
        QueuedEvent queued = new QueuedEvent(eventId, text.getBytes(StandardCharsets.UTF_8), result);
        synchronized (this) {
            if (isClosing) {
                throw new QueueFullException("the sender is closed");
            }
            if (unsettled >= settings.maxQueueEvents()) {
                throw new QueueFullException(unsettled + " events wait for their results");
            }
            queue.add(queued);
            unsettled++;
            notifyAll();
        }
        return result;
    }

    /** Sends what is queued now, and waits until each event has its result. */
    public synchronized void flush() throws InterruptedException {
        flushing++;
        notifyAll();
        try {
            while (unsettled > 0) {
                wait();
            }
        } finally {
            flushing--;
        }
    }

    /** Sends what is queued, then ends. Events without a result after a minute get EventNotStoredException. */
    @Override
    public void close() {
        synchronized (this) {
            isClosing = true;
            notifyAll();
        }
        try {
            thread.join(CLOSE_WITHIN.toMillis());
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
        List<QueuedEvent> left;
        synchronized (this) {
            isStopped = true;
            left = new ArrayList<>(queue);
            queue.clear();
            notifyAll();
        }
        left.forEach(one -> fail(one, "the sender was closed"));
    }

    private void run() {
        try {
            for (List<QueuedEvent> batch = nextBatch(); !batch.isEmpty(); batch = nextBatch()) {
                deliver(batch);
            }
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    private synchronized List<QueuedEvent> nextBatch() throws InterruptedException {
        while (queue.isEmpty() && !isClosing) {
            wait();
        }
        long end = System.nanoTime() + settings.maxWait().toNanos();
        while (!isClosing && flushing == 0 && queue.size() < settings.maxBatchEvents() && !waited(end)) {
            // until the batch is full or its time is over
        }
        List<QueuedEvent> batch = new ArrayList<>();
        int size = 0;
        while (!queue.isEmpty() && batch.size() < settings.maxBatchEvents()) {
            size += queue.peek().text().length + 1;
            if (!batch.isEmpty() && size > settings.maxBatchBytes()) {
                break;
            }
            batch.add(queue.poll());
        }
        return batch;
    }

    /** Waits for a change until a moment; returns true if it has passed. */
    private synchronized boolean waited(long end) throws InterruptedException {
        long left = end - System.nanoTime();
        if (left > 0) {
            wait(left / 1_000_000, (int) (left % 1_000_000));
        }
        return end - System.nanoTime() <= 0;
    }

    /** Sends a batch until each of its events has a result; only those without one are repeated. */
    private void deliver(List<QueuedEvent> given) throws InterruptedException {
        List<QueuedEvent> batch = given;
        String reason = "";
        Duration backoff = settings.firstBackoff();
        for (int attempt = 1; !batch.isEmpty(); attempt++) {
            Answer answer = post(batch);
            List<QueuedEvent> again = new ArrayList<>();
            for (int place = 0; place < batch.size(); place++) {
                Map<?, ?> result = answer.of(place, batch.size());
                int status = result.get("status") instanceof Number number ? number.intValue() : 0;
                if (isRetried(status)) {
                    again.add(batch.get(place));
                    reason = (status == 0 ? "no response" : status) + ": " + textOf(result, "detail");
                } else {
                    settle(batch.get(place), status, result);
                }
            }
            batch = again;
            if (batch.isEmpty() || attempt >= settings.attempts() || pause(answer.retryAfter(), backoff)) {
                break;
            }
            Duration twice = backoff.multipliedBy(2);
            backoff = twice.compareTo(settings.maxBackoff()) < 0 ? twice : settings.maxBackoff();
        }
        for (QueuedEvent one : batch) {
            fail(one, reason);
        }
    }

    /** Waits before a repeat; returns true if the sender was closed meanwhile. */
    private synchronized boolean pause(Duration retryAfter, Duration backoff) throws InterruptedException {
        double share = ThreadLocalRandom.current().nextDouble(0.5, 1.0);
        long end = System.nanoTime() + Math.max(retryAfter.toNanos(), (long) (backoff.toNanos() * share));
        while (!isStopped && !waited(end)) {
            // until the moment, or the end of the sender
        }
        return isStopped;
    }

    private Answer post(List<QueuedEvent> batch) throws InterruptedException {
        ByteArrayOutputStream body = new ByteArrayOutputStream();
        for (QueuedEvent one : batch) {
            body.write(body.size() == 0 ? '[' : ',');
            body.writeBytes(one.text());
        }
        body.write(']');
        HttpRequest.Builder request = HttpRequest.newBuilder(url).timeout(settings.timeout());
        headers.forEach(request::setHeader);
        request.setHeader("Authorization", "Bearer " + key)
                .setHeader("Content-Type", "application/cloudevents-batch+json")
                .POST(HttpRequest.BodyPublishers.ofByteArray(body.toByteArray()));
        try {
            return answerOf(client.send(request.build(), HttpResponse.BodyHandlers.ofString(StandardCharsets.UTF_8)));
        } catch (IOException error) {
            return new Answer(0, Map.of("detail", String.valueOf(error.getMessage())), Duration.ZERO);
        }
    }

    private static Answer answerOf(HttpResponse<String> response) {
        String given = response.headers().firstValue("retry-after").orElse("");
        Duration wait = given.matches("[0-9]{1,9}") ? Duration.ofSeconds(Long.parseLong(given)) : Duration.ZERO;
        wait = wait.compareTo(MAX_RETRY_AFTER) < 0 ? wait : MAX_RETRY_AFTER;
        try {
            return new Answer(response.statusCode(), Json.parse(response.body()), wait);
        } catch (InvalidValueException error) {
            boolean isSuccess = response.statusCode() / 100 == 2; // of a proxy, or cut off
            return new Answer(isSuccess ? 0 : response.statusCode(), Map.of("detail", "the response is not JSON"), wait);
        }
    }

    private void settle(QueuedEvent one, int status, Map<?, ?> result) {
        if (status == 202) {
            one.result().complete(new AcceptedEvent(one.id(), textOf(result, "id"), textOf(result, "position")));
        } else {
            one.result().completeExceptionally(new EventRefusedException(
                    one.id(), status, textOf(result, "code"), textOf(result, "detail"), textOf(result, "pointer")));
        }
        settled();
    }

    private void fail(QueuedEvent one, String reason) {
        one.result().completeExceptionally(new EventNotStoredException(one.id(), reason));
        settled();
    }

    private synchronized void settled() {
        unsettled--;
        notifyAll();
    }

    private static boolean isRetried(int status) {
        return status == 0 || status == 408 || status == 425 || status == 429 || status >= 500;
    }

    private static String textOf(Map<?, ?> result, String name) {
        return result.get(name) instanceof String text ? text : "";
    }
}
