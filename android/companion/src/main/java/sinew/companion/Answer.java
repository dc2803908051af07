package sinew.companion;

/** The answers to a call as JSON text; docs/android-agent.md describes them. */
final class Answer {
    static final String VERSION = "0.1.0";
    static final int PROTOCOL = 1;

    private Answer() {
    }

    static String about() {
        return "{\"companion\":\"sinew-companion\",\"version\":\"" + VERSION + "\",\"protocol\":" + PROTOCOL + "}";
    }

    /** What the tool's activity returned; {@code result} is null if it returned no such string. */
    static String result(int code, String result) {
        return "{\"code\":" + code + ",\"result\":" + quote(result) + "}";
    }

    static String error(String type, String message) {
        return "{\"error\":{\"type\":" + quote(type) + ",\"message\":" + quote(message) + "}}";
    }

    /** A lone surrogate becomes U+FFFD, because no UTF-8 reader accepts it. */
    static String quote(String text) {
        if (text == null) {
            return "null";
        }
        StringBuilder out = new StringBuilder("\"");
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
        return out.append('"').toString();
    }
}
