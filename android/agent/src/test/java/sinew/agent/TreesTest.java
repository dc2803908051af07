package sinew.agent;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertSame;
import static org.junit.Assert.assertTrue;
import static org.junit.Assert.fail;

import org.junit.Test;

import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;

public class TreesTest {
    private static final long NEVER = System.nanoTime() + Long.MAX_VALUE / 2;
    private final Trees trees = new Trees();

    @Test
    public void nodesComeInReadingOrderWithTheirDepth() throws Fault {
        FakeElement root = element("{\"class\":\"a\"}");
        FakeElement child = element("{\"class\":\"b\",\"text\":\"t\",\"bounds\":[1,-2,3,4],\"flags\":2064}");
        child.children.add(element("{\"class\":\"c\",\"text\":\"\"}"));
        root.children.add(child);
        root.children.add(element("{\"class\":\"d\"}"));
        Map<String, Object> tree = trees.walk(Arrays.<Element>asList(root, element("{\"class\":\"e\"}")), 1, NEVER);
        assertEquals("{\"rotation\":1,\"truncated\":false,\"nodes\":["
                + "{\"depth\":0,\"class\":\"a\",\"bounds\":[0,0,0,0],\"flags\":2064,\"handle\":65536},"
                + "{\"depth\":1,\"class\":\"b\",\"text\":\"t\",\"bounds\":[1,-2,3,4],\"flags\":2064,\"handle\":65537},"
                + "{\"depth\":2,\"class\":\"c\",\"bounds\":[0,0,0,0],\"flags\":2064,\"handle\":65538},"
                + "{\"depth\":1,\"class\":\"d\",\"bounds\":[0,0,0,0],\"flags\":2064,\"handle\":65539},"
                + "{\"depth\":0,\"class\":\"e\",\"bounds\":[0,0,0,0],\"flags\":2064,\"handle\":65540}]}", Json.write(tree));
    }

    @Test
    public void aSliderSaysItsRangeIfItIsOfNumbers() throws Fault {
        FakeElement root = element("{}");
        root.children.add(element("{\"range\":[0,255,64.5]}"));
        FakeElement endless = element("{}");
        endless.members.put("range", Arrays.<Object>asList(0L, Double.POSITIVE_INFINITY, 1L));
        root.children.add(endless);
        List<?> nodes = (List<?>) trees.walk(Collections.<Element>singletonList(root), 0, NEVER).get("nodes");
        assertEquals("[0.0,255.0,64.5]", Json.write(((Map<?, ?>) nodes.get(1)).get("range")));
        assertEquals(null, ((Map<?, ?>) nodes.get(0)).get("range"));
        assertEquals(null, ((Map<?, ?>) nodes.get(2)).get("range"));
    }

    @Test
    public void aNodeThatHoldsItselfEndsAtTheGreatestDepth() throws Fault {
        FakeElement root = element("{}");
        root.children.add(root);
        Map<String, Object> tree = trees.walk(Collections.<Element>singletonList(root), 0, NEVER);
        assertEquals(Trees.MAX_DEPTH + 1, ((List<?>) tree.get("nodes")).size());
        assertEquals(true, tree.get("truncated"));
    }

    @Test
    public void aTreeWithoutEndIsCut() throws Fault {
        FakeElement root = element("{}");
        root.children.add(root);
        root.children.add(root);
        Map<String, Object> tree = trees.walk(Collections.<Element>singletonList(root), 0, NEVER);
        assertEquals(Trees.MAX_NODES, ((List<?>) tree.get("nodes")).size());
        assertEquals(true, tree.get("truncated"));
    }

    @Test
    public void theLargestTreeFitsItsLine() throws Fault {
        char[] text = new char[1_000_000];
        Arrays.fill(text, '\u20ac');
        FakeElement root = element("{\"class\":\"android.widget.FrameLayout\",\"package\":\"com.example.application\"}");
        for (int i = 0; i < Trees.MAX_NODES; i++) {
            FakeElement child = element("{\"bounds\":[-1000,-1000,10000,10000],\"flags\":4095}");
            child.setText(new String(text, 0, i < 100 ? text.length : 30));
            root.children.add(child);
        }
        Map<String, Object> tree = trees.walk(Collections.<Element>singletonList(root), 0, NEVER);
        assertTrue(Json.write(tree).getBytes(java.nio.charset.StandardCharsets.UTF_8).length < Lines.MAX_RESPONSE);
    }

    @Test
    public void aWalkEndsWithItsTime() throws Fault {
        Map<String, Object> tree = trees.walk(Collections.<Element>singletonList(element("{}")), 0, System.nanoTime() - 1);
        assertEquals(true, tree.get("truncated"));
    }

    @Test
    public void aHandleIsGoodForThisTreeAndTheOneBefore() throws Fault {
        FakeElement first = element("{}");
        trees.walk(Collections.<Element>singletonList(first), 0, NEVER);
        trees.walk(Collections.<Element>singletonList(element("{}")), 0, NEVER);
        assertSame(first, trees.find(65536));
        trees.walk(Collections.<Element>emptyList(), 0, NEVER);
        for (long handle : new long[] {0, 65536, 65537, 3 * 65536, 4 * 65536, Long.MAX_VALUE}) {
            try {
                trees.find(handle);
                fail("" + handle);
            } catch (Fault fault) {
                assertEquals(Fault.NO_ELEMENT, fault.type);
            }
        }
    }

    private static FakeElement element(String json) throws Fault {
        return new FakeElement((Map<?, ?>) Json.parse(json));
    }
}
