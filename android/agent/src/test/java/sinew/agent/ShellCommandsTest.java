package sinew.agent;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;

import org.junit.Test;

import java.io.File;
import java.io.FileDescriptor;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.Arrays;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * What Android's own shell commands answer to mistakes and to questions for help, on the classes of Android 12 to 16.
 * The answers are kept in a file for each, with which the virtual phone's shell is compared in every test run.
 * `-Drecord=true` writes them. Only Androids whose jar is there are compared: the one compiled for, and those that the
 * system property android.jars lists.
 */
public class ShellCommandsTest {
    private static final Path RECORDED = Paths.get("recorded");

    /** Most are answered before anything of the service is used. Where an Android needs it, the line is left out. */
    private static final String[] LINES = {
        "input", "input help", "input nonsense", "input tap", "input tap 5", "input tap a b", "input swipe",
        "input swipe 1 2 3", "input draganddrop 1 2", "input keyevent", "input motionevent",
        "input motionevent SIDEWAYS 1 2", "input text", "input roll", "input -d", "input -d x tap 1 2",
        "am", "am help", "am nonsense", "am start", "am start -n", "am start -n nonsense", "am start --nonsense",
        "am start -a x --ei n", "am start -a x --ei n text", "am force-stop", "am kill", "am broadcast",
        "am broadcast --nonsense", "am startservice", "am switch-user", "am set-debug-app",
        "am to-uri",
        "wm", "wm help", "wm nonsense", "wm size 5", "wm size axb", "wm density 5", "wm density x", "wm overscan 1,2",
        "wm user-rotation nonsense", "wm set-user-rotation lock",
        "pm", "pm path", "pm clear", "pm grant", "pm grant a", "pm revoke", "pm revoke a", "pm uninstall", "pm enable",
        "pm disable-user", "pm hide", "pm list", "pm list nonsense", "pm list packages --nonsense", "pm dump",
        "pm install --nonsense", "pm install-create --nonsense", "pm install-existing", "pm suspend",
        "pm set-install-location", "pm resolve-activity", "pm query-activities", "pm trim-caches", "pm create-user",
        "pm remove-user",
    };

    @Test
    public void theRecordedAnswersAreAndroidsOwn() throws Exception {
        Map<String, File> androids = androids();
        assertTrue("no Android from 12 on was found", !androids.isEmpty());
        for (Map.Entry<String, File> android : androids.entrySet()) {
            compare(android.getKey(), android.getValue());
        }
    }

    private static void compare(String version, File jar) throws Exception {
        Path file = RECORDED.resolve("shell-commands-" + version + ".txt");
        // Not the classes that these tests are compiled with.
        ClassLoader platform = ClassLoader.getSystemClassLoader().getParent();
        try (URLClassLoader android = new URLClassLoader(new URL[] {jar.toURI().toURL()}, platform)) {
            String answers = answers(android);
            if (Boolean.getBoolean("record")) {
                Files.write(file, answers.getBytes(StandardCharsets.UTF_8));
            }
            assertEquals(version, new String(Files.readAllBytes(file), StandardCharsets.UTF_8), answers);
        } catch (UnsupportedClassVersionError tooNew) {
            System.out.println(file + " is NOT compared: a newer Java reads Android " + version);
        }
    }

    /** The jars of Android 12 and later, by version. */
    private static Map<String, File> androids() throws Exception {
        String listed = System.getProperty("android.jars", "");
        String own = Class.forName("android.os.Binder", false, ShellCommandsTest.class.getClassLoader())
                .getProtectionDomain().getCodeSource().getLocation().getPath();
        Map<String, File> found = new TreeMap<>();
        for (String jar : (own + File.pathSeparator + listed).split(File.pathSeparator)) {
            Matcher version = Pattern.compile("android-all-(1[2-6])-robolectric").matcher(jar);
            if (version.find()) {
                found.put(version.group(1), new File(jar));
            }
        }
        return found;
    }

    private static String answers(ClassLoader android) throws Exception {
        StringBuilder all = new StringBuilder();
        for (String line : LINES) {
            String answer = answer(android, line);
            boolean needsService = answer.contains("UnsatisfiedLinkError") || answer.contains("NullPointerException");
            if (!needsService) {
                all.append("$ ").append(line).append('\n').append(answer);
            }
        }
        return all.toString();
    }

    /** The exit code, and the first line that was printed. */
    private static String answer(ClassLoader android, String line) throws Exception {
        String[] words = line.split(" ");
        Object command = unconstructed(Class.forName(className(words[0]), false, android));
        File out = File.createTempFile("sinew", ".out");
        int code;
        try (FileInputStream in = new FileInputStream("/dev/null"); FileOutputStream both = new FileOutputStream(out)) {
            Method exec = Class.forName("com.android.modules.utils.BasicShellCommandHandler", false, android)
                    .getMethod("exec", Class.forName("android.os.Binder", false, android), FileDescriptor.class,
                            FileDescriptor.class, FileDescriptor.class, String[].class);
            String[] args = Arrays.copyOfRange(words, 1, words.length);
            code = (Integer) exec.invoke(command, null, in.getFD(), both.getFD(), both.getFD(), args);
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

    private static Object unconstructed(Class<?> type) throws Exception {
        Class<?> unsafe = Class.forName("sun.misc.Unsafe");
        Field field = unsafe.getDeclaredField("theUnsafe");
        field.setAccessible(true);
        return unsafe.getMethod("allocateInstance", Class.class).invoke(field.get(null), type);
    }
}
