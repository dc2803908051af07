package sinew.companion;

import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Matches answers and readers by a token that the reader chose, in whatever order they arrive.
 * Both sides are bounded; the oldest entry makes space.
 */
final class Mailbox {
    /** 16: usually one call runs at a time; the rest are calls that were given up. */
    static final int MAX_OPEN = 16;

    /** Receives one answer. Called outside the mailbox's lock. */
    interface Reader {
        void take(String answer);
    }

    private final Map<String, String> answers = new LinkedHashMap<String, String>();
    private final Map<String, Reader> readers = new LinkedHashMap<String, Reader>();

    void post(String token, String answer) {
        Reader reader;
        synchronized (this) {
            reader = readers.remove(token);
            if (reader == null) {
                makeRoom(answers);
                answers.put(token, answer);
            }
        }
        if (reader != null) {
            reader.take(answer);
        }
    }

    /** A second reader of the same token replaces the first, which gets {@code replaced}. */
    void read(String token, Reader reader, String replaced) {
        String answer;
        Reader former = null;
        synchronized (this) {
            answer = answers.remove(token);
            if (answer == null) {
                former = readers.remove(token);
                if (former == null) {
                    former = makeRoom(readers);
                }
                readers.put(token, reader);
            }
        }
        if (answer != null) {
            reader.take(answer);
        }
        if (former != null) {
            former.take(replaced);
        }
    }

    private static <T> T makeRoom(Map<String, T> map) {
        if (map.size() < MAX_OPEN) {
            return null;
        }
        Iterator<T> oldest = map.values().iterator();
        T removed = oldest.next();
        oldest.remove();
        return removed;
    }
}
