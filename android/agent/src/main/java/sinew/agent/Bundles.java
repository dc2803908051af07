package sinew.agent;

import java.lang.reflect.Array;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * Bundles as JSON and back, without loss.
 *
 * A string, a boolean, null and an int are plain JSON values. Every other type is an object with one
 * member, whose name is the type: {"long": 5}, {"strings": ["a", null]}, {"map": {"k": "v"}}.
 * A value without a JSON form (an app's own Parcelable) becomes "opaque" with its class and is not
 * accepted back.
 */
final class Bundles {
    /** 16 nested bundles; with their tags that is within the limit of {@link Json}. */
    static final int MAX_DEPTH = 16;

    private static final int MAX_OPAQUE_TEXT = 1000;

    /** The tags of primitive arrays and the types of their items. */
    private static final Map<String, Class<?>> ARRAYS = new LinkedHashMap<String, Class<?>>();

    static {
        ARRAYS.put("booleans", boolean.class);
        ARRAYS.put("ints", int.class);
        ARRAYS.put("longs", long.class);
        ARRAYS.put("shorts", short.class);
        ARRAYS.put("floats", float.class);
        ARRAYS.put("doubles", double.class);
    }

    private final Bags bags;

    Bundles(Bags bags) {
        this.bags = bags;
    }

    /** Keys are sorted, so that equal bundles give equal text. */
    Map<String, Object> encode(Bag bag) throws Fault {
        return encode(bag, 0);
    }

    Bag decode(Map<?, ?> json) throws Fault {
        return decode(json, 0);
    }

    private Map<String, Object> encode(Bag bag, int depth) throws Fault {
        bound(depth);
        List<String> keys = new ArrayList<String>(bag.keys());
        if (keys.contains(null)) {
            throw new Fault(Fault.FAILED, "the bundle has a null key, which JSON cannot carry");
        }
        Collections.sort(keys);
        Map<String, Object> json = new LinkedHashMap<String, Object>();
        for (String key : keys) {
            Object value;
            try {
                value = bag.get(key);
            } catch (RuntimeException e) {
                // Since Android 13 values are unpacked on access; the others stay readable.
                json.put(key, opaque("unreadable", String.valueOf(e.getMessage())));
                continue;
            }
            json.put(key, encodeValue(value, depth + 1));
        }
        return json;
    }

    private Object encodeValue(Object value, int depth) throws Fault {
        bound(depth);
        if (value == null || value instanceof String || value instanceof Boolean) {
            return value;
        }
        if (value instanceof Integer) {
            return ((Integer) value).longValue();
        }
        if (value instanceof Long) {
            return tag("long", value);
        }
        if (value instanceof Short || value instanceof Byte) {
            return tag(value instanceof Short ? "short" : "byte", ((Number) value).longValue());
        }
        if (value instanceof Float || value instanceof Double) {
            return tag(value instanceof Float ? "float" : "double", real(((Number) value).doubleValue()));
        }
        if (value instanceof Character) {
            return tag("char", (long) (Character) value);
        }
        if (value instanceof CharSequence) {
            return tag("charsequence", value.toString());
        }
        if (value instanceof byte[]) {
            return tag("bytes", Base64.getEncoder().encodeToString((byte[]) value));
        }
        if (value instanceof char[]) {
            List<Object> codes = new ArrayList<Object>();
            for (char c : (char[]) value) {
                codes.add((long) c);
            }
            return tag("chars", codes);
        }
        for (Map.Entry<String, Class<?>> array : ARRAYS.entrySet()) {
            if (value.getClass().getComponentType() == array.getValue()) {
                return tag(array.getKey(), encodeArray(value));
            }
        }
        if (value instanceof CharSequence[]) {
            List<Object> texts = new ArrayList<Object>();
            for (CharSequence text : (CharSequence[]) value) {
                texts.add(text == null ? null : text.toString());
            }
            return tag(value instanceof String[] ? "strings" : "charsequences", texts);
        }
        if (value instanceof List) {
            List<Object> items = new ArrayList<Object>();
            for (Object item : (List<?>) value) {
                items.add(encodeValue(item, depth + 1));
            }
            return tag("list", items);
        }
        if (value instanceof Map && onlyTextKeys((Map<?, ?>) value)) {
            Map<String, Object> members = new LinkedHashMap<String, Object>();
            for (Map.Entry<?, ?> entry : new TreeMap<Object, Object>((Map<?, ?>) value).entrySet()) {
                members.put((String) entry.getKey(), encodeValue(entry.getValue(), depth + 1));
            }
            return tag("map", members);
        }
        Bag bag = bags.wrap(value);
        if (bag != null) {
            return tag("bundle", encode(bag, depth));
        }
        List<Bag> many = bags.items(value);
        if (many != null) {
            List<Object> items = new ArrayList<Object>();
            for (Bag one : many) {
                items.add(one == null ? null : encode(one, depth + 1));
            }
            return tag("bundles", items);
        }
        String text;
        try {
            text = String.valueOf(value);
        } catch (RuntimeException e) {
            text = "";
        }
        return opaque(value.getClass().getName(), text);
    }

    private static List<Object> encodeArray(Object array) {
        List<Object> items = new ArrayList<Object>();
        for (int i = 0; i < Array.getLength(array); i++) {
            Object item = Array.get(array, i);
            if (item instanceof Float || item instanceof Double) {
                items.add(real(((Number) item).doubleValue()));
            } else {
                items.add(item instanceof Number ? (Object) ((Number) item).longValue() : item);
            }
        }
        return items;
    }

    /** Numbers that JSON lacks are strings. A float is written as the double it equals. */
    private static Object real(double number) {
        return Json.finite(number) ? (Object) number : Double.toString(number);
    }

    private static boolean onlyTextKeys(Map<?, ?> map) {
        for (Object key : map.keySet()) {
            if (!(key instanceof String)) {
                return false;
            }
        }
        return true;
    }

    private static Map<String, Object> tag(String tag, Object value) {
        return Collections.singletonMap(tag, value);
    }

    private static Map<String, Object> opaque(String type, String text) {
        Map<String, Object> about = new LinkedHashMap<String, Object>();
        about.put("class", type);
        about.put("text", text.length() > MAX_OPAQUE_TEXT ? text.substring(0, MAX_OPAQUE_TEXT) : text);
        return tag("opaque", about);
    }

    private Bag decode(Map<?, ?> json, int depth) throws Fault {
        bound(depth);
        Bag bag = bags.create();
        for (Map.Entry<?, ?> entry : json.entrySet()) {
            bag.put((String) entry.getKey(), decodeValue((String) entry.getKey(), entry.getValue(), depth + 1));
        }
        return bag;
    }

    private Object decodeValue(String key, Object json, int depth) throws Fault {
        bound(depth);
        if (json == null || json instanceof String || json instanceof Boolean) {
            return json;
        }
        if (json instanceof Long) {
            return (int) whole(key, json, Integer.MIN_VALUE, Integer.MAX_VALUE);
        }
        if (!(json instanceof Map) || ((Map<?, ?>) json).size() != 1) {
            throw Fault.invalid("'" + key + "' must say its type, for example {\"double\": 1.5} or {\"strings\": []}");
        }
        Map.Entry<?, ?> only = ((Map<?, ?>) json).entrySet().iterator().next();
        String tag = (String) only.getKey();
        Object value = only.getValue();
        Class<?> item = ARRAYS.get(tag);
        if (item != null) {
            List<?> items = list(key, value);
            Object array = Array.newInstance(item, items.size());
            for (int i = 0; i < items.size(); i++) {
                Array.set(array, i, primitive(key, item, items.get(i)));
            }
            return array;
        }
        switch (tag) {
            case "long":
                return primitive(key, long.class, value);
            case "short":
                return primitive(key, short.class, value);
            case "byte":
                return (byte) whole(key, value, Byte.MIN_VALUE, Byte.MAX_VALUE);
            case "char":
                return (char) whole(key, value, Character.MIN_VALUE, Character.MAX_VALUE);
            case "float":
                return primitive(key, float.class, value);
            case "double":
                return primitive(key, double.class, value);
            case "charsequence":
                return new StringBuilder(text(key, value));
            case "bytes":
                try {
                    return Base64.getDecoder().decode(text(key, value));
                } catch (IllegalArgumentException e) {
                    throw Fault.invalid("'" + key + "' must hold base64 in its bytes");
                }
            case "chars":
                List<?> codes = list(key, value);
                char[] chars = new char[codes.size()];
                for (int i = 0; i < chars.length; i++) {
                    chars[i] = (char) whole(key, codes.get(i), Character.MIN_VALUE, Character.MAX_VALUE);
                }
                return chars;
            case "strings":
                return texts(key, value).toArray(new String[0]);
            case "charsequences":
                return texts(key, value).toArray(new CharSequence[0]);
            case "list":
                List<Object> items = new ArrayList<Object>();
                for (Object one : list(key, value)) {
                    items.add(decodeValue(key, one, depth + 1));
                }
                return items;
            case "map":
                // java.util.HashMap and no other class: the provider's class loader must know it.
                HashMap<String, Object> members = new HashMap<String, Object>();
                for (Map.Entry<?, ?> entry : map(key, value).entrySet()) {
                    String name = (String) entry.getKey();
                    members.put(name, decodeValue(key + "." + name, entry.getValue(), depth + 1));
                }
                return members;
            case "bundle":
                return decode(map(key, value), depth).raw();
            case "bundles":
                List<Bag> many = new ArrayList<Bag>();
                for (Object one : list(key, value)) {
                    many.add(one == null ? null : decode(map(key, one), depth + 1));
                }
                return bags.array(many);
            default:
                throw Fault.invalid("'" + key + "' has the type '" + tag + "', which a bundle cannot be given");
        }
    }

    private static Object primitive(String key, Class<?> type, Object value) throws Fault {
        if (type == boolean.class) {
            if (!(value instanceof Boolean)) {
                throw Fault.invalid("'" + key + "' must hold true or false");
            }
            return value;
        }
        if (type == int.class) {
            return (int) whole(key, value, Integer.MIN_VALUE, Integer.MAX_VALUE);
        }
        if (type == long.class) {
            return whole(key, value, Long.MIN_VALUE, Long.MAX_VALUE);
        }
        if (type == short.class) {
            return (short) whole(key, value, Short.MIN_VALUE, Short.MAX_VALUE);
        }
        double number;
        if ("NaN".equals(value) || "Infinity".equals(value) || "-Infinity".equals(value)) {
            number = Double.parseDouble((String) value);
        } else if (value instanceof Number) {
            number = ((Number) value).doubleValue();
        } else {
            throw Fault.invalid("'" + key + "' must hold a number");
        }
        if (type == double.class) {
            return number;
        }
        if (Json.finite(number) && !Json.finite((float) number)) {
            throw Fault.invalid("'" + key + "' holds a number too large for a float");
        }
        return (float) number;
    }

    private static long whole(String key, Object value, long least, long most) throws Fault {
        if (!(value instanceof Long) || (Long) value < least || (Long) value > most) {
            throw Fault.invalid("'" + key + "' must hold a whole number from " + least + " to " + most);
        }
        return (Long) value;
    }

    private static String text(String key, Object value) throws Fault {
        if (!(value instanceof String)) {
            throw Fault.invalid("'" + key + "' must hold a string");
        }
        return (String) value;
    }

    private static List<String> texts(String key, Object value) throws Fault {
        List<String> texts = new ArrayList<String>();
        for (Object item : list(key, value)) {
            texts.add(item == null ? null : text(key, item));
        }
        return texts;
    }

    private static List<?> list(String key, Object value) throws Fault {
        if (!(value instanceof List)) {
            throw Fault.invalid("'" + key + "' must hold an array");
        }
        return (List<?>) value;
    }

    private static Map<?, ?> map(String key, Object value) throws Fault {
        if (!(value instanceof Map)) {
            throw Fault.invalid("'" + key + "' must hold an object");
        }
        return (Map<?, ?>) value;
    }

    private static void bound(int depth) throws Fault {
        if (depth > MAX_DEPTH) {
            throw new Fault(Fault.TOO_LARGE, "a bundle may nest " + MAX_DEPTH + " deep; this one nests deeper");
        }
    }
}
