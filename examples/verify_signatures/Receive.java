// Verify deliveries with Java 17 or newer, without libraries: PENSTOCK_SIGNING_SECRET=whsec_... java Receive.java
import static java.nio.charset.StandardCharsets.UTF_8;

import com.sun.net.httpserver.Headers;
import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.time.Duration;
import java.time.Instant;
import java.util.Base64;
import java.util.Objects;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

public class Receive {
    private static final Duration TOLERANCE = Duration.ofMinutes(5);

    /** Return whether Penstock signed these exact bytes less than five minutes ago. */
    static boolean isValid(byte[] key, Headers headers, byte[] body) throws GeneralSecurityException {
        String id = Objects.requireNonNullElse(headers.getFirst("webhook-id"), "");
        String sent = Objects.requireNonNullElse(headers.getFirst("webhook-timestamp"), "");
        String signatures = Objects.requireNonNullElse(headers.getFirst("webhook-signature"), "");
        if (id.isEmpty() || !sent.matches("[0-9]{1,11}")) {
            return false;
        }
        Instant sentAt = Instant.ofEpochSecond(Long.parseLong(sent));
        if (Duration.between(sentAt, Instant.now()).abs().compareTo(TOLERANCE) > 0) {
            return false;
        }
        Mac mac = Mac.getInstance("HmacSHA256");
        mac.init(new SecretKeySpec(key, "HmacSHA256"));
        mac.update((id + "." + sent + ".").getBytes(UTF_8));
        String expected = "v1," + Base64.getEncoder().encodeToString(mac.doFinal(body));
        for (String given : signatures.split(" ")) {
            if (MessageDigest.isEqual(given.getBytes(UTF_8), expected.getBytes(UTF_8))) { // takes constant time
                return true;
            }
        }
        return false;
    }

    public static void main(String[] arguments) throws Exception {
        String secret = System.getenv("PENSTOCK_SIGNING_SECRET").replaceFirst("^whsec_", "");
        byte[] key = Base64.getDecoder().decode(secret);
        int port = Integer.parseInt(System.getenv().getOrDefault("PORT", "9000"));
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 0);
        server.createContext("/", exchange -> {
            try (exchange) {
                byte[] body = exchange.getRequestBody().readAllBytes(); // verify the body before it is parsed
                boolean valid = isValid(key, exchange.getRequestHeaders(), body);
                if (valid) { // handle each id once: a retry has the id of the first attempt
                    System.out.println("received " + exchange.getRequestHeaders().getFirst("webhook-id"));
                }
                exchange.sendResponseHeaders(valid ? 204 : 401, -1);
            } catch (GeneralSecurityException impossible) {
                throw new IllegalStateException(impossible);
            }
        });
        server.start();
    }
}
