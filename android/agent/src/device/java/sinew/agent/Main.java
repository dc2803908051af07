package sinew.agent;

import android.os.Looper;

import java.io.FileDescriptor;
import java.io.FileInputStream;
import java.io.FileOutputStream;

/** The main class on a phone: {@code CLASSPATH=… app_process / sinew.agent.Main}. */
public final class Main {
    private Main() {
    }

    @SuppressWarnings("deprecation")
    public static void main(String[] arguments) {
        int status = 0;
        try {
            FileOutputStream out = new FileOutputStream(FileDescriptor.out);
            // The framework prints messages too; keep them out of the stream of answers.
            System.setOut(System.err);
            Looper.prepareMainLooper();
            new Agent(new AndroidPhone(), new FileInputStream(FileDescriptor.in), out).run();
        } catch (Throwable thrown) {
            thrown.printStackTrace();
            status = 1;
        }
        // Threads of the framework would keep the process alive after its input ended.
        System.exit(status);
    }
}
