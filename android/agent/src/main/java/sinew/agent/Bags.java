package sinew.agent;

import java.util.List;

/** Makes bundles, and tells them from other values. */
interface Bags {
    Bag create();

    /** Null where the value is no bundle. */
    Bag wrap(Object value);

    /** The platform's array of bundles. */
    Object array(List<Bag> bags);

    /** The bundles of the platform's array of them; null where the value is none. */
    List<Bag> items(Object value);
}
