import com.shop.events.BatchSender;
import com.shop.events.Events;
import com.shop.events.InvalidValueException;
import com.shop.events.Json;
import com.shop.events.TimeUuid;
import com.shop.events.TypedEvent;
import com.shop.events.WebhookVerifier;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.math.BigDecimal;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;

/**
 * Program of a customer: sends with the generated Java client, receives with it, and prints what it saw as JSON. Arguments:
 * URL of ingest, API key, port to receive on, signing secret; and a public key with a time
 * and a signature of the body `{}`, id `msg_1`. Each event is expected twice.
 */
public final class Driver {
    private static final UUID ID = UUID.fromString("6ba7b810-9dad-11d1-80b4-00c04fd430c8");
    private static final Map<String, Object> RECEIVED = new TreeMap<>();
    private static int deliveries;
    private static int tampered;

    private Driver() {}

    private static Events.Order order(String amount, String currency) {
        return Events.Order.builder()
                .id(TimeUuid.now())
                .price(new Events.Money(new BigDecimal(amount), currency))
                .count(3)
                .serial(9_007_199_254_740_993L)
                .state(Events.State.PAID)
                .placedAt(Instant.parse("2026-11-25T08:00:00.123457Z"))
                .tags(List.of("a", "b\"\u2028\u00fc\ud83d\ude00"))
                .build();
    }

    private static Events.Everything everything(Events.Everything child) {
        return Events.Everything.builder()
                .flag(true)
                .small(Integer.MIN_VALUE)
                .large(Long.MAX_VALUE)
                .single(1.5f)
                .double_(0.1)
                .raw(new byte[] {0, -1})
                .digest("abcd".getBytes())
                .uuid(ID)
                .date(LocalDate.of(2026, 11, 25))
                .timestampMillis(Instant.parse("2026-11-25T08:00:00.123Z"))
                .timestampMicros(Instant.parse("2026-11-25T08:00:00.123457Z"))
                .timestampNanos(Instant.parse("2026-11-25T08:00:00Z"))
                .localTimestampMicros(LocalDateTime.of(2026, 11, 25, 8, 0, 0, 5_000))
                .timeMicros(LocalTime.of(8, 0, 0, 1_000))
                .timeMillis(LocalTime.of(8, 0))
                .prices(Map.of("EUR", new BigDecimal("12.50")))
                .either(child == null ? new Events.Left(1) : new Events.Right(1))
                .child(child)
                .build();
    }

    private static Events.Refund refund() {
        return Events.Refund.builder()
                .refundId(ID)
                .amount(12.5)
                .at(Instant.parse("2026-11-25T08:00:00Z"))
                .kind(Events.RefundKind.PART_OF_IT)
                .count(10L)
                .lines(List.of(new Events.RefundLinesItem("s"), new Events.RefundLinesItem(null)))
                .extra(Map.of("a", 1L))
                .free(Map.of("x", Arrays.asList(1.5, null)))
                .weirdName(true)
                .build();
    }

    private static synchronized void receive(HttpExchange exchange, WebhookVerifier verifier) throws IOException {
        byte[] body = exchange.getRequestBody().readAllBytes();
        Map<String, String> headers = new HashMap<>();
        exchange.getRequestHeaders().forEach((name, values) -> headers.put(name, values.get(0)));
        try {
            WebhookVerifier.VerifiedDelivery delivery = verifier.verify(headers, body);
            TypedEvent event = Events.decode(delivery);
            RECEIVED.put(delivery.eventId(), Map.of("type", delivery.eventType(), "json", event.toJson()));
            deliveries++;
            try {
                verifier.verify(headers, Arrays.copyOf(body, body.length + 1));
            } catch (WebhookVerifier.SignatureInvalidException expected) {
                tampered++;
            }
            exchange.sendResponseHeaders(204, -1);
        } catch (WebhookVerifier.SignatureInvalidException error) {
            exchange.sendResponseHeaders(401, -1);
        }
        exchange.close();
        Driver.class.notifyAll();
    }

    /** Verifies a signature by ed25519. */
    private static boolean asymmetric(String[] arguments, String body) {
        Map<String, String> headers = Map.of("webhook-id", "msg_1", "webhook-timestamp", arguments[5],
                "webhook-signature", "v1,AAAA " + arguments[6]);
        try {
            return new WebhookVerifier(arguments[4]).verify(headers, body.getBytes()).id().equals("msg_1");
        } catch (WebhookVerifier.SignatureInvalidException error) {
            return false;
        }
    }

    public static void main(String[] arguments) throws Exception {
        WebhookVerifier verifier = new WebhookVerifier(arguments[3]);
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(arguments[2])), 0);
        server.createContext("/", exchange -> receive(exchange, verifier));
        server.start();
        String invalid = "";
        try {
            order("1.234", "EUR");
        } catch (InvalidValueException error) {
            invalid = error.pointer();
        }
        List<Object> accepted = new ArrayList<>();
        List<Object> refused = new ArrayList<>();
        List<Events.Order> orders = List.of(order("12.50", "EUR"), order("9999999.99", "EUR"), order("1", "eur"));
        List<TypedEvent> events = new ArrayList<>(orders);
        events.add(everything(everything(null)));
        events.add(refund());
        BatchSender.Settings settings = new BatchSender.Settings(500, 512 * 1024, Duration.ofSeconds(30), 10_000, 8,
                Duration.ofMillis(100), Duration.ofSeconds(30), Duration.ofSeconds(30)); // one batch, which flush sends
        try (BatchSender sender = new BatchSender(arguments[0], arguments[1], "test", settings, Map.of())) {
            List<CompletableFuture<BatchSender.AcceptedEvent>> results = new ArrayList<>();
            events.forEach(event -> results.add(sender.send(event)));
            sender.flush();
            for (CompletableFuture<BatchSender.AcceptedEvent> result : results) {
                try {
                    accepted.add(result.get().eventId());
                } catch (ExecutionException error) {
                    if (!(error.getCause() instanceof BatchSender.EventRefusedException refusal)) {
                        throw error;
                    }
                    refused.add(Map.of("status", refusal.status(), "code", refusal.code(), "pointer", refusal.pointer()));
                }
            }
        }
        synchronized (Driver.class) {
            long end = System.currentTimeMillis() + 60_000;
            while (!(RECEIVED.keySet().containsAll(accepted) && deliveries >= 2 * accepted.size())
                    && System.currentTimeMillis() < end) {
                Driver.class.wait(1_000);
            }
            System.out.println(Json.write(Map.of(
                    "invalid", invalid,
                    "ids", List.of(orders.get(0).eventId(), orders.get(1).eventId()),
                    "accepted", accepted,
                    "refused", refused,
                    "deliveries", deliveries,
                    "tampered", tampered,
                    "asymmetric", List.of(asymmetric(arguments, "{}"), asymmetric(arguments, "[]")),
                    "received", RECEIVED)));
        }
        server.stop(0);
    }
}
