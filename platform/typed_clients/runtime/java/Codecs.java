package PACKAGE;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.time.DateTimeException;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.regex.Pattern;

/** Checks of values, and their form in JSON, as Penstock's ingest takes them. Decimals, times and ids are texts. */
final class Codecs {
    private static final Pattern UUID_TEXT = Pattern.compile("[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}");
    private static final Pattern DECIMAL = Pattern.compile("[+-]?\\d{1,1200}(\\.\\d{0,1200})?|[+-]?\\.\\d{1,1200}");
    private static final int MAX_EXPONENT = 10_000; // beyond it no type holds the number, and its digits fill memory
    private static final int NANOSECONDS = 9; // digits after the second
    private static final int UNLIMITED = -1;
    private static final int SHOWN = 200;

    private Codecs() {}

    private static InvalidValueException error(String reason) {
        return new InvalidValueException(reason.length() > SHOWN ? reason.substring(0, SHOWN) : reason);
    }

    private static <T> Codec<T> codec(Function<T, Object> encode, Function<Object, T> decode) {
        return new Codec<>() {
            @Override
            public Object encode(T value) {
                return encode.apply(value);
            }

            @Override
            public T decode(Object json) {
                return decode.apply(json);
            }
        };
    }

    /** Returns a codec whose values have the same form in JSON. */
    private static <T> Codec<T> same(Class<T> kind, String needed, Function<T, T> check) {
        return codec(value -> check.apply(cast(kind, value, needed)), json -> check.apply(cast(kind, json, needed)));
    }

    private static <T> T cast(Class<T> kind, Object value, String needed) {
        if (!kind.isInstance(value)) {
            throw error(needed);
        }
        return kind.cast(value);
    }

    private static void checkSize(int size, int low, int high, String unit) {
        if (low != UNLIMITED && size < low) {
            throw error("needs at least " + low + " " + unit + ", got " + size);
        }
        if (high != UNLIMITED && size > high) {
            throw error("needs at most " + high + " " + unit + ", got " + size);
        }
    }

    static Codec<Void> nothing() {
        Function<Object, Void> check = value -> {
            if (value != null) {
                throw error("needs null");
            }
            return null;
        };
        return codec(check::apply, check);
    }

    static Codec<Boolean> bool() {
        return same(Boolean.class, "needs a boolean", value -> value);
    }

    static Codec<Integer> int32() {
        Codec<Long> wide = int64(Integer.MIN_VALUE, Integer.MAX_VALUE);
        return codec(value -> wide.encode(cast(Integer.class, value, "needs an int").longValue()),
                json -> wide.decode(json).intValue());
    }

    /** Returns the codec of whole numbers, both limits included. */
    static Codec<Long> int64(long low, long high) {
        String needed = "needs a whole number of " + low + " to " + high;
        Function<Long, Long> check = value -> {
            if (value == null || value < low || value > high) {
                throw error(needed);
            }
            return value;
        };
        return codec(check::apply, json -> check.apply(whole(json)));
    }

    /** Returns the whole number of JSON; null if it is none. */
    private static Long whole(Object json) {
        if (!(json instanceof BigDecimal number) || Math.abs((long) number.scale()) > MAX_EXPONENT) {
            return null;
        }
        try {
            return number.longValueExact();
        } catch (ArithmeticException tooLarge) {
            return null;
        }
    }

    static Codec<Float> float32() {
        return codec(value -> floating(cast(Float.class, value, "needs a float").toString()), json -> {
            float found = number(json).floatValue();
            if (Float.isInfinite(found) && json instanceof BigDecimal) {
                throw error("needs a number in the range of its type");
            }
            return found;
        });
    }

    static Codec<Double> float64() {
        return codec(value -> floating(cast(Double.class, value, "needs a double").toString()), json -> {
            double found = number(json).doubleValue();
            if (Double.isInfinite(found) && json instanceof BigDecimal) {
                throw error("needs a number in the range of its type");
            }
            return found;
        });
    }

    /** Returns the codec of doubles that are not NaN or infinite. */
    static Codec<Double> finite() {
        Codec<Double> any = float64();
        return codec(value -> {
            Object found = any.encode(value);
            if (found instanceof String) {
                throw error("needs a finite number");
            }
            return found;
        }, json -> any.decode(cast(BigDecimal.class, json, "needs a finite number")));
    }

    private static Object floating(String text) {
        return text.endsWith("NaN") || text.endsWith("Infinity") ? text : new BigDecimal(text);
    }

    private static Number number(Object json) {
        if (json instanceof BigDecimal found) {
            return found;
        }
        if ("NaN".equals(json) || "Infinity".equals(json) || "-Infinity".equals(json)) {
            return Double.valueOf((String) json);
        }
        throw error("needs a number");
    }

    /** Returns the codec of texts; a limit of -1 is none. */
    static Codec<String> text(int low, int high) {
        return same(String.class, "needs a text", value -> {
            int[] size = {0};
            value.codePoints().forEach(one -> {
                if (one >= Character.MIN_SURROGATE && one <= Character.MAX_SURROGATE) {
                    throw error("has half of a character (a lone surrogate)");
                }
                size[0]++;
            });
            checkSize(size[0], low, high, "characters");
            return value;
        });
    }

    /** Returns the codec of bytes: in JSON, one character for each byte. */
    static Codec<byte[]> bytes(int low, int high) {
        return codec(value -> {
            checkSize(cast(byte[].class, value, "needs bytes").length, low, high, "bytes");
            return new String(value, StandardCharsets.ISO_8859_1);
        }, json -> {
            String found = cast(String.class, json, "needs a text with one character for each byte");
            if (found.chars().anyMatch(one -> one > 0xFF)) {
                throw error("needs a text with one character for each byte");
            }
            checkSize(found.length(), low, high, "bytes");
            return found.getBytes(StandardCharsets.ISO_8859_1);
        });
    }

    static Codec<UUID> uniqueId() {
        return codec(value -> cast(UUID.class, value, "needs a UUID").toString(), json -> {
            if (!(json instanceof String text) || !UUID_TEXT.matcher(text).matches()) {
                throw error("needs a UUID");
            }
            return UUID.fromString(text);
        });
    }

    static Codec<TimeUuid> timeUuid() {
        return codec(value -> cast(TimeUuid.class, value, "needs a TimeUuid").toString(),
                json -> TimeUuid.parse(cast(String.class, json, "needs a UUID of version 1 or 7")));
    }

    /** Returns the codec of decimals with {@code scale} digits after the point and {@code precision} in total. */
    static Codec<BigDecimal> decimal(int precision, int scale) {
        Function<BigDecimal, BigDecimal> check = value -> {
            if (value.signum() == 0) {
                return BigDecimal.ZERO.setScale(Math.min(Math.max(value.scale(), 0), scale));
            }
            if ((long) value.precision() - value.scale() > precision - scale) {
                throw error("needs at most " + (precision - scale) + " digits before the point");
            }
            if (value.stripTrailingZeros().scale() > scale) {
                throw error("needs at most " + scale + " digits after the point");
            }
            return value;
        };
        return codec(value -> check.apply(cast(BigDecimal.class, value, "needs a BigDecimal")).toPlainString(), json -> {
            if (json instanceof String text && DECIMAL.matcher(text).matches()) {
                return check.apply(new BigDecimal(text));
            }
            return check.apply(cast(BigDecimal.class, json, "needs a number as text, such as 12.50"));
        });
    }

    /** Returns the codec of moments with up to {@code digits} digits after the second. */
    static Codec<Instant> timestamp(int digits) {
        return codec(value -> {
            LocalDateTime found = LocalDateTime.ofInstant(cast(Instant.class, value, "needs an Instant"), ZoneOffset.UTC);
            return dateTime(found, digits) + "Z";
        }, json -> moment(json, digits, text -> OffsetDateTime.parse(text).toInstant(), "with"));
    }

    /** Returns the codec of moments without a zone. */
    static Codec<LocalDateTime> localTimestamp(int digits) {
        return codec(value -> dateTime(cast(LocalDateTime.class, value, "needs a LocalDateTime"), digits),
                json -> json instanceof BigDecimal
                        ? LocalDateTime.ofInstant(moment(json, digits, null, ""), ZoneOffset.UTC)
                        : moment(json, digits, LocalDateTime::parse, "without"));
    }

    @SuppressWarnings("unchecked")
    private static <T> T moment(Object json, int digits, Function<String, T> parse, String zone) {
        try {
            if (json instanceof String text) {
                return parse.apply(text.replace(' ', 'T').toUpperCase(java.util.Locale.ROOT));
            }
            Long count = whole(json);
            if (count != null) {
                long units = power(digits);
                long nanos = Math.floorMod(count, units) * (1_000_000_000L / units);
                return (T) Instant.ofEpochSecond(Math.floorDiv(count, units), nanos);
            }
        } catch (DateTimeException malformed) {
            // the error below says what is needed
        }
        throw error("needs a time as of RFC 3339 " + zone + " a zone, such as 2026-11-25T08:00:00.123Z");
    }

    private static long power(int digits) {
        return BigInteger.TEN.pow(digits).longValueExact();
    }

    private static String dateTime(LocalDateTime value, int digits) {
        if (value.getYear() < 1 || value.getYear() > 9999) {
            throw error("needs a year of 1 to 9999");
        }
        if (digits == NANOSECONDS && (value.getYear() < 1678 || value.getYear() > 2261)) {
            throw error("needs a year of 1678 to 2261, because it is counted in nanoseconds");
        }
        return value.toLocalDate() + "T" + clock(value.toLocalTime(), digits);
    }

    private static String clock(LocalTime value, int digits) {
        String seconds = String.format("%02d:%02d:%02d", value.getHour(), value.getMinute(), value.getSecond());
        if (value.getNano() == 0) {
            return seconds;
        }
        long unit = 1_000_000_000L / power(digits);
        if (value.getNano() % unit != 0) {
            throw error("needs at most " + digits + " digits after the second");
        }
        return seconds + "." + String.format("%0" + digits + "d", value.getNano() / unit);
    }

    static Codec<LocalDate> day() {
        return codec(value -> {
            LocalDate found = cast(LocalDate.class, value, "needs a LocalDate");
            if (found.getYear() < 1 || found.getYear() > 9999) {
                throw error("needs a year of 1 to 9999");
            }
            return found.toString();
        }, json -> {
            try {
                if (json instanceof String text) {
                    return LocalDate.parse(text);
                }
                Long days = whole(json);
                if (days != null) {
                    return LocalDate.ofEpochDay(days);
                }
            } catch (DateTimeException malformed) {
                // the error below says what is needed
            }
            throw error("needs a date, such as 2026-11-25");
        });
    }

    static Codec<LocalTime> timeOfDay(int digits) {
        return codec(value -> clock(cast(LocalTime.class, value, "needs a LocalTime"), digits), json -> {
            try {
                if (json instanceof String text) {
                    return LocalTime.parse(text);
                }
                Long count = whole(json);
                if (count != null) {
                    return LocalTime.ofNanoOfDay(Math.multiplyExact(count, 1_000_000_000L / power(digits)));
                }
            } catch (DateTimeException | ArithmeticException malformed) {
                // the error below says what is needed
            }
            throw error("needs a time of day, such as 08:00:00.123");
        });
    }

    /** Returns the codec of any JSON: maps, lists, texts, booleans, numbers and null. */
    static Codec<Object> anyJson() {
        return codec(Codecs::json, json -> json);
    }

    private static Object json(Object value) {
        if (value == null || value instanceof Boolean || value instanceof BigDecimal || value instanceof BigInteger
                || value instanceof Integer || value instanceof Long) {
            return value;
        }
        if (value instanceof Double || value instanceof Float) {
            return finite().encode(((Number) value).doubleValue());
        }
        if (value instanceof String text) {
            return text(UNLIMITED, UNLIMITED).encode(text);
        }
        if (value instanceof List<?> list) {
            List<Object> found = new ArrayList<>();
            list.forEach(one -> found.add(json(one)));
            return found;
        }
        if (value instanceof Map<?, ?> map) {
            Map<String, Object> found = new LinkedHashMap<>();
            map.forEach((name, one) -> found.put(cast(String.class, name, "needs texts as names"), json(one)));
            return found;
        }
        throw error("needs JSON");
    }

    /** Returns the codec of an enum; {@code symbol} returns the text of a constant. */
    static <E extends Enum<E>> Codec<E> oneOf(Class<E> kind, Function<E, String> symbol) {
        return codec(value -> symbol.apply(cast(kind, value, "needs a " + kind.getSimpleName())), json -> {
            for (E one : kind.getEnumConstants()) {
                if (symbol.apply(one).equals(json)) {
                    return one;
                }
            }
            throw error("needs one of " + String.join(", ", List.of(kind.getEnumConstants()).stream().map(symbol).toList()));
        });
    }

    interface Writer<T> {
        void write(T value, Map<String, Object> object);
    }

    /** Returns the codec of a generated class. */
    static <T> Codec<T> record(Class<T> kind, Writer<T> writer, Function<Map<?, ?>, T> reader) {
        return codec(value -> {
            Map<String, Object> found = new LinkedHashMap<>();
            writer.write(cast(kind, value, "needs a " + kind.getSimpleName()), found);
            return found;
        }, json -> reader.apply(cast(Map.class, json, "needs an object")));
    }

    /** Returns a codec that is looked up when it is used: records may contain each other. */
    static <T> Codec<T> lazy(Supplier<Codec<T>> codec) {
        return codec(value -> codec.get().encode(value), json -> codec.get().decode(json));
    }

    /** Returns the codec of lists; a limit of -1 is none. */
    static <T> Codec<List<T>> list(Codec<T> item, int low, int high) {
        return codec(value -> {
            checkSize(cast(List.class, value, "needs a list").size(), low, high, "items");
            List<Object> found = new ArrayList<>();
            for (T one : value) {
                found.add(at(String.valueOf(found.size()), item::encode, one));
            }
            return found;
        }, json -> {
            List<?> given = cast(List.class, json, "needs a list");
            checkSize(given.size(), low, high, "items");
            List<T> found = new ArrayList<>();
            for (Object one : given) {
                found.add(at(String.valueOf(found.size()), item::decode, one));
            }
            return found;
        });
    }

    /** Returns the codec of values by text. */
    static <T> Codec<Map<String, T>> map(Codec<T> item) {
        return codec(value -> {
            Map<String, Object> found = new LinkedHashMap<>();
            for (Map.Entry<String, T> one : cast(value).entrySet()) {
                found.put(one.getKey(), at(one.getKey(), item::encode, one.getValue()));
            }
            return found;
        }, json -> {
            Map<String, T> found = new LinkedHashMap<>();
            Map<?, ?> given = cast(Map.class, json, "needs an object");
            for (Map.Entry<?, ?> one : given.entrySet()) {
                found.put((String) one.getKey(), at((String) one.getKey(), item::decode, one.getValue()));
            }
            return found;
        });
    }

    private static <T> Map<String, T> cast(Map<String, T> value) {
        if (value == null) {
            throw error("needs a map");
        }
        return value;
    }

    private static <A, B> B at(String name, Function<A, B> turn, A value) {
        try {
            return turn.apply(value);
        } catch (InvalidValueException error) {
            throw error.below(name);
        }
    }

    /** Returns the codec of a type that also has null. */
    static <T> Codec<T> nullable(Codec<T> item) {
        return codec(value -> value == null ? null : item.encode(value), json -> json == null ? null : item.decode(json));
    }

    record Branch<T>(String label, Class<T> kind, Codec<T> codec) {
        /** Returns the JSON, boxed in a list; null if the value is of another branch. */
        List<Object> encoded(Object value) {
            if (!kind.isInstance(value)) {
                return null;
            }
            return attempt(() -> codec.encode(kind.cast(value)));
        }

        List<Object> decoded(Object json) {
            return attempt(() -> codec.decode(json));
        }

        private static List<Object> attempt(Supplier<Object> run) {
            try {
                return java.util.Collections.singletonList(run.get());
            } catch (InvalidValueException other) {
                return null;
            }
        }
    }

    static <T> Branch<T> branch(String label, Class<?> kind, Codec<T> codec) {
        @SuppressWarnings("unchecked")
        Class<T> raw = (Class<T>) kind; // of lists and maps, whose codec checks the items
        return new Branch<>(label, raw, codec);
    }

    /**
     * Returns the codec of a union; a value is of the first branch that takes it. In JSON it is
     * {@code {"<branch>": value}} if it could be taken for an earlier branch, else the value.
     */
    static Codec<Object> union(Branch<?>... branches) {
        return codec(value -> {
            for (int place = 0; place < branches.length; place++) {
                List<Object> found = branches[place].encoded(value);
                if (found != null) {
                    boolean isTaken = labelled(found.get(0), branches) != null;
                    Object readable = Json.parse(Json.write(found.get(0)));
                    for (int earlier = 0; earlier < place && !isTaken; earlier++) {
                        isTaken = branches[earlier].decoded(readable) != null;
                    }
                    return isTaken ? Map.of(branches[place].label(), found.get(0)) : found.get(0);
                }
            }
            throw needed(branches);
        }, json -> {
            Branch<?> named = labelled(json, branches);
            if (named != null) {
                return at(named.label(), named.codec()::decode, ((Map<?, ?>) json).get(named.label()));
            }
            for (Branch<?> one : branches) {
                List<Object> found = one.decoded(json);
                if (found != null) {
                    return found.get(0);
                }
            }
            throw needed(branches);
        });
    }

    private static Branch<?> labelled(Object json, Branch<?>... branches) {
        if (json instanceof Map<?, ?> map && map.size() == 1) {
            for (Branch<?> one : branches) {
                if (map.containsKey(one.label())) {
                    return one;
                }
            }
        }
        return null;
    }

    private static InvalidValueException needed(Branch<?>... branches) {
        return error("needs a value of " + String.join(", ", List.of(branches).stream().map(Branch::label).toList()));
    }
}
