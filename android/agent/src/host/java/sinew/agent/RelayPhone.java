package sinew.agent;

import java.io.IOException;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * A phone that another program on this computer simulates. Each primitive is one connection: a request, an
 * object and a line end, is answered with an object and a line end.
 */
final class RelayPhone extends FakeBags implements Phone {
    private final int port;
    private final Params about;

    RelayPhone(int port) throws Exception {
        this.port = port;
        this.about = new Params((Map<?, ?>) ask("about"));
    }

    /** The answer's {@code result}; its {@code error} is thrown. */
    private Object ask(String what, Object... members) throws Exception {
        Map<String, Object> question = new LinkedHashMap<String, Object>();
        question.put("ask", what);
        for (int i = 0; i + 1 < members.length; i += 2) {
            question.put((String) members[i], members[i + 1]);
        }
        String line;
        try (Socket socket = new Socket(InetAddress.getByName("127.0.0.1"), port)) {
            socket.setTcpNoDelay(true);
            socket.getOutputStream().write((Json.write(question) + "\n").getBytes(StandardCharsets.UTF_8));
            line = new Lines(socket.getInputStream(), socket.getOutputStream()).read();
        }
        if (line == null) {
            throw new IOException("the phone did not answer " + what);
        }
        Params answer = new Params((Map<?, ?>) Json.parse(line));
        if (answer.has("error")) {
            Params error = new Params(answer.map("error"));
            throw new Fault(error.text("type"), error.text("message"));
        }
        return answer.value("result");
    }

    @Override
    public int api() {
        return about.value("api") instanceof Long ? ((Long) about.value("api")).intValue() : 34;
    }

    @Override
    public String release() {
        return String.valueOf(about.value("release"));
    }

    @Override
    public List<String> capabilities() {
        return new ArrayList<String>(FakePhone.ALL);
    }

    @Override
    public List<Element> roots() throws Exception {
        Params tree = new Params((Map<?, ?>) ask("tree"));
        return FakeElement.tree(tree.list("nodes"), this);
    }

    @Override
    public int rotation() throws Exception {
        Object rotation = ask("rotation");
        return rotation instanceof Long ? ((Long) rotation).intValue() : 0;
    }

    @Override
    public Element focused() throws Exception {
        return FakePhone.focused(roots());
    }

    /** Whether the node's field is on the screen and, if a text is given, accepted it. */
    boolean field(Object handle, String text) {
        try {
            return Boolean.TRUE.equals(ask("field", "handle", handle, "text", text));
        } catch (Exception e) {
            return false;
        }
    }

    /** Whether the node's field is on the screen and accepted the selection. */
    boolean select(Object handle, int start, int end) {
        try {
            return Boolean.TRUE.equals(ask("select", "handle", handle, "start", start, "end", end));
        } catch (Exception e) {
            return false;
        }
    }

    @Override
    public byte[] picture(int maxSide, int quality) throws Exception {
        return Base64.getDecoder().decode((String) ask("picture", "max_side", maxSide, "quality", quality));
    }

    @Override
    public boolean awake() throws Exception {
        return Boolean.TRUE.equals(ask("awake"));
    }

    @Override
    public void play(List<Gestures.Event> events) throws Exception {
        ask("touch", "events", FakePhone.toJson(events));
    }

    @Override
    public void key(int code, int meta) throws Exception {
        ask("key", "code", code, "meta", meta);
    }

    @Override
    public String clipboard() throws Exception {
        return (String) ask("clipboard_get");
    }

    @Override
    public void setClipboard(String text) throws Exception {
        ask("clipboard_set", "text", text);
    }

    @Override
    public Bag call(String authority, String method, String arg, Bag extras, int user) throws Exception {
        Bundles bundles = new Bundles(this);
        Object answer = ask("provider_call", "authority", authority, "method", method, "arg", arg,
                "extras", extras == null ? null : bundles.encode(extras), "user", user);
        return answer == null ? null : bundles.decode((Map<?, ?>) answer);
    }

    @Override
    public List<Component> components(String name, int user) throws Exception {
        return FakePhone.components((List<?>) ask("package_meta", "package", name, "user", user), this);
    }

    @Override
    public int user() {
        return 0;
    }

    @Override
    public void close() {
    }
}
