package sinew.agent;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.Charset;

/** Lines of UTF-8 text over two streams, each ended by LF and bounded in both directions. */
final class Lines {
    /** 4 MiB: four times a binder transaction, so every valid call fits. */
    static final int MAX_REQUEST = 4 << 20;
    /** 16 MiB: a tree of 50,000 nodes takes some 12. */
    static final int MAX_RESPONSE = 16 << 20;

    private static final Charset UTF_8 = Charset.forName("UTF-8");

    private final InputStream in;
    private final OutputStream out;
    private final byte[] buffer = new byte[8192];
    private int at;
    private int end;

    Lines(InputStream in, OutputStream out) {
        this.in = in;
        this.out = out;
    }

    /**
     * The next line without its end; null at the end of the stream. Text after the last LF is a
     * truncated line and is dropped.
     */
    String read() throws IOException, Fault {
        ByteArrayOutputStream line = new ByteArrayOutputStream();
        boolean tooLong = false;
        for (;;) {
            if (at == end) {
                at = 0;
                end = Math.max(0, in.read(buffer));
                if (end == 0) {
                    return null;
                }
            }
            int from = at;
            while (at < end && buffer[at] != '\n') {
                at++;
            }
            tooLong |= line.size() + at - from > MAX_REQUEST;
            if (tooLong) {
                line.reset();
            } else {
                line.write(buffer, from, at - from);
            }
            if (at < end) {
                at++;
                break;
            }
        }
        if (tooLong) {
            throw new Fault(Fault.BAD_REQUEST, "a request may have " + MAX_REQUEST + " bytes; this one has more");
        }
        try {
            return UTF_8.newDecoder().decode(ByteBuffer.wrap(line.toByteArray())).toString();
        } catch (CharacterCodingException e) {
            throw new Fault(Fault.BAD_REQUEST, "a request must be UTF-8");
        }
    }

    /** Writes a whole line at once, from any thread; the text has no LF. */
    void write(String line) throws IOException, Fault {
        byte[] bytes = (line + "\n").getBytes(UTF_8);
        if (bytes.length > MAX_RESPONSE) {
            throw new Fault(Fault.TOO_LARGE, "an answer may have " + MAX_RESPONSE + " bytes; this one has " + bytes.length);
        }
        synchronized (out) {
            out.write(bytes);
            out.flush();
        }
    }
}
