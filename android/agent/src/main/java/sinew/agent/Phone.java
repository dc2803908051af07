package sinew.agent;

import java.util.List;

/** What the agent needs from Android. The real one is in the device sources; a fake runs on any JVM. */
interface Phone extends Bags {
    int api();

    String release();

    /** The methods that this phone supports, as far as is known without trying. */
    List<String> capabilities();

    /** The roots of all windows, front-most first, read without waiting for an idle screen. */
    List<Element> roots() throws Exception;

    /** Quarter turns, 0 to 3. */
    int rotation() throws Exception;

    /** A JPEG file of the screen, its longest side scaled down to at most so many pixels. */
    byte[] picture(int maxSide, int quality) throws Exception;

    /** The node with input focus, or null. */
    Element focused() throws Exception;

    /** Whether the display is on, so that touches and keys have an effect. */
    boolean awake() throws Exception;

    /** Plays the events at their times and returns after the last. If interrupted, it lifts all fingers. */
    void play(List<Gestures.Event> events) throws Exception;

    void key(int code, int meta) throws Exception;

    /** Null if the clipboard has no text. */
    String clipboard() throws Exception;

    void setClipboard(String text) throws Exception;

    /** Calls a content provider and waits for its answer, which may be null. */
    Bag call(String authority, String method, String arg, Bag extras, int user) throws Exception;

    /** The components of a package, each with its meta-data. */
    List<Component> components(String name, int user) throws Exception;

    /** The current user, 0 on most phones. */
    int user();

    void close();

    /** An activity, service, receiver or provider as a manifest declares it. */
    final class Component {
        String kind;
        String name;
        boolean exported;
        boolean enabled;
        /** Null if it requires none. */
        String permission;
        /** Only of a provider, several separated by semicolons; otherwise null. */
        String authority;
        /** Null if it has none. */
        Bag meta;
    }
}
