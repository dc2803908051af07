package sinew.agent;

/** A node of the accessibility tree. Strings are null if the node has none. */
interface Element {
    int CHECKABLE = 1;
    int CHECKED = 1 << 1;
    int CLICKABLE = 1 << 2;
    int LONG_CLICKABLE = 1 << 3;
    int ENABLED = 1 << 4;
    int FOCUSABLE = 1 << 5;
    int FOCUSED = 1 << 6;
    int SCROLLABLE = 1 << 7;
    int EDITABLE = 1 << 8;
    int PASSWORD = 1 << 9;
    int SELECTED = 1 << 10;
    int VISIBLE = 1 << 11;

    CharSequence className();

    CharSequence packageName();

    CharSequence text();

    CharSequence description();

    CharSequence resourceId();

    CharSequence hint();

    /** Left, top, right, bottom in pixels of the current rotation. */
    int[] bounds();

    int flags();

    /** Where the selected part of its text begins and ends, in Java's characters; null if it says nothing of it. */
    int[] selection();

    /** The least and the greatest value of a slider and its own, as its app counts them; null for what is none. */
    double[] range();

    int childCount();

    /** Null if it was removed in the meantime. */
    Element child(int index);

    /** Reads it again; false if it is no longer on the screen. */
    boolean refresh();

    /** False if the node does not accept it. */
    boolean focus();

    /** False if the node does not accept it. */
    boolean setText(String text);

    /** False if the node does not accept it. */
    boolean select(int start, int end);
}
