package sinew.agent;

import java.util.Collection;

/** A bundle: Android's own on a phone, a plain map on a JVM. */
interface Bag {
    Collection<String> keys();

    Object get(String key);

    /** Accepts every value that {@link Bundles} decodes; nested bundles in their raw form. */
    void put(String key, Object value);

    /** The platform's own object. */
    Object raw();
}
