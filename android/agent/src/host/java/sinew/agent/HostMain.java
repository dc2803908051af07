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
 * The main class on a computer: the agent as it runs on a phone, with a phone in memory, or with one that
 * another program simulates at a local port.
 * {@code java -cp agent-host.jar sinew.agent.HostMain [SCENE.json | --phone PORT]}
 */
public final class HostMain {
    private HostMain() {
    }

    public static void main(String[] arguments) {
        try {
            if (arguments.length == 2 && arguments[0].equals("--phone")) {
                serve(new RelayPhone(Integer.parseInt(arguments[1])));
                return;
            }
            Map<?, ?> scene = new LinkedHashMap<String, Object>();
            if (arguments.length > 0) {
                byte[] bytes = Files.readAllBytes(Paths.get(arguments[0]));
                Object json = Json.parse(new String(bytes, StandardCharsets.UTF_8));
                if (!(json instanceof Map)) {
                    throw Fault.invalid(arguments[0] + " must hold an object");
                }
                scene = (Map<?, ?>) json;
            }
            serve(new FakePhone(scene, System.err));
        } catch (Exception e) {
            System.err.println(Agent.NAME + ": " + e.getMessage());
            System.exit(1);
        }
    }

    private static void serve(Phone phone) throws Exception {
        new Agent(phone, new FileInputStream(FileDescriptor.in), new FileOutputStream(FileDescriptor.out)).run();
        System.exit(0);
    }
}
