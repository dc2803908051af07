package sinew.agent;

import java.util.ArrayList;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** The methods: each reads its parameters, calls the phone and returns its answer as JSON. */
final class Methods {
    static final String PING = "ping";
    static final String PROVIDER_CALL = "provider_call";
    static final String PICTURE = "picture";

    private static final int MAX_CODE = 1000;
    /** Larger than any screen. */
    private static final int MAX_SIDE = 16_384;
    private static final int MAX_USER = 100_000;

    // Android's codes of the keys that switch the display.
    private static final int KEYCODE_POWER = 26;
    private static final int KEYCODE_SLEEP = 223;
    private static final int KEYCODE_WAKEUP = 224;

    private final Phone phone;
    private final Bundles bundles;
    private final Trees trees = new Trees();

    Methods(Phone phone) {
        this.phone = phone;
        this.bundles = new Bundles(phone);
    }

    Object call(String method, Params params) throws Exception {
        switch (method) {
            case PING:
                return new LinkedHashMap<String, Object>();
            case "tree":
                return tree(params);
            case "touch":
                requireAwake();
                phone.play(Gestures.plan(params.list("strokes")));
                return new LinkedHashMap<String, Object>();
            case "key":
                int code = (int) params.number("code", 1, MAX_CODE);
                if (code != KEYCODE_POWER && code != KEYCODE_SLEEP && code != KEYCODE_WAKEUP) {
                    requireAwake();
                }
                phone.key(code, (int) params.number("meta", 0, Integer.MAX_VALUE, 0));
                return new LinkedHashMap<String, Object>();
            case "set_text":
                return setText(params);
            case "select":
                return select(params);
            case PICTURE:
                byte[] jpeg = phone.picture((int) params.number("max_side", 16, MAX_SIDE),
                        (int) params.number("quality", 1, 100, 80));
                return member("jpeg", Base64.getEncoder().encodeToString(jpeg));
            case "clipboard_get":
                return member("text", phone.clipboard());
            case "clipboard_set":
                phone.setClipboard(params.text("text"));
                return new LinkedHashMap<String, Object>();
            case PROVIDER_CALL:
                return providerCall(params);
            case "package_meta":
                return packageMeta(params);
            default:
                throw new Fault(Fault.UNKNOWN_METHOD, "there is no method '" + method + "'; the hello names those there are");
        }
    }

    /** Android silently ignores input while the display is off. */
    private void requireAwake() throws Exception {
        if (!phone.awake()) {
            throw new Fault(Fault.ASLEEP, "the display is off");
        }
    }

    private Object tree(Params params) throws Exception {
        long deadline = System.nanoTime() + params.number("budget_ms", 1, 60_000, 5000) * 1_000_000;
        List<Element> roots = phone.roots();
        return trees.walk(roots, phone.rotation(), deadline);
    }

    private Object setText(Params params) throws Exception {
        requireAwake();
        String text = params.text("text");
        if (!field(params).setText(text)) {
            throw new Fault(Fault.FAILED, "the field did not take the text; it may not be editable");
        }
        return new LinkedHashMap<String, Object>();
    }

    private Object select(Params params) throws Exception {
        requireAwake();
        int start = (int) params.number("start", 0, Integer.MAX_VALUE);
        int end = (int) params.number("end", start, Integer.MAX_VALUE);
        if (!field(params).select(start, end)) {
            throw new Fault(Fault.FAILED, "the field did not take the selection; its text may be shorter");
        }
        return new LinkedHashMap<String, Object>();
    }

    /** The field with the handle, which gets the focus, or the one that has it. */
    private Element field(Params params) throws Exception {
        if (!params.has("handle")) {
            Element focused = phone.focused();
            if (focused == null) {
                throw new Fault(Fault.NO_ELEMENT, "no field has the focus; tap one first, or give its handle");
            }
            return focused;
        }
        Element node = trees.find(params.number("handle", 0, Long.MAX_VALUE));
        if (!node.refresh()) {
            throw new Fault(Fault.NO_ELEMENT, "the field is not on the screen any more; read the tree again");
        }
        if ((node.flags() & Element.FOCUSED) == 0) {
            // Some fields accept text without focus, so a failure here is ignored.
            node.focus();
        }
        return node;
    }

    private Object providerCall(Params params) throws Exception {
        Bag extras = params.has("extras") ? bundles.decode(params.map("extras")) : null;
        Bag answer = phone.call(params.text("authority"), params.text("method"), params.optionalText("arg"), extras,
                user(params));
        return member("bundle", answer == null ? null : bundles.encode(answer));
    }

    private Object packageMeta(Params params) throws Exception {
        List<Object> components = new ArrayList<Object>();
        for (Phone.Component component : phone.components(params.text("package"), user(params))) {
            Map<String, Object> json = new LinkedHashMap<String, Object>();
            json.put("kind", component.kind);
            json.put("name", component.name);
            json.put("exported", component.exported);
            json.put("enabled", component.enabled);
            json.put("permission", component.permission);
            if (component.kind.equals("provider")) {
                json.put("authority", component.authority);
            }
            json.put("meta", component.meta == null ? new LinkedHashMap<String, Object>() : bundles.encode(component.meta));
            components.add(json);
        }
        return member("components", components);
    }

    private int user(Params params) throws Fault {
        return params.has("user") ? (int) params.number("user", 0, MAX_USER) : phone.user();
    }

    private static Map<String, Object> member(String name, Object value) {
        Map<String, Object> map = new LinkedHashMap<String, Object>();
        map.put(name, value);
        return map;
    }
}
