package sinew.agent;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;
import static org.junit.Assert.fail;

import org.junit.Test;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;

public class JsonTest {
    @Test
    public void everyValueComesBackAsItWas() throws Fault {
        Random random = new Random(1);
        for (int i = 0; i < 5000; i++) {
            Object value = value(random, 4);
            assertEquals(value, Json.parse(Json.write(value)));
        }
    }

    @Test
    public void numbersKeepTheirKind() throws Fault {
        assertEquals(5L, Json.parse("5"));
        assertEquals(5.0, Json.parse("5.0"));
        assertEquals(Long.MIN_VALUE, Json.parse("-9223372036854775808"));
        assertEquals(1e300, Json.parse(" 1E300 "));
        assertEquals(-0.0, Json.parse("-0"));
    }

    @Test
    public void whatIsNotJsonIsRefused() {
        String[] bad = {"", " ", "{", "}", "[1,]", "{\"a\":1,}", "{a:1}", "{\"a\" 1}", "01", "1.", ".5", "1e", "+1", "--1", "-",
            "NaN", "Infinity", "1e999", "9223372036854775808", "tru", "nul", "truefalse", "'a'", "\"", "\"\\x\"", "\"\\u12g4\"",
            "\"\\u12", "\"\n\"", "\"\0\"", "[1] 2", "{\"a\":1,\"a\":2}", "\u0000", "[\u00a01]", "1\u0661"};
        for (String text : bad) {
            try {
                fail(text + " was read as " + Json.parse(text));
            } catch (Fault fault) {
                assertEquals(text, Fault.BAD_REQUEST, fault.type);
            }
        }
    }

    @Test
    public void depthIsBoundedBeforeTheStackIs() {
        StringBuilder deep = new StringBuilder();
        for (int i = 0; i < 1_000_000; i++) {
            deep.append('[');
        }
        try {
            Json.parse(deep.toString());
            fail();
        } catch (Fault fault) {
            assertTrue(fault.getMessage().contains("nests deeper"));
        }
    }

    @Test
    public void garbageIsRefusedAndNeverMore() {
        Random random = new Random(2);
        String letters = "{}[]\",:0123456789.eE+-\\utrfalsn \u00fc\ud83d";
        for (int i = 0; i < 50_000; i++) {
            StringBuilder text = new StringBuilder();
            for (int n = random.nextInt(12); n >= 0; n--) {
                text.append(letters.charAt(random.nextInt(letters.length())));
            }
            try {
                Json.write(Json.parse(text.toString()));
            } catch (Fault expected) {
                assertEquals(Fault.BAD_REQUEST, expected.type);
            }
        }
    }

    @Test
    public void aLoneSurrogateIsReplacedAndAPairKept() {
        assertEquals("\"a\ufffdb\"", Json.write("a\ud83db"));
        assertEquals("\"\ufffd\"", Json.write("\ude00"));
        assertEquals("\"\ud83d\ude00\"", Json.write("\ud83d\ude00"));
    }

    @Test
    public void aLineNeverHoldsALineEnd() {
        assertEquals("\"\\u000a\\u000d\\u0000\"", Json.write("\n\r\0"));
    }

    static String text(Random random) {
        StringBuilder out = new StringBuilder();
        for (int n = random.nextInt(8); n > 0; n--) {
            int kind = random.nextInt(4);
            out.appendCodePoint(kind == 0 ? random.nextInt(0x20) : kind == 1 ? 0x20 + random.nextInt(0x60)
                    : kind == 2 ? 0x1f600 + random.nextInt(50) : "\"\\/\u2028\ufffe".charAt(random.nextInt(5)));
        }
        return out.toString();
    }

    private static Object value(Random random, int depth) {
        switch (random.nextInt(depth > 0 ? 7 : 5)) {
            case 0:
                return null;
            case 1:
                return random.nextBoolean();
            case 2:
                return random.nextLong() >> random.nextInt(64);
            case 3:
                double real = Double.longBitsToDouble(random.nextLong());
                return Json.finite(real) ? real : 0.5;
            case 4:
                return text(random);
            case 5:
                List<Object> list = new ArrayList<Object>();
                for (int n = random.nextInt(4); n > 0; n--) {
                    list.add(value(random, depth - 1));
                }
                return list;
            default:
                Map<String, Object> map = new LinkedHashMap<String, Object>();
                for (int n = random.nextInt(4); n > 0; n--) {
                    map.put(text(random), value(random, depth - 1));
                }
                return map;
        }
    }
}
