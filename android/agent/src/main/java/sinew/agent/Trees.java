package sinew.agent;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Reads the screen into a flat list in reading order, and keeps the nodes of the last two
 * trees, so that their handles can be used.
 */
final class Trees {
    /** 50,000: the host's limit for a tree. */
    static final int MAX_NODES = 50_000;
    /** 256: deeper trees are loops made by an app. */
    static final int MAX_DEPTH = 256;
    /** 2 million characters of text: with the largest number of nodes, the answer still fits into a line. */
    private static final int MAX_TEXT = 2_000_000;
    /** A handle is the tree's number times this, plus the index of the node. */
    private static final long HANDLES = 1 << 16;

    private long generation;
    private List<Element> current = new ArrayList<Element>();
    private List<Element> previous = new ArrayList<Element>();

    /** A node still to be visited. */
    private static final class Visit {
        final Element element;
        final int depth;
        int next;

        Visit(Element element, int depth) {
            this.element = element;
            this.depth = depth;
        }
    }

    /** The nodes of these roots; {@code deadline} is a time of System.nanoTime. */
    Map<String, Object> walk(List<Element> roots, int rotation, long deadline) {
        previous = current;
        current = new ArrayList<Element>();
        generation++;
        List<Object> nodes = new ArrayList<Object>();
        boolean truncated = false;
        long text = 0;
        for (Element root : roots) {
            Deque<Visit> open = new ArrayDeque<Visit>();
            Visit visit = new Visit(root, 0);
            while (visit != null) {
                if (current.size() >= MAX_NODES || text >= MAX_TEXT || deadline - System.nanoTime() < 0) {
                    truncated = true;
                    break;
                }
                Map<String, Object> node = node(visit);
                text += length(node);
                nodes.add(node);
                open.push(visit);
                visit = null;
                while (visit == null && !open.isEmpty()) {
                    Visit parent = open.peek();
                    if (parent.next >= parent.element.childCount()) {
                        open.pop();
                    } else if (parent.depth + 1 > MAX_DEPTH) {
                        truncated = true;
                        open.pop();
                    } else {
                        Element child = parent.element.child(parent.next++);
                        visit = child == null ? null : new Visit(child, parent.depth + 1);
                    }
                }
            }
        }
        Map<String, Object> tree = new LinkedHashMap<String, Object>();
        tree.put("rotation", rotation);
        tree.put("truncated", truncated);
        tree.put("nodes", nodes);
        return tree;
    }

    Element find(long handle) throws Fault {
        long age = generation - handle / HANDLES;
        int index = (int) (handle % HANDLES);
        List<Element> tree = age == 0 ? current : previous;
        if (age < 0 || age > 1 || index >= tree.size()) {
            throw new Fault(Fault.NO_ELEMENT, "the node is of an older tree; read the tree again");
        }
        return tree.get(index);
    }

    private Map<String, Object> node(Visit visit) {
        Element element = visit.element;
        Map<String, Object> node = new LinkedHashMap<String, Object>();
        node.put("depth", visit.depth);
        put(node, "class", element.className());
        put(node, "package", element.packageName());
        put(node, "text", element.text());
        put(node, "description", element.description());
        put(node, "id", element.resourceId());
        put(node, "hint", element.hint());
        List<Object> bounds = new ArrayList<Object>();
        for (int edge : element.bounds()) {
            bounds.add(edge);
        }
        node.put("bounds", bounds);
        node.put("flags", element.flags());
        int[] selection = element.selection();
        if (selection != null) {
            node.put("selection", Arrays.<Object>asList(selection[0], selection[1]));
        }
        double[] range = element.range();
        if (range != null && Json.finite(range[0]) && Json.finite(range[1]) && Json.finite(range[2])) {
            node.put("range", Arrays.<Object>asList(range[0], range[1], range[2]));
        }
        node.put("handle", generation * HANDLES + current.size());
        current.add(element);
        return node;
    }

    /** Cuts the text of a node that alone would fill the tree. */
    private static void put(Map<String, Object> node, String name, CharSequence text) {
        if (text != null && text.length() > 0) {
            node.put(name, text.subSequence(0, Math.min(text.length(), MAX_TEXT / 40)).toString());
        }
    }

    private static long length(Map<String, Object> node) {
        long length = 0;
        for (Object member : node.values()) {
            length += member instanceof String ? ((String) member).length() : 0;
        }
        return length;
    }
}
