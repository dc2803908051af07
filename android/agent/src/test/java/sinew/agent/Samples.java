package sinew.agent;

import java.lang.reflect.Array;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;

/** Bundles of every type there is, by chance but the same each time. */
final class Samples {
    private Samples() {
    }

    static Bag bag(Bags bags, Random random, int depth) {
        Bag bag = bags.create();
        for (int n = random.nextInt(6); n > 0; n--) {
            bag.put(JsonTest.text(random), value(bags, random, depth));
        }
        return bag;
    }

    private static Object value(Bags bags, Random random, int depth) {
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
                    list.add(value(bags, random, depth - 1));
                }
                return list;
            case 21:
                HashMap<String, Object> map = new HashMap<String, Object>();
                for (int i = 0; i < length; i++) {
                    map.put(JsonTest.text(random), value(bags, random, depth - 1));
                }
                return map;
            case 22:
                return bag(bags, random, depth - 1).raw();
            default:
                List<Bag> many = new ArrayList<Bag>();
                for (int i = 0; i < length; i++) {
                    many.add(random.nextInt(4) == 0 ? null : bag(bags, random, depth - 1));
                }
                return bags.array(many);
        }
    }

    /** As lists and maps that are equal only where the types are too, all the way down. */
    static Object plain(Bags bags, Object value) {
        Bag bag = bags.wrap(value);
        if (bag != null) {
            Map<String, Object> members = new HashMap<String, Object>();
            for (String key : bag.keys()) {
                members.put(key, plain(bags, bag.get(key)));
            }
            return Arrays.<Object>asList("bundle", members);
        }
        List<Bag> many = bags.items(value);
        if (many != null) {
            List<Object> items = new ArrayList<Object>();
            for (Bag one : many) {
                items.add(one == null ? null : plain(bags, one.raw()));
            }
            return Arrays.<Object>asList("bundles", items);
        }
        if (value instanceof Map) {
            Map<String, Object> members = new HashMap<String, Object>();
            for (Map.Entry<?, ?> entry : ((Map<?, ?>) value).entrySet()) {
                members.put((String) entry.getKey(), plain(bags, entry.getValue()));
            }
            return Arrays.<Object>asList("map", members);
        }
        if (value instanceof List || value instanceof Object[]) {
            List<Object> items = new ArrayList<Object>();
            for (Object item : value instanceof List ? (List<?>) value : Arrays.asList((Object[]) value)) {
                items.add(plain(bags, item));
            }
            return Arrays.<Object>asList(value instanceof List ? "list" : value.getClass().getName(), items);
        }
        if (value != null && value.getClass().isArray()) {
            List<Object> items = new ArrayList<Object>();
            for (int i = 0; i < Array.getLength(value); i++) {
                items.add(Array.get(value, i));
            }
            return Arrays.<Object>asList(value.getClass().getName(), items);
        }
        return value instanceof StringBuilder ? Arrays.<Object>asList("charsequence", value.toString()) : value;
    }
}
