package sinew.agent;

import java.util.List;

/** Creates bundles, and distinguishes them from other values. */
interface Bags {
    Bag create();

    /** Null if the value is not a bundle. */
    Bag wrap(Object value);

    /** The platform's array of bundles. */
    Object array(List<Bag> bags);

    /** The bundles of the platform's array of bundles; null if the value is not one. */
    List<Bag> items(Object value);
}
