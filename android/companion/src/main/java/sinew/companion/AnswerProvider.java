package sinew.companion;

import android.content.ContentProvider;
import android.content.ContentValues;
import android.database.Cursor;
import android.net.Uri;
import android.os.ParcelFileDescriptor;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;

/**
 * Provides answers as files: {@code content read --uri content://sinew.companion/call/TOKEN}
 * waits for the answer to the call with that token, {@code …/about} describes the companion.
 */
public final class AnswerProvider extends ContentProvider {
    static final Mailbox MAILBOX = new Mailbox();

    @Override
    public boolean onCreate() {
        return true;
    }

    @Override
    public ParcelFileDescriptor openFile(Uri uri, String mode) throws FileNotFoundException {
        String path = uri.getPath();
        boolean call = path != null && path.startsWith("/call/") && path.length() > "/call/".length();
        if (!"r".equals(mode) || !call && !"/about".equals(path)) {
            throw new FileNotFoundException("there is only /about and /call/TOKEN, to be read");
        }
        final ParcelFileDescriptor[] pipe;
        try {
            pipe = ParcelFileDescriptor.createPipe();
        } catch (IOException e) {
            throw new FileNotFoundException(e.getMessage());
        }
        Mailbox.Reader reader = new Mailbox.Reader() {
            @Override
            public void take(String answer) {
                write(pipe[1], answer);
            }
        };
        if (call) {
            MAILBOX.read(path.substring("/call/".length()), reader,
                    Answer.error("replaced", "a newer reader waits for the answers"));
        } else {
            reader.take(Answer.about());
        }
        return pipe[0];
    }

    /** On its own thread, because a pipe buffers 64 KB and its reader may be slow or gone. */
    private static void write(final ParcelFileDescriptor end, final String answer) {
        new Thread("sinew-answer") {
            @Override
            public void run() {
                OutputStream out = new ParcelFileDescriptor.AutoCloseOutputStream(end);
                try {
                    out.write(answer.getBytes(StandardCharsets.UTF_8));
                } catch (IOException gone) {
                    // Nobody reads any more.
                } finally {
                    try {
                        out.close();
                    } catch (IOException gone) {
                        // As above.
                    }
                }
            }
        }.start();
    }

    @Override
    public String getType(Uri uri) {
        return "application/json";
    }

    @Override
    public Cursor query(Uri uri, String[] projection, String selection, String[] arguments, String order) {
        return null;
    }

    @Override
    public Uri insert(Uri uri, ContentValues values) {
        return null;
    }

    @Override
    public int delete(Uri uri, String selection, String[] arguments) {
        return 0;
    }

    @Override
    public int update(Uri uri, ContentValues values, String selection, String[] arguments) {
        return 0;
    }
}
