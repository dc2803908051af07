package sinew.agent;

import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Bundles that are plain maps of plain values. */
class FakeBags implements Bags {
    /** The raw form of a fake bundle; its own class, to distinguish it from a map inside a bundle. */
    static final class FakeBundle implements Bag {
        final Map<String, Object> members = new LinkedHashMap<String, Object>();

        @Override
        public Collection<String> keys() {
            return members.keySet();
        }

        @Override
        public Object get(String key) {
            return members.get(key);
        }

        @Override
        public void put(String key, Object value) {
            members.put(key, value);
        }

        @Override
        public Object raw() {
            return this;
        }
    }

    @Override
    public Bag create() {
        return new FakeBundle();
    }

    @Override
    public Bag wrap(Object value) {
        return value instanceof FakeBundle ? (FakeBundle) value : null;
    }

    @Override
    public Object array(List<Bag> bags) {
        return bags.toArray(new FakeBundle[0]);
    }

    @Override
    public List<Bag> items(Object value) {
        if (!(value instanceof FakeBundle[])) {
            return null;
        }
        List<Bag> bags = new ArrayList<Bag>();
        for (FakeBundle bag : (FakeBundle[]) value) {
            bags.add(bag);
        }
        return bags;
    }
}
