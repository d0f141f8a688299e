package PACKAGE;

/** Value of a generated class that is sent as an event. */
public interface TypedEvent {
    /** Returns the type of its CloudEvents. */
    String eventType();

    /** Returns the id of the event; empty if it has none and each gets a new one. */
    String eventId();

    /** Returns the JSON. */
    String toJson();
}
