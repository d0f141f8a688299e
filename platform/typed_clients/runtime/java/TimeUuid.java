package PACKAGE;

import java.security.SecureRandom;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.UUID;

/** TimeUuid: a UUID whose clock orders events. Version 7 (RFC 9562) is created; version 1 is accepted, too. */
public record TimeUuid(UUID uuid) implements Comparable<TimeUuid> {
    private static final SecureRandom CHANCE = new SecureRandom();
    private static final long EARLIEST_US = 946_684_800_000_000L; // 2000-01-01, as Penstock checks it
    private static final long GREGORIAN_TO_UNIX_US = 12_219_292_800_000_000L;
    private static long last;

    /** Throws InvalidValueException for a UUID that is not a TimeUuid. */
    public TimeUuid {
        if (uuid == null || uuid.variant() != 2 || (uuid.version() != 1 && uuid.version() != 7)) {
            throw new InvalidValueException("needs a UUID of version 1 or 7");
        }
        if (clockUs(uuid) < EARLIEST_US) {
            throw new InvalidValueException("needs a UUID whose clock is after 1999");
        }
    }

    /** Returns the TimeUuid of a text. Throws InvalidValueException. */
    public static TimeUuid parse(String text) {
        return new TimeUuid(Codecs.uniqueId().decode(text));
    }

    /** Returns a new version 7: milliseconds, twelve bits of their fraction, and random bits. They ascend. */
    public static TimeUuid now() {
        long clock = nextClock();
        long high = clock >>> 12 << 16 | 7L << 12 | clock & 0xFFF;
        return new TimeUuid(new UUID(high, CHANCE.nextLong() >>> 2 | 1L << 63));
    }

    private static synchronized long nextClock() {
        Instant now = Instant.now();
        long fraction = now.getNano() % 1_000_000 * 4_096L / 1_000_000;
        last = Math.max(last + 1, now.toEpochMilli() << 12 | fraction);
        return last;
    }

    /** Returns the clock in microseconds since 1970. */
    public long clockUs() {
        return clockUs(uuid);
    }

    private static long clockUs(UUID uuid) {
        return uuid.version() == 7
                ? (uuid.getMostSignificantBits() >>> 16) * 1_000
                : uuid.timestamp() / 10 - GREGORIAN_TO_UNIX_US;
    }

    /** Returns the clock. */
    public Instant time() {
        return Instant.EPOCH.plus(clockUs(), ChronoUnit.MICROS);
    }

    @Override
    public int compareTo(TimeUuid other) {
        int byClock = Long.compare(clockUs(), other.clockUs());
        return byClock != 0 ? byClock : toString().compareTo(other.toString());
    }

    @Override
    public String toString() {
        return uuid.toString();
    }
}
