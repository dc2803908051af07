package sinew.agent;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** A node as a tree's answer describes it. Only an editable one accepts text, unless a phone behind it decides. */
final class FakeElement implements Element {
    final Params params;
    final List<Element> children = new ArrayList<Element>();
    final Map<Object, Object> members;
    /** Null if there is no phone behind the node. */
    private final RelayPhone phone;

    FakeElement(Map<?, ?> node) {
        this(node, null);
    }

    private FakeElement(Map<?, ?> node, RelayPhone phone) {
        members = new LinkedHashMap<Object, Object>(node);
        params = new Params(members);
        this.phone = phone;
    }

    /** The roots of a flat list of nodes with depths. */
    static List<Element> tree(List<?> nodes, RelayPhone phone) throws Fault {
        List<Element> roots = new ArrayList<Element>();
        List<FakeElement> open = new ArrayList<FakeElement>();
        for (Object item : nodes) {
            FakeElement element = new FakeElement((Map<?, ?>) item, phone);
            int depth = (int) element.params.number("depth", 0, open.size(), 0);
            open.subList(depth, open.size()).clear();
            if (depth == 0) {
                roots.add(element);
            } else {
                open.get(depth - 1).children.add(element);
            }
            open.add(element);
        }
        return roots;
    }

    @Override
    public CharSequence className() {
        return member("class");
    }

    @Override
    public CharSequence packageName() {
        return member("package");
    }

    @Override
    public CharSequence text() {
        return member("text");
    }

    @Override
    public CharSequence description() {
        return member("description");
    }

    @Override
    public CharSequence resourceId() {
        return member("id");
    }

    @Override
    public CharSequence hint() {
        return member("hint");
    }

    @Override
    public int[] bounds() {
        int[] bounds = new int[4];
        if (members.get("bounds") instanceof List) {
            List<?> edges = (List<?>) members.get("bounds");
            for (int i = 0; i < Math.min(4, edges.size()); i++) {
                bounds[i] = edges.get(i) instanceof Long ? ((Long) edges.get(i)).intValue() : 0;
            }
        }
        return bounds;
    }

    @Override
    public int flags() {
        Object flags = members.get("flags");
        return flags instanceof Long ? ((Long) flags).intValue() : ENABLED | VISIBLE;
    }

    @Override
    public int[] selection() {
        if (!(members.get("selection") instanceof List)) {
            return null;
        }
        List<?> ends = (List<?>) members.get("selection");
        return new int[] {((Long) ends.get(0)).intValue(), ((Long) ends.get(1)).intValue()};
    }

    @Override
    public double[] range() {
        if (!(members.get("range") instanceof List)) {
            return null;
        }
        double[] range = new double[3];
        for (int i = 0; i < range.length; i++) {
            range[i] = ((Number) ((List<?>) members.get("range")).get(i)).doubleValue();
        }
        return range;
    }

    @Override
    public int childCount() {
        return children.size();
    }

    @Override
    public Element child(int index) {
        return children.get(index);
    }

    @Override
    public boolean refresh() {
        if (phone != null) {
            return members.get("handle") == null || phone.field(members.get("handle"), null);
        }
        return !Boolean.TRUE.equals(members.get("gone"));
    }

    @Override
    public boolean focus() {
        if ((flags() & FOCUSABLE) == 0) {
            return false;
        }
        members.put("flags", (long) (flags() | FOCUSED));
        return true;
    }

    @Override
    public boolean setText(String text) {
        if ((flags() & EDITABLE) == 0) {
            return false;
        }
        if (phone != null) {
            return phone.field(members.get("handle"), text);
        }
        members.put("text", text);
        return true;
    }

    @Override
    public boolean select(int start, int end) {
        String text = member("text");
        if ((flags() & EDITABLE) == 0 || text == null || end > text.length()) {
            return false;
        }
        if (phone != null) {
            return phone.select(members.get("handle"), start, end);
        }
        members.put("selection", Arrays.<Object>asList((long) start, (long) end));
        return true;
    }

    private String member(String name) {
        Object value = members.get(name);
        return value instanceof String ? (String) value : null;
    }
}
