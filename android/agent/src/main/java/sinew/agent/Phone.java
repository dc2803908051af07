package sinew.agent;

import java.util.List;

/** What the agent needs of Android. The real one is in the device sources; a fake runs on any JVM. */
interface Phone extends Bags {
    int api();

    String release();

    /** The methods that this phone can serve, as far as can be told without trying. */
    List<String> capabilities();

    /** The roots of all windows, front-most first; read at once, without waiting for a quiet screen. */
    List<Element> roots() throws Exception;

    /** Quarter turns, 0 to 3. */
    int rotation() throws Exception;

    /** The node with input focus; null where there is none. */
    Element focused() throws Exception;

    /** Whether the display is on, so that touches and keys reach something. */
    boolean awake() throws Exception;

    /** Plays the events at their times and returns after the last. Interrupted, it lifts all fingers. */
    void play(List<Gestures.Event> events) throws Exception;

    void key(int code, int meta) throws Exception;

    /** Null where the clipboard holds no text. */
    String clipboard() throws Exception;

    void setClipboard(String text) throws Exception;

    /** Calls a content provider and waits for it; null where it answers null. */
    Bag call(String authority, String method, String arg, Bag extras, int user) throws Exception;

    /** The components of a package, each with its meta-data. */
    List<Component> components(String name, int user) throws Exception;

    /** The user in front, 0 on most phones. */
    int user();

    void close();

    /** An activity, service, receiver or provider as a manifest declares it. */
    final class Component {
        String kind;
        String name;
        boolean exported;
        boolean enabled;
        /** Null where it asks for none. */
        String permission;
        /** A provider's, several separated by semicolons; null otherwise. */
        String authority;
        /** Null where it has none. */
        Bag meta;
    }
}
