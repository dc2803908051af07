package sinew.agent;

import static org.junit.Assert.assertEquals;

import android.os.Binder;

import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.RobolectricTestRunner;
import org.robolectric.annotation.Config;

import java.io.File;
import java.io.FileDescriptor;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.Arrays;

/**
 * What Android's own shell commands answer to mistakes, on its own classes. The answers are kept in a file, with which
 * the virtual phone's shell is compared in every test run. `-Drecord=true` writes it.
 */
@RunWith(RobolectricTestRunner.class)
@Config(sdk = 34, manifest = Config.NONE)
public class ShellCommandsOnAndroidTest {
    private static final Path RECORDED = Paths.get("recorded/shell-commands-14.txt");

    private static final String[] LINES = {
        "input nonsense", "input tap 5", "input tap", "input swipe 1 2 3", "input keyevent",
        "am start", "am force-stop", "am nonsense", "am broadcast",
        "wm nonsense", "wm size 5", "wm density 5",
        "pm path", "pm clear", "pm grant", "pm uninstall",
    };

    @Test
    public void theRecordedAnswersAreAndroidsOwn() throws Exception {
        StringBuilder all = new StringBuilder();
        for (String line : LINES) {
            all.append("$ ").append(line).append('\n').append(answer(line));
        }
        if (Boolean.getBoolean("record")) {
            Files.createDirectories(RECORDED.getParent());
            Files.write(RECORDED, all.toString().getBytes(StandardCharsets.UTF_8));
        }
        String recorded = new String(Files.readAllBytes(RECORDED), StandardCharsets.UTF_8);
        assertEquals(recorded, all.toString());
    }

    /** The first line that was printed, and the exit code. */
    private static String answer(String line) throws Exception {
        String[] words = line.split(" ");
        Object command = unconstructed(className(words[0]));
        File out = File.createTempFile("sinew", ".out");
        int code;
        try (FileInputStream in = new FileInputStream("/dev/null"); FileOutputStream both = new FileOutputStream(out)) {
            Method exec = Class.forName("com.android.modules.utils.BasicShellCommandHandler").getMethod("exec",
                    Binder.class, FileDescriptor.class, FileDescriptor.class, FileDescriptor.class, String[].class);
            String[] args = Arrays.copyOfRange(words, 1, words.length);
            code = (Integer) exec.invoke(command, new Binder(), in.getFD(), both.getFD(), both.getFD(), args);
        }
        String first = "";
        for (String printed : Files.readAllLines(out.toPath(), StandardCharsets.UTF_8)) {
            if (!printed.trim().isEmpty() && !printed.startsWith("Exception occurred") && !printed.trim().startsWith("at ")) {
                first = printed.trim();
                break;
            }
        }
        Files.delete(out.toPath());
        // A shell sees eight bits.
        return "exit " + (code & 0xff) + "\n" + first + "\n";
    }

    private static String className(String service) {
        switch (service) {
            case "input": return "com.android.server.input.InputShellCommand";
            case "am": return "com.android.server.am.ActivityManagerShellCommand";
            case "wm": return "com.android.server.wm.WindowManagerShellCommand";
            default: return "com.android.server.pm.PackageManagerShellCommand";
        }
    }

    /** Mistakes are answered before anything of the service is used, so none is made. */
    private static Object unconstructed(String name) throws Exception {
        Class<?> unsafe = Class.forName("sun.misc.Unsafe");
        Field field = unsafe.getDeclaredField("theUnsafe");
        field.setAccessible(true);
        return unsafe.getMethod("allocateInstance", Class.class).invoke(field.get(null), Class.forName(name));
    }
}
