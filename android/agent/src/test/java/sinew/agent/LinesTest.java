package sinew.agent;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.fail;

import org.junit.Test;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

public class LinesTest {
    @Test
    public void aLineIsTheSameHoweverItArrives() throws Exception {
        byte[] bytes = "\u00fc\ud83d\ude00\n\n{\"a\":1}\r\n".getBytes(StandardCharsets.UTF_8);
        for (int size = 1; size <= bytes.length; size++) {
            Lines lines = new Lines(new Trickle(bytes, size), null);
            assertEquals("\u00fc\ud83d\ude00", lines.read());
            assertEquals("", lines.read());
            assertEquals("{\"a\":1}\r", lines.read());
            assertNull(lines.read());
        }
    }

    @Test
    public void aLineCutOffByTheEndIsDropped() throws Exception {
        Lines lines = lines("one\n{\"id\":1}");
        assertEquals("one", lines.read());
        assertNull(lines.read());
        assertNull(lines.read());
    }

    @Test
    public void aLineTooLongIsRefusedAndTheNextIsRead() throws Exception {
        char[] long1 = new char[Lines.MAX_REQUEST + 1];
        Arrays.fill(long1, 'x');
        Lines lines = lines(new String(long1) + "\n" + new String(long1, 1, Lines.MAX_REQUEST) + "\nnext\n");
        refused(lines);
        assertEquals(Lines.MAX_REQUEST, lines.read().length());
        assertEquals("next", lines.read());
    }

    @Test
    public void whatIsNotUtf8IsRefusedAndTheNextIsRead() throws Exception {
        Lines lines = new Lines(new ByteArrayInputStream(new byte[] {(byte) 0xff, '\n', (byte) 0xc3, '\n', 'a', '\n'}), null);
        refused(lines);
        refused(lines);
        assertEquals("a", lines.read());
    }

    @Test
    public void anAnswerTooLongIsNotWritten() throws Exception {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        Lines lines = new Lines(null, out);
        lines.write("ok \u00fc");
        try {
            lines.write(new String(new char[Lines.MAX_RESPONSE]));
            fail();
        } catch (Fault fault) {
            assertEquals(Fault.TOO_LARGE, fault.type);
        }
        assertEquals("ok \u00fc\n", out.toString("UTF-8"));
    }

    private static Lines lines(String text) {
        return new Lines(new ByteArrayInputStream(text.getBytes(StandardCharsets.UTF_8)), null);
    }

    private static void refused(Lines lines) throws IOException {
        try {
            fail("read " + lines.read());
        } catch (Fault fault) {
            assertEquals(Fault.BAD_REQUEST, fault.type);
        }
    }

    /** Gives so many bytes at a time. */
    private static final class Trickle extends InputStream {
        private final byte[] bytes;
        private final int size;
        private int at;

        Trickle(byte[] bytes, int size) {
            this.bytes = bytes;
            this.size = size;
        }

        @Override
        public int read() {
            return at < bytes.length ? bytes[at++] & 0xff : -1;
        }

        @Override
        public int read(byte[] to, int from, int length) {
            int count = Math.min(Math.min(size, length), bytes.length - at);
            if (count == 0) {
                return -1;
            }
            System.arraycopy(bytes, at, to, from, count);
            at += count;
            return count;
        }
    }
}
