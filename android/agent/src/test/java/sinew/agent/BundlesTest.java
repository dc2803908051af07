package sinew.agent;

import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;
import static org.junit.Assert.fail;

import org.junit.Test;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;

public class BundlesTest {
    private final FakeBags bags = new FakeBags();
    private final Bundles bundles = new Bundles(bags);

    @Test
    public void everyBundleComesBackAsItWas() throws Fault {
        Random random = new Random(3);
        for (int i = 0; i < 5000; i++) {
            Bag bag = bag(random, 4);
            String text = Json.write(bundles.encode(bag));
            Bag back = bundles.decode((Map<?, ?>) Json.parse(text));
            assertSame(bag.raw(), back.raw(), text);
            assertEquals(text, Json.write(bundles.encode(back)));
        }
    }

    @Test
    public void onlyWhatIsAmbiguousSaysItsType() throws Fault {
        Bag bag = bags.create();
        bag.put("text", "a");
        bag.put("yes", true);
        bag.put("none", null);
        bag.put("int", 5);
        bag.put("long", 5L);
        bag.put("double", 5.0);
        bag.put("float", 0.1f);
        bag.put("strings", new String[] {"a", null});
        bag.put("map", new HashMap<String, String>(Collections.singletonMap("k", "v")));
        bag.put("bytes", new byte[] {0, -1});
        assertEquals("{\"bytes\":{\"bytes\":\"AP8=\"},\"double\":{\"double\":5.0},\"float\":{\"float\":0.10000000149011612},"
                + "\"int\":5,\"long\":{\"long\":5},\"map\":{\"map\":{\"k\":\"v\"}},\"none\":null,"
                + "\"strings\":{\"strings\":[\"a\",null]},\"text\":\"a\",\"yes\":true}", Json.write(bundles.encode(bag)));
    }

    @Test
    public void aCallOfAProviderToolCarriesAHashMapOfStrings() throws Fault {
        Bag bag = decode("{\"tool_name\":\"get_weather_forecast\",\"tool_arguments\":{\"map\":{\"location\":\"Z\u00fcrich\",\"days\":\"3\"}}}");
        assertEquals("get_weather_forecast", bag.get("tool_name"));
        Map<String, String> expected = new HashMap<String, String>();
        expected.put("location", "Z\u00fcrich");
        expected.put("days", "3");
        assertEquals(HashMap.class, bag.get("tool_arguments").getClass());
        assertEquals(expected, bag.get("tool_arguments"));
    }

    @Test
    public void aToolsDescriptionComesOutWithItsRequiredNames() throws Fault {
        Bag bag = decode("{\"success\":true,\"tool_input_required\":{\"strings\":[\"location\"]}}");
        assertEquals(true, bag.get("success"));
        assertArrayEquals(new String[] {"location"}, (String[]) bag.get("tool_input_required"));
    }

    @Test
    public void whatHasNoFormIsNamedAndTheRestStays() throws Fault {
        Bag bag = bags.create();
        bag.put("mine", new StringBuffer("x").append(1).getClass());
        bag.put("odd", Collections.singletonMap(5, "v"));
        bag.put("text", "a");
        bag.put("rude", new Object() {
            @Override
            public String toString() {
                throw new IllegalStateException();
            }
        });
        Map<String, Object> json = bundles.encode(bag);
        assertEquals("a", json.get("text"));
        assertTrue(Json.write(json.get("mine")).startsWith("{\"opaque\":{\"class\":\"java.lang.Class\""));
        assertTrue(Json.write(json.get("odd")).startsWith("{\"opaque\":"));
        assertTrue(Json.write(json.get("rude")).startsWith("{\"opaque\":"));
    }

    @Test
    public void aValueThatCannotBeUnpackedDoesNotHideTheOthers() throws Fault {
        final Bag bag = bags.create();
        bag.put("good", "a");
        bag.put("bad", "b");
        Bag rude = new Bag() {
            @Override
            public java.util.Collection<String> keys() {
                return bag.keys();
            }

            @Override
            public Object get(String key) {
                if (key.equals("bad")) {
                    throw new IllegalStateException("ClassNotFoundException: com.example.Own");
                }
                return bag.get(key);
            }

            @Override
            public void put(String key, Object value) {
            }

            @Override
            public Object raw() {
                return this;
            }
        };
        assertEquals("{\"bad\":{\"opaque\":{\"class\":\"unreadable\",\"text\":\"ClassNotFoundException: com.example.Own\"}},"
                + "\"good\":\"a\"}", Json.write(bundles.encode(rude)));
    }

    @Test
    public void whatDoesNotFitItsTypeIsRefused() {
        String[] bad = {"1.5", "[1]", "{}", "{\"long\":1,\"int\":2}", "2147483648", "{\"long\":\"1\"}", "{\"long\":1.5}", "{\"byte\":128}",
            "{\"char\":65536}", "{\"char\":-1}", "{\"short\":40000}", "{\"float\":1e300}", "{\"float\":\"inf\"}", "{\"double\":true}",
            "{\"bytes\":\"%%\"}", "{\"bytes\":[1]}", "{\"strings\":[1]}", "{\"strings\":\"a\"}", "{\"booleans\":[1]}", "{\"ints\":[null]}",
            "{\"map\":[]}", "{\"map\":{\"a\":1.5}}", "{\"bundle\":[]}", "{\"bundles\":[1]}", "{\"list\":{}}", "{\"charsequence\":1}",
            "{\"opaque\":{\"class\":\"a\",\"text\":\"b\"}}", "{\"parcelable\":1}"};
        for (String value : bad) {
            try {
                decode("{\"key\":" + value + "}");
                fail(value);
            } catch (Fault fault) {
                assertEquals(value, Fault.INVALID, fault.type);
                assertTrue(fault.getMessage(), fault.getMessage().startsWith("'key"));
            }
        }
    }

    @Test
    public void depthIsBoundedBothWays() {
        Bag bag = bags.create();
        bag.put("own", bag.raw());
        try {
            bundles.encode(bag);
            fail();
        } catch (Fault fault) {
            assertEquals(Fault.TOO_LARGE, fault.type);
        }
        String json = "{}";
        for (int i = 0; i < 20; i++) {
            json = "{\"k\":{\"bundle\":" + json + "}}";
        }
        try {
            decode(json);
            fail();
        } catch (Fault fault) {
            assertEquals(Fault.TOO_LARGE, fault.type);
        }
    }

    private Bag decode(String json) throws Fault {
        return bundles.decode((Map<?, ?>) Json.parse(json));
    }

    private Bag bag(Random random, int depth) {
        Bag bag = bags.create();
        for (int n = random.nextInt(6); n > 0; n--) {
            bag.put(JsonTest.text(random), value(random, depth));
        }
        return bag;
    }

    private Object value(Random random, int depth) {
        int length = random.nextInt(4);
        switch (random.nextInt(depth > 0 ? 24 : 20)) {
            case 0:
                return null;
            case 1:
                return random.nextBoolean();
            case 2:
                return random.nextInt() >> random.nextInt(32);
            case 3:
                return random.nextLong() >> random.nextInt(64);
            case 4:
                return (short) random.nextInt();
            case 5:
                return (byte) random.nextInt();
            case 6:
                return (char) random.nextInt();
            case 7:
                return random.nextInt(5) == 0 ? Float.NEGATIVE_INFINITY : Float.intBitsToFloat(random.nextInt());
            case 8:
                return random.nextInt(5) == 0 ? Double.NaN : Double.longBitsToDouble(random.nextLong());
            case 9:
                return new StringBuilder(JsonTest.text(random));
            case 10:
                byte[] bytes = new byte[length];
                random.nextBytes(bytes);
                return bytes;
            case 11:
                char[] chars = new char[length];
                Arrays.fill(chars, (char) random.nextInt());
                return chars;
            case 12:
                boolean[] booleans = new boolean[length];
                Arrays.fill(booleans, random.nextBoolean());
                return booleans;
            case 13:
                int[] ints = new int[length];
                Arrays.fill(ints, random.nextInt());
                return ints;
            case 14:
                long[] longs = new long[length];
                Arrays.fill(longs, random.nextLong());
                return longs;
            case 15:
                short[] shorts = new short[length];
                Arrays.fill(shorts, (short) random.nextInt());
                return shorts;
            case 16:
                float[] floats = new float[length];
                Arrays.fill(floats, random.nextFloat());
                return floats;
            case 17:
                double[] doubles = new double[length];
                Arrays.fill(doubles, random.nextGaussian());
                return doubles;
            case 18:
                String[] strings = new String[length];
                for (int i = 0; i < length; i++) {
                    strings[i] = random.nextInt(4) == 0 ? null : JsonTest.text(random);
                }
                return strings;
            case 19:
                return JsonTest.text(random);
            case 20:
                List<Object> list = new ArrayList<Object>();
                for (int i = 0; i < length; i++) {
                    list.add(value(random, depth - 1));
                }
                return list;
            case 21:
                HashMap<String, Object> map = new HashMap<String, Object>();
                for (int i = 0; i < length; i++) {
                    map.put(JsonTest.text(random), value(random, depth - 1));
                }
                return map;
            case 22:
                return bag(random, depth - 1).raw();
            default:
                List<Bag> many = new ArrayList<Bag>();
                for (int i = 0; i < length; i++) {
                    many.add(random.nextInt(4) == 0 ? null : bag(random, depth - 1));
                }
                return bags.array(many);
        }
    }

    /** Equal in type as well, all the way down. */
    private static void assertSame(Object expected, Object actual, String at) {
        assertEquals(at, plain(expected), plain(actual));
    }

    private static Object plain(Object value) {
        if (value instanceof FakeBags.FakeBundle) {
            Map<String, Object> members = new LinkedHashMap<String, Object>();
            for (String key : new java.util.TreeSet<String>(((FakeBags.FakeBundle) value).keys())) {
                members.put(key, plain(((FakeBags.FakeBundle) value).get(key)));
            }
            return Arrays.<Object>asList("bundle", members);
        }
        if (value instanceof Map) {
            Map<String, Object> members = new HashMap<String, Object>();
            for (Map.Entry<?, ?> entry : ((Map<?, ?>) value).entrySet()) {
                members.put((String) entry.getKey(), plain(entry.getValue()));
            }
            return Arrays.<Object>asList("map", members);
        }
        if (value instanceof List || value instanceof Object[]) {
            List<Object> items = new ArrayList<Object>();
            for (Object item : value instanceof List ? (List<?>) value : Arrays.asList((Object[]) value)) {
                items.add(plain(item));
            }
            return Arrays.<Object>asList(value instanceof List ? "list" : value.getClass().getName(), items);
        }
        if (value != null && value.getClass().isArray()) {
            List<Object> items = new ArrayList<Object>();
            for (int i = 0; i < java.lang.reflect.Array.getLength(value); i++) {
                items.add(java.lang.reflect.Array.get(value, i));
            }
            return Arrays.<Object>asList(value.getClass().getName(), items);
        }
        return value instanceof StringBuilder ? Arrays.<Object>asList("charsequence", value.toString()) : value;
    }
}
