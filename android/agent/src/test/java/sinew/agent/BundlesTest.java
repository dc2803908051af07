package sinew.agent;

import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;
import static org.junit.Assert.fail;

import org.junit.Test;

import java.util.Collections;
import java.util.HashMap;
import java.util.Map;
import java.util.Random;

public class BundlesTest {
    private final FakeBags bags = new FakeBags();
    private final Bundles bundles = new Bundles(bags);

    @Test
    public void everyBundleComesBackAsItWas() throws Fault {
        Random random = new Random(3);
        for (int i = 0; i < 5000; i++) {
            Bag bag = Samples.bag(bags, random, 4);
            String text = Json.write(bundles.encode(bag));
            Bag back = bundles.decode((Map<?, ?>) Json.parse(text));
            assertEquals(text, Samples.plain(bags, bag.raw()), Samples.plain(bags, back.raw()));
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
}
