package sinew.companion;

import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Where an answer and the one who asks for it meet, whoever comes first. Each has a token that the
 * asker chose. Both sides are bounded; what is too much pushes out the oldest.
 */
final class Mailbox {
    /** 16: one call at a time is the rule; the rest are calls that their asker gave up. */
    static final int MAX_OPEN = 16;

    /** Takes one answer. Called outside the mailbox's lock. */
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

    /** A second reader of the same token takes the place of the first, which gets {@code replaced}. */
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
