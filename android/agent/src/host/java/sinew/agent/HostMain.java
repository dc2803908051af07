package sinew.agent;

import java.io.FileDescriptor;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * The entrance on a computer: the agent as it runs on a phone, over a phone that exists in memory.
 * {@code java -cp agent-host.jar sinew.agent.HostMain [SCENE.json]}
 */
public final class HostMain {
    private HostMain() {
    }

    public static void main(String[] arguments) {
        try {
            Map<?, ?> scene = new LinkedHashMap<String, Object>();
            if (arguments.length > 0) {
                byte[] bytes = Files.readAllBytes(Paths.get(arguments[0]));
                Object json = Json.parse(new String(bytes, StandardCharsets.UTF_8));
                if (!(json instanceof Map)) {
                    throw Fault.invalid(arguments[0] + " must hold an object");
                }
                scene = (Map<?, ?>) json;
            }
            FakePhone phone = new FakePhone(scene, System.err);
            new Agent(phone, new FileInputStream(FileDescriptor.in), new FileOutputStream(FileDescriptor.out)).run();
        } catch (Exception e) {
            System.err.println(Agent.NAME + ": " + e.getMessage());
            System.exit(1);
        }
        System.exit(0);
    }
}
