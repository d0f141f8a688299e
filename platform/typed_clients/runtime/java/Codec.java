package PACKAGE;

/** Turns values of a type into JSON, as {@link Json} has it, and back. Both methods throw InvalidValueException. */
public interface Codec<T> {
    /** Returns the JSON of a value that fits. */
    Object encode(T value);

    /** Returns the value of JSON. */
    T decode(Object json);
}
