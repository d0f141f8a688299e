package PACKAGE;

import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** JSON as maps, lists, texts, booleans, null, and exact numbers (BigDecimal). */
public final class Json {
    private static final int MAX_LEVELS = 200;
    private static final int MAX_NUMBER = 1_200; // characters, as ingest limits them
    private final String text;
    private int place;

    private Json(String text) {
        this.text = text;
    }

    /** Returns decoded JSON. Throws InvalidValueException. */
    public static Object parse(String text) {
        Json reader = new Json(text);
        Object found = reader.value(0);
        if (reader.place != text.length()) {
            throw reader.error();
        }
        return found;
    }

    /** Returns the JSON of maps, lists, texts, booleans, numbers and null. */
    public static String write(Object value) {
        StringBuilder out = new StringBuilder();
        write(out, value);
        return out.toString();
    }

    private static void write(StringBuilder out, Object value) {
        if (value instanceof String string) {
            quote(out, string);
        } else if (value instanceof Map<?, ?> map) {
            char before = '{';
            for (Map.Entry<?, ?> one : map.entrySet()) {
                out.append(before);
                quote(out, (String) one.getKey());
                out.append(':');
                write(out, one.getValue());
                before = ',';
            }
            out.append(map.isEmpty() ? "{}" : "}");
        } else if (value instanceof List<?> list) {
            char before = '[';
            for (Object one : list) {
                out.append(before);
                write(out, one);
                before = ',';
            }
            out.append(list.isEmpty() ? "[]" : "]");
        } else {
            out.append(value);
        }
    }

    private static void quote(StringBuilder out, String string) {
        out.append('"');
        for (int at = 0; at < string.length(); at++) {
            char one = string.charAt(at);
            if (one == '"' || one == '\\') {
                out.append('\\').append(one);
            } else if (one < ' ') {
                out.append(String.format("\\u%04x", (int) one));
            } else {
                out.append(one);
            }
        }
        out.append('"');
    }

    private Object value(int level) {
        if (level > MAX_LEVELS) {
            throw new InvalidValueException("needs at most " + MAX_LEVELS + " levels");
        }
        skip();
        Object found;
        if (takes('{')) {
            found = object(level);
        } else if (takes('[')) {
            found = array(level);
        } else if (takes('"')) {
            found = string();
        } else {
            found = plain();
        }
        skip();
        return found;
    }

    private Object object(int level) {
        Map<String, Object> found = new LinkedHashMap<>();
        skip();
        if (takes('}')) {
            return found;
        }
        while (true) {
            skip();
            need('"');
            String name = string();
            skip();
            need(':');
            found.put(name, value(level + 1));
            if (takes('}')) {
                return found;
            }
            need(',');
        }
    }

    private Object array(int level) {
        List<Object> found = new ArrayList<>();
        skip();
        if (takes(']')) {
            return found;
        }
        while (true) {
            found.add(value(level + 1));
            if (takes(']')) {
                return found;
            }
            need(',');
        }
    }

    private String string() {
        StringBuilder found = new StringBuilder();
        while (true) {
            char one = next();
            if (one == '"') {
                return found.toString();
            }
            if (one < ' ') {
                throw error();
            }
            found.append(one == '\\' ? escaped() : one);
        }
    }

    private char escaped() {
        char one = next();
        switch (one) {
            case '"', '\\', '/':
                return one;
            case 'b':
                return '\b';
            case 'f':
                return '\f';
            case 'n':
                return '\n';
            case 'r':
                return '\r';
            case 't':
                return '\t';
            case 'u':
                int code = 0;
                for (int count = 0; count < 4; count++) {
                    int digit = Character.digit(next(), 16);
                    if (digit < 0) {
                        throw error();
                    }
                    code = code * 16 + digit;
                }
                return (char) code;
            default:
                throw error();
        }
    }

    private Object plain() {
        int start = place;
        while (place < text.length() && "+-.0123456789abcdefghijklmnopqrstuvwxyzE".indexOf(text.charAt(place)) >= 0) {
            place++;
        }
        String found = text.substring(start, place);
        switch (found) {
            case "null":
                return null;
            case "true":
                return true;
            case "false":
                return false;
            default:
                if (found.length() > MAX_NUMBER || !found.matches("-?(0|[1-9]\\d*)(\\.\\d+)?([eE][+-]?\\d{1,9})?")) {
                    throw error();
                }
                return new BigDecimal(found);
        }
    }

    private void skip() {
        while (place < text.length() && " \t\r\n".indexOf(text.charAt(place)) >= 0) {
            place++;
        }
    }

    private char next() {
        if (place >= text.length()) {
            throw error();
        }
        return text.charAt(place++);
    }

    private boolean takes(char wanted) {
        if (place < text.length() && text.charAt(place) == wanted) {
            place++;
            return true;
        }
        return false;
    }

    private void need(char wanted) {
        if (!takes(wanted)) {
            throw error();
        }
    }

    private InvalidValueException error() {
        return new InvalidValueException("needs JSON; character " + place + " is unexpected");
    }
}
