package PACKAGE;

/** A value does not fit its type. */
public final class InvalidValueException extends RuntimeException {
    private static final long serialVersionUID = 1L;
    private final String reason;
    private final String pointer;

    /** Creates the error of a whole value. */
    public InvalidValueException(String reason) {
        this(reason, "");
    }

    private InvalidValueException(String reason, String pointer) {
        super(pointer.isEmpty() ? reason : pointer + ": " + reason);
        this.reason = reason;
        this.pointer = pointer;
    }

    /** Returns the error as seen from the value that contains this one. */
    InvalidValueException below(String name) {
        return new InvalidValueException(reason, "/" + name.replace("~", "~0").replace("/", "~1") + pointer);
    }

    /** Returns what is needed. */
    public String reason() {
        return reason;
    }

    /** Returns the JSON pointer to the value; empty for all of it. */
    public String pointer() {
        return pointer;
    }
}
