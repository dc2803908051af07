package sinew.agent;

import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * A phone in memory, made from a scene. It keeps text and clipboard, and a provider answers what the
 * scene says. Touches and keys are written to a log, one JSON object
 * per line, and change nothing.
 */
final class FakePhone extends FakeBags implements Phone {
    /** A provider that is always there: echo, null, hang, throw, crash, refuse. */
    static final String ECHO = "sinew.echo";

    static final List<String> ALL = Arrays.asList("ping", "tree", "set_text", "select", "picture", "touch", "key", "clipboard_get",
            "clipboard_set", "provider_call", "package_meta");

    private final Params scene;
    private final PrintStream log;
    private final List<Element> roots;
    private String clipboard;

    FakePhone(Map<?, ?> scene, PrintStream log) throws Fault {
        this.scene = new Params(scene);
        this.log = log;
        this.clipboard = this.scene.optionalText("clipboard");
        this.roots = this.scene.has("nodes")
                ? FakeElement.tree(this.scene.list("nodes"), null) : new ArrayList<Element>();
    }

    @Override
    public int api() {
        return (int) number("api", 34);
    }

    @Override
    public String release() {
        return scene.has("release") ? String.valueOf(value("release")) : "14";
    }

    @Override
    public List<String> capabilities() {
        List<String> all = new ArrayList<String>(ALL);
        if (value("without") instanceof List) {
            all.removeAll((List<?>) value("without"));
        }
        return all;
    }

    /** What the scene omits fails as on a phone without it. */
    private void need(String method) throws Fault {
        if (!capabilities().contains(method)) {
            throw new Fault(Fault.UNSUPPORTED, "this phone has no " + method);
        }
    }

    @Override
    public List<Element> roots() throws Fault {
        need("tree");
        return roots;
    }

    @Override
    public int rotation() {
        return (int) number("rotation", 0);
    }

    @Override
    public byte[] picture(int maxSide, int quality) throws Fault {
        need("picture");
        return ("a picture of " + maxSide + " pixels, quality " + quality).getBytes(StandardCharsets.US_ASCII);
    }

    @Override
    public Element focused() throws Fault {
        need("set_text");
        return focused(roots);
    }

    static Element focused(List<Element> elements) {
        for (Element element : elements) {
            Element found = (element.flags() & Element.FOCUSED) != 0
                    ? element : focused(((FakeElement) element).children);
            if (found != null) {
                return found;
            }
        }
        return null;
    }

    @Override
    public boolean awake() {
        return !Boolean.TRUE.equals(value("asleep"));
    }

    @Override
    public void play(List<Gestures.Event> events) throws Exception {
        need("touch");
        // As on a phone, the answer is sent when the last finger is up.
        Thread.sleep(events.get(events.size() - 1).at);
        tell("touch", toJson(events));
    }

    /** Each as {@code [ms, action, index, [[id, x, y], …]]}. */
    static List<Object> toJson(List<Gestures.Event> events) {
        List<Object> all = new ArrayList<Object>();
        for (Gestures.Event event : events) {
            List<Object> fingers = new ArrayList<Object>();
            for (int i = 0; i < event.ids.length; i++) {
                fingers.add(Arrays.<Object>asList(event.ids[i], (double) event.x[i], (double) event.y[i]));
            }
            all.add(Arrays.<Object>asList(event.at, event.action, event.index, fingers));
        }
        return all;
    }

    @Override
    public void key(int code, int meta) throws Fault {
        need("key");
        tell("key", Arrays.<Object>asList(code, meta));
    }

    private void tell(String what, Object details) {
        Map<String, Object> line = new LinkedHashMap<String, Object>();
        line.put(what, details);
        log.println(Json.write(line));
    }

    @Override
    public String clipboard() throws Fault {
        need("clipboard_get");
        return clipboard;
    }

    @Override
    public void setClipboard(String text) throws Fault {
        need("clipboard_set");
        clipboard = text;
    }

    @Override
    public Bag call(String authority, String method, String arg, Bag extras, int user) throws Exception {
        need("provider_call");
        if (authority.equals(ECHO)) {
            return echo(method, extras);
        }
        Object methods = scene.has("providers") ? scene.map("providers").get(authority) : null;
        if (!(methods instanceof Map)) {
            throw new Fault(Fault.NOT_FOUND, "no app offers the content provider '" + authority + "' to user " + user);
        }
        Object answer = ((Map<?, ?>) methods).get(method);
        if (!(answer instanceof Map)) {
            throw new Fault(Fault.FAILED, "'" + authority + "' threw java.lang.UnsupportedOperationException: " + method);
        }
        Params params = new Params((Map<?, ?>) answer);
        if (params.has("error")) {
            Params error = new Params(params.map("error"));
            throw new Fault(error.text("type"), error.text("message"));
        }
        return params.has("bundle") ? new Bundles(this).decode(params.map("bundle")) : null;
    }

    private static Bag echo(String method, Bag extras) throws Exception {
        switch (method) {
            case "echo":
                return extras;
            case "null":
                return null;
            case "hang":
                Thread.sleep(Long.MAX_VALUE);
                return null;
            case "crash":
                throw new Fault(Fault.CRASHED, "the app of '" + ECHO + "' died during crash");
            case "refuse":
                throw new SecurityException("Permission Denial: opening provider");
            default:
                throw new IllegalArgumentException("Unknown method: " + method);
        }
    }

    @Override
    public List<Component> components(String name, int user) throws Fault {
        need("package_meta");
        Object declared = scene.has("packages") ? scene.map("packages").get(name) : null;
        if (!(declared instanceof List)) {
            throw new Fault(Fault.NOT_FOUND, "user " + user + " has no package '" + name + "'");
        }
        return components((List<?>) declared, this);
    }

    /** As {@code package_meta} gives them. */
    static List<Component> components(List<?> declared, Bags bags) throws Fault {
        List<Component> components = new ArrayList<Component>();
        for (Object item : declared) {
            Map<?, ?> json = (Map<?, ?>) item;
            Params params = new Params(json);
            Component component = new Component();
            component.kind = params.text("kind");
            component.name = params.text("name");
            component.exported = !Boolean.FALSE.equals(json.get("exported"));
            component.enabled = !Boolean.FALSE.equals(json.get("enabled"));
            component.permission = params.optionalText("permission");
            component.authority = params.optionalText("authority");
            component.meta = params.has("meta") ? new Bundles(bags).decode(params.map("meta")) : null;
            components.add(component);
        }
        return components;
    }

    @Override
    public int user() {
        return 0;
    }

    @Override
    public void close() {
    }

    private long number(String name, long otherwise) {
        return value(name) instanceof Long ? (Long) value(name) : otherwise;
    }

    private Object value(String name) {
        return scene.value(name);
    }
}
