package sinew.companion;

import static org.junit.Assert.assertEquals;

import org.junit.Test;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

public class MailboxTest {
    private final Mailbox mailbox = new Mailbox();
    private final List<String> taken = new ArrayList<String>();

    @Test
    public void anAnswerFindsItsReaderWhoeverComesFirst() {
        mailbox.read("a", reader("1"), "replaced");
        mailbox.post("a", "x");
        mailbox.post("b", "y");
        mailbox.read("b", reader("2"), "replaced");
        assertEquals(Arrays.asList("1:x", "2:y"), taken);
    }

    @Test
    public void anAnswerIsTakenOnce() {
        mailbox.post("a", "x");
        mailbox.read("a", reader("1"), "replaced");
        mailbox.read("a", reader("2"), "replaced");
        assertEquals(Arrays.asList("1:x"), taken);
    }

    @Test
    public void aSecondReaderReplacesTheFirst() {
        mailbox.read("a", reader("1"), "replaced");
        mailbox.read("a", reader("2"), "replaced");
        mailbox.post("a", "x");
        assertEquals(Arrays.asList("1:replaced", "2:x"), taken);
    }

    @Test
    public void tooMuchPushesOutTheOldest() {
        for (int i = 0; i <= Mailbox.MAX_OPEN; i++) {
            mailbox.read("r" + i, reader("" + i), "replaced");
            mailbox.post("p" + i, "x" + i);
        }
        assertEquals(Arrays.asList("0:replaced"), taken);
        mailbox.read("p0", reader("gone"), "replaced");
        mailbox.read("p1", reader("kept"), "replaced");
        assertEquals(Arrays.asList("0:replaced", "1:replaced", "kept:x1"), taken);
    }

    private Mailbox.Reader reader(final String name) {
        return new Mailbox.Reader() {
            @Override
            public void take(String answer) {
                taken.add(name + ":" + answer);
            }
        };
    }
}
