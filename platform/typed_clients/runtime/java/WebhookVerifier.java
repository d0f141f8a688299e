package PACKAGE;

import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.MessageDigest;
import java.security.PublicKey;
import java.security.Signature;
import java.security.spec.X509EncodedKeySpec;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/**
 * Verifies deliveries: Standard Webhooks signatures (standardwebhooks.com, specification 1.0), with one secret, or several
 * during a rotation: {@code whsec_} (v1), or a public key {@code whpk_} (v1a).
 */
public final class WebhookVerifier {
    private static final Duration TOLERANCE = Duration.ofSeconds(300); // between the receiver's clock and the signed time
    private static final byte[] ED25519_HEAD = {0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00};
    private final List<Check> checks = new ArrayList<>();

    /** The request is not a delivery by the holder of the secret, or is too old. Return 401. */
    public static final class SignatureInvalidException extends Exception {
        private static final long serialVersionUID = 1L;

        SignatureInvalidException(String message) {
            super(message);
        }
    }

    /**
     * A delivery whose signature is valid.
     *
     * @param id the same for each attempt of Penstock to deliver it
     * @param eventId the same even if the sender repeated the event; empty without CloudEvents attributes. Handle each once.
     * @param eventType of the CloudEvent; empty if there is none
     * @param sentAt the signed time
     * @param body the bytes of the request
     */
    public record VerifiedDelivery(String id, String eventId, String eventType, Instant sentAt, byte[] body) {}

    private interface Check {
        boolean accepts(byte[] signed, String signature) throws GeneralSecurityException;
    }

    /** Throws IllegalArgumentException for a malformed secret. */
    public WebhookVerifier(String... secrets) {
        if (secrets.length == 0) {
            throw new IllegalArgumentException("needs at least one secret");
        }
        for (String secret : secrets) {
            checks.add(checkOf(secret));
        }
    }

    /** Returns the delivery; {@code body} is the exact bytes of the request. Names of headers ignore case. */
    public VerifiedDelivery verify(Map<String, String> headers, byte[] body) throws SignatureInvalidException {
        return verify(headers, body, Instant.now());
    }

    VerifiedDelivery verify(Map<String, String> headers, byte[] body, Instant now) throws SignatureInvalidException {
        Map<String, String> given = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);
        given.putAll(headers);
        String id = given.getOrDefault("webhook-id", "");
        String sent = given.getOrDefault("webhook-timestamp", "");
        String signatures = given.getOrDefault("webhook-signature", "");
        if (id.isEmpty() || signatures.isEmpty() || !sent.matches("[0-9]{1,12}")) {
            throw new SignatureInvalidException(
                    "needs the headers webhook-id, webhook-timestamp and webhook-signature");
        }
        Instant sentAt = Instant.ofEpochSecond(Long.parseLong(sent));
        if (Duration.between(sentAt, now).abs().compareTo(TOLERANCE) > 0) {
            throw new SignatureInvalidException("needs a time within " + TOLERANCE.toSeconds() + " seconds of this clock");
        }
        byte[] head = (id + "." + sent + ".").getBytes(StandardCharsets.UTF_8);
        byte[] signed = new byte[head.length + body.length];
        System.arraycopy(head, 0, signed, 0, head.length);
        System.arraycopy(body, 0, signed, head.length, body.length);
        for (String signature : signatures.split(" ")) {
            for (Check check : checks) {
                if (accepts(check, signed, signature)) {
                    String eventId = given.getOrDefault("ce-id", "");
                    return new VerifiedDelivery(id, eventId, given.getOrDefault("ce-type", ""), sentAt, body);
                }
            }
        }
        throw new SignatureInvalidException("needs a signature by one of the secrets");
    }

    private static boolean accepts(Check check, byte[] signed, String signature) {
        try {
            return check.accepts(signed, signature);
        } catch (GeneralSecurityException | IllegalArgumentException malformed) {
            return false;
        }
    }

    private static Check checkOf(String secret) {
        int place = secret.indexOf('_') + 1;
        byte[] key = Base64.getDecoder().decode(secret.substring(place));
        String prefix = secret.substring(0, place);
        if (prefix.equals("whsec_") && key.length > 0) {
            return symmetric(key);
        }
        if (prefix.equals("whpk_") && key.length == 32) {
            return asymmetric(key);
        }
        throw new IllegalArgumentException(
                "needs a secret with the prefix whsec_, or a public key of 32 bytes with the prefix whpk_");
    }

    private static Check symmetric(byte[] key) {
        return (signed, signature) -> {
            Mac mac = Mac.getInstance("HmacSHA256");
            mac.init(new SecretKeySpec(key, "HmacSHA256"));
            String wanted = "v1," + Base64.getEncoder().encodeToString(mac.doFinal(signed));
            return MessageDigest.isEqual(
                    wanted.getBytes(StandardCharsets.UTF_8), signature.getBytes(StandardCharsets.UTF_8));
        };
    }

    private static Check asymmetric(byte[] key) {
        byte[] encoded = new byte[ED25519_HEAD.length + key.length];
        System.arraycopy(ED25519_HEAD, 0, encoded, 0, ED25519_HEAD.length);
        System.arraycopy(key, 0, encoded, ED25519_HEAD.length, key.length);
        return (signed, signature) -> {
            if (!signature.startsWith("v1a,")) {
                return false;
            }
            PublicKey key25519 = KeyFactory.getInstance("Ed25519").generatePublic(new X509EncodedKeySpec(encoded));
            Signature verifier = Signature.getInstance("Ed25519");
            verifier.initVerify(key25519);
            verifier.update(signed);
            return verifier.verify(Base64.getDecoder().decode(signature.substring(4)));
        };
    }
}
