package PACKAGE;

import java.util.Map;

/** Field of a record: its name in JSON, its codec, and true if it is omitted without a value. */
record Field<T>(String name, Codec<T> codec, boolean isOptional) {
    /** Checks a value. Throws InvalidValueException. */
    void check(T value) {
        if (value != null || !isOptional) {
            encode(value);
        }
    }

    void write(Map<String, Object> object, T value) {
        if (value != null || !isOptional) {
            object.put(name, encode(value));
        }
    }

    T read(Map<?, ?> object) {
        Object found = object.get(name);
        if (found == null && isOptional) {
            return null;
        }
        if (found == null && !object.containsKey(name)) {
            throw new InvalidValueException("is required, but missing").below(name);
        }
        try {
            return codec.decode(found);
        } catch (InvalidValueException error) {
            throw error.below(name);
        }
    }

    private Object encode(T value) {
        try {
            return codec.encode(value);
        } catch (InvalidValueException error) {
            throw error.below(name);
        }
    }
}
