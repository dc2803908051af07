package sinew.agent;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * JSON text to plain values and back: Map, List, String, Long, Double, Boolean and null.
 *
 * Android has its own reader (org.json), which is lenient, recurses without a limit and does
 * not exist on a JVM. This one is strict and bounded. A lone surrogate is written as U+FFFD, because
 * no UTF-8 reader accepts it.
 */
final class Json {
    /** 64: a request nests four deep, a bundle in a bundle two more each. */
    static final int MAX_DEPTH = 64;

    private final String text;
    private int at;

    private Json(String text) {
        this.text = text;
    }

    static Object parse(String text) throws Fault {
        Json json = new Json(text);
        Object value = json.value(0);
        json.space();
        if (json.at < text.length()) {
            throw json.bad("the end");
        }
        return value;
    }

    static String write(Object value) {
        StringBuilder out = new StringBuilder();
        write(value, out);
        return out.toString();
    }

    static void write(Object value, StringBuilder out) {
        if (value instanceof CharSequence) {
            quote((CharSequence) value, out);
        } else if (value instanceof Map) {
            char before = '{';
            for (Map.Entry<?, ?> entry : ((Map<?, ?>) value).entrySet()) {
                out.append(before);
                quote((String) entry.getKey(), out);
                out.append(':');
                write(entry.getValue(), out);
                before = ',';
            }
            out.append(before == '{' ? "{}" : "}");
        } else if (value instanceof List) {
            char before = '[';
            for (Object item : (List<?>) value) {
                out.append(before);
                write(item, out);
                before = ',';
            }
            out.append(before == '[' ? "[]" : "]");
        } else if (value instanceof Double && !finite((Double) value)) {
            throw new IllegalArgumentException("JSON has no " + value);
        } else if (value == null || value instanceof Boolean || value instanceof Long
                || value instanceof Integer || value instanceof Double) {
            out.append(value);
        } else {
            throw new IllegalArgumentException("JSON has no " + value.getClass().getName());
        }
    }

    static boolean finite(double number) {
        return !Double.isNaN(number) && !Double.isInfinite(number);
    }

    private static void quote(CharSequence text, StringBuilder out) {
        out.append('"');
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            if (c == '"' || c == '\\') {
                out.append('\\').append(c);
            } else if (c < 0x20) {
                out.append(String.format("\\u%04x", (int) c));
            } else if (!Character.isSurrogate(c)) {
                out.append(c);
            } else if (i + 1 < text.length() && Character.isSurrogatePair(c, text.charAt(i + 1))) {
                out.append(c).append(text.charAt(++i));
            } else {
                out.append('\ufffd');
            }
        }
        out.append('"');
    }

    private Object value(int depth) throws Fault {
        if (depth > MAX_DEPTH) {
            throw new Fault(Fault.BAD_REQUEST, "the JSON nests deeper than " + MAX_DEPTH);
        }
        space();
        switch (peek()) {
            case '{':
                return object(depth);
            case '[':
                return array(depth);
            case '"':
                return string();
            case 't':
                return word("true", Boolean.TRUE);
            case 'f':
                return word("false", Boolean.FALSE);
            case 'n':
                return word("null", null);
            default:
                return number();
        }
    }

    private Map<String, Object> object(int depth) throws Fault {
        Map<String, Object> map = new LinkedHashMap<String, Object>();
        at++;
        space();
        if (skip('}')) {
            return map;
        }
        do {
            space();
            String key = string();
            space();
            expect(':');
            Object value = value(depth + 1);
            if (map.containsKey(key)) {
                throw new Fault(Fault.BAD_REQUEST, "the JSON has the member '" + key + "' twice");
            }
            map.put(key, value);
            space();
        } while (skip(','));
        expect('}');
        return map;
    }

    private List<Object> array(int depth) throws Fault {
        List<Object> list = new ArrayList<Object>();
        at++;
        space();
        if (skip(']')) {
            return list;
        }
        do {
            list.add(value(depth + 1));
            space();
        } while (skip(','));
        expect(']');
        return list;
    }

    private String string() throws Fault {
        expect('"');
        StringBuilder out = new StringBuilder();
        for (;;) {
            char c = peek();
            if (c < 0x20) {
                throw bad("the end of a string");
            }
            at++;
            if (c == '"') {
                return out.toString();
            }
            out.append(c == '\\' ? escaped() : c);
        }
    }

    private char escaped() throws Fault {
        char c = peek();
        at++;
        int known = "\"\\/bfnrt".indexOf(c);
        if (known >= 0) {
            return "\"\\/\b\f\n\r\t".charAt(known);
        }
        if (c != 'u') {
            throw bad("an escape");
        }
        int code = 0;
        for (int i = 0; i < 4; i++) {
            int digit = peek() < 0x80 ? Character.digit(peek(), 16) : -1;
            if (digit < 0) {
                throw bad("four hexadecimal digits");
            }
            code = code * 16 + digit;
            at++;
        }
        return (char) code;
    }

    private Object number() throws Fault {
        int start = at;
        skip('-');
        int first = at;
        int whole = digits();
        if (whole == 0 || whole > 1 && text.charAt(first) == '0') {
            throw bad("a value");
        }
        boolean plain = true;
        if (skip('.')) {
            plain = false;
            if (digits() == 0) {
                throw bad("a digit");
            }
        }
        if (skip('e') || skip('E')) {
            plain = false;
            if (!skip('+')) {
                skip('-');
            }
            if (digits() == 0) {
                throw bad("a digit");
            }
        }
        String number = text.substring(start, at);
        try {
            double real = Double.parseDouble(number);
            if (plain && !number.equals("-0")) {
                return Long.valueOf(number);
            }
            if (finite(real)) {
                return real;
            }
        } catch (NumberFormatException tooLong) {
            // A whole number of more than 64 bits is refused below.
        }
        throw new Fault(Fault.BAD_REQUEST, "the JSON has a number out of range at character " + start);
    }

    private int digits() {
        int start = at;
        while (peek() >= '0' && peek() <= '9') {
            at++;
        }
        return at - start;
    }

    private Object word(String word, Object value) throws Fault {
        if (!text.startsWith(word, at)) {
            throw bad("a value");
        }
        at += word.length();
        return value;
    }

    private void space() {
        while (peek() == ' ' || peek() == '\t' || peek() == '\r' || peek() == '\n') {
            at++;
        }
    }

    /** NUL at the end, which no token starts with and no string may contain. */
    private char peek() {
        return at < text.length() ? text.charAt(at) : 0;
    }

    private boolean skip(char c) {
        boolean there = at < text.length() && text.charAt(at) == c;
        at += there ? 1 : 0;
        return there;
    }

    private void expect(char c) throws Fault {
        if (!skip(c)) {
            throw bad("'" + c + "'");
        }
    }

    private Fault bad(String expected) {
        return new Fault(Fault.BAD_REQUEST, "not JSON: expected " + expected + " at character " + at);
    }
}
