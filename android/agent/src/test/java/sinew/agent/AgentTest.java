package sinew.agent;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertNotNull;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertTrue;

import org.junit.After;
import org.junit.Test;

import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PipedInputStream;
import java.io.PipedOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.Random;

public class AgentTest {
    private static final String SCENE = "{\"api\":29,\"release\":\"10\",\"rotation\":1,\"clipboard\":\"first\",\"nodes\":["
            + "{\"depth\":0,\"class\":\"android.widget.FrameLayout\",\"package\":\"com.example\",\"bounds\":[0,0,1080,2400]},"
            + "{\"depth\":1,\"class\":\"android.widget.EditText\",\"hint\":\"Search\",\"flags\":2416},"
            + "{\"depth\":1,\"class\":\"android.widget.EditText\",\"text\":\"old\",\"flags\":2352},"
            + "{\"depth\":1,\"class\":\"android.widget.TextView\",\"text\":\"label\"},"
            + "{\"depth\":1,\"class\":\"android.widget.EditText\",\"flags\":2352,\"gone\":true}],"
            + "\"providers\":{\"com.weather.tool\":{"
            + "\"get_tool_info\":{\"bundle\":{\"success\":true,\"tool_name\":\"get_weather_forecast\",\"tool_input_required\":{\"strings\":[\"location\"]}}},"
            + "\"execute_tool\":{\"error\":{\"type\":\"failed\",\"message\":\"'com.weather.tool' threw java.lang.NullPointerException: no city\"}}}},"
            + "\"packages\":{\"com.example\":[{\"kind\":\"activity\",\"name\":\"com.example.Tools\",\"meta\":{\"mMCP_manifest\":\"{}\",\"icon\":2130837504}},"
            + "{\"kind\":\"provider\",\"name\":\"com.example.P\",\"authority\":\"com.example.p\",\"permission\":\"com.example.X\",\"exported\":false}]}}";

    private final ByteArrayOutputStream log = new ByteArrayOutputStream();
    private OutputStream requests;
    private BufferedReader answers;
    private Thread thread;

    @After
    public void end() throws Exception {
        if (thread != null) {
            requests.close();
            thread.join();
        }
    }

    @Test
    public void theHelloSaysWhoAndWhat() throws Exception {
        String hello = start(SCENE);
        assertEquals("{\"hello\":\"sinew-agent\",\"version\":\"0.1.0\",\"protocol\":1,\"api\":29,\"release\":\"10\",\"capabilities\":"
                + "[\"ping\",\"tree\",\"set_text\",\"select\",\"picture\",\"touch\",\"key\",\"clipboard_get\",\"clipboard_set\",\"provider_call\",\"package_meta\"]}", hello);
    }

    @Test
    public void whatIsNoRequestIsAnsweredWithAnError() throws Exception {
        start(SCENE);
        String[][] bad = {{"", "null", "bad_request"}, {"x", "null", "bad_request"}, {"[]", "null", "bad_request"},
            {"{}", "null", "bad_request"}, {"{\"id\":null,\"method\":\"ping\"}", "null", "bad_request"},
            {"{\"id\":1.5,\"method\":\"ping\"}", "null", "bad_request"}, {"{\"id\":1}", "1", "bad_request"},
            {"{\"id\":2,\"method\":7}", "2", "bad_request"}, {"{\"id\":3,\"method\":\"ping\",\"params\":[]}", "3", "bad_request"},
            {"{\"id\":4,\"method\":\"reboot\"}", "4", "unknown_method"}, {"{\"id\":5,\"method\":\"key\"}", "5", "invalid"},
            {"{\"id\":6,\"method\":\"key\",\"params\":{\"code\":0}}", "6", "invalid"},
            {"{\"id\":7,\"method\":\"provider_call\",\"params\":{\"timeout_ms\":0}}", "7", "invalid"}};
        for (String[] one : bad) {
            String answer = ask(one[0]);
            assertTrue(one[0] + " -> " + answer, answer.startsWith("{\"id\":" + one[1] + ",\"error\":{\"type\":\"" + one[2] + "\""));
        }
        assertEquals("{\"id\":\"x\",\"result\":{}}", ask("{\"id\":\"x\",\"method\":\"ping\"}"));
    }

    @Test
    public void everyLineOfGarbageHasExactlyOneAnswer() throws Exception {
        start(SCENE);
        Random random = new Random(5);
        String good = "{\"id\":1,\"method\":\"provider_call\",\"params\":{\"authority\":\"sinew.echo\",\"method\":\"echo\",\"extras\":{\"a\":{\"long\":1}}}}";
        for (int i = 0; i < 2000; i++) {
            byte[] line = good.getBytes(StandardCharsets.UTF_8);
            for (int n = 1 + random.nextInt(3); n > 0; n--) {
                int at = random.nextInt(line.length);
                byte changed = (byte) (random.nextInt(4) == 0 ? random.nextInt(256) : "{}[]\",:0\\".charAt(random.nextInt(9)));
                line[at] = changed == '\n' ? (byte) ' ' : changed;
            }
            requests.write(line);
            requests.write('\n');
            requests.flush();
            Map<?, ?> answer = (Map<?, ?>) Json.parse(answers.readLine());
            assertTrue(answer.containsKey("result") != answer.containsKey("error"));
        }
        assertEquals("{\"id\":9,\"result\":{}}", ask("{\"id\":9,\"method\":\"ping\"}"));
    }

    @Test
    public void aFieldTakesAnyTextByHandleAndByFocus() throws Exception {
        start(SCENE);
        List<?> nodes = (List<?>) result("tree", "{}").get("nodes");
        assertEquals(5, nodes.size());
        Object field = ((Map<?, ?>) nodes.get(2)).get("handle");
        assertEquals("{}", Json.write(result("set_text", "{\"handle\":" + field + ",\"text\":\"\u65e5\u672c \ud83d\ude00\"}")));
        assertEquals("{}", Json.write(result("set_text", "{\"text\":\"in front\"}")));
        nodes = (List<?>) result("tree", "{\"budget_ms\":1000}").get("nodes");
        assertEquals("in front", ((Map<?, ?>) nodes.get(1)).get("text"));
        assertEquals("\u65e5\u672c \ud83d\ude00", ((Map<?, ?>) nodes.get(2)).get("text"));
        Object label = ((Map<?, ?>) nodes.get(3)).get("handle");
        Object gone = ((Map<?, ?>) nodes.get(4)).get("handle");
        assertEquals("failed", error("set_text", "{\"handle\":" + label + ",\"text\":\"x\"}"));
        assertEquals("no_element", error("set_text", "{\"handle\":" + gone + ",\"text\":\"x\"}"));
        assertEquals("no_element", error("set_text", "{\"handle\":1,\"text\":\"x\"}"));
        assertEquals("invalid", error("set_text", "{\"handle\":1}"));
    }

    @Test
    public void aPartOfAFieldIsSelectedAndTheTreeSaysSo() throws Exception {
        start(SCENE);
        List<?> nodes = (List<?>) result("tree", "{}").get("nodes");
        Object field = ((Map<?, ?>) nodes.get(2)).get("handle");
        Object label = ((Map<?, ?>) nodes.get(3)).get("handle");
        result("set_text", "{\"handle\":" + field + ",\"text\":\"abcdef\"}");
        assertEquals("{}", Json.write(result("select", "{\"handle\":" + field + ",\"start\":2,\"end\":4}")));
        nodes = (List<?>) result("tree", "{}").get("nodes");
        assertEquals("[2,4]", Json.write(((Map<?, ?>) nodes.get(2)).get("selection")));
        assertFalse(((Map<?, ?>) nodes.get(3)).containsKey("selection"));
        assertEquals("failed", error("select", "{\"handle\":" + field + ",\"start\":2,\"end\":400}"));
        assertEquals("failed", error("select", "{\"handle\":" + label + ",\"start\":0,\"end\":0}"));
        assertEquals("invalid", error("select", "{\"handle\":" + field + ",\"start\":4,\"end\":2}"));
        assertEquals("invalid", error("select", "{\"handle\":" + field + ",\"start\":-1,\"end\":2}"));
    }

    @Test
    public void aPictureHasTheSizeThatIsAskedFor() throws Exception {
        start(SCENE);
        byte[] jpeg = Base64.getDecoder().decode((String) result("picture", "{\"max_side\":540,\"quality\":60}").get("jpeg"));
        assertEquals("a picture of 540 pixels, quality 60", new String(jpeg, StandardCharsets.US_ASCII));
        for (String wrong : new String[] {"{}", "{\"max_side\":0}", "{\"max_side\":540,\"quality\":101}", "{\"max_side\":\"x\"}"}) {
            assertEquals("invalid", error("picture", wrong));
        }
    }

    @Test
    public void theClipboardKeepsWhatItIsGiven() throws Exception {
        start(SCENE);
        assertEquals("first", result("clipboard_get", "{}").get("text"));
        result("clipboard_set", "{\"text\":\"a\\nb \u00fc\"}");
        assertEquals("a\nb \u00fc", result("clipboard_get", "{}").get("text"));
    }

    @Test
    public void fingersAndKeysReachThePhone() throws Exception {
        start(SCENE);
        result("touch", "{\"strokes\":[[[1,2,0],[1,2,5]]]}");
        result("key", "{\"code\":66,\"meta\":1}");
        assertEquals("{\"touch\":[[0,0,0,[[0,1.0,2.0]]],[5,1,0,[[0,1.0,2.0]]]]}\n{\"key\":[66,1]}\n", log.toString("UTF-8"));
    }

    @Test
    public void aSleepingPhoneTakesNoInputButTheKeysThatWakeIt() throws Exception {
        start("{\"asleep\":true}");
        assertEquals("asleep", error("touch", "{\"strokes\":[[[1,2,0],[1,2,5]]]}"));
        assertEquals("asleep", error("key", "{\"code\":66}"));
        assertEquals("asleep", error("set_text", "{\"text\":\"x\"}"));
        assertEquals("", log.toString("UTF-8"));
        result("key", "{\"code\":224}");
        assertEquals("{\"key\":[224,0]}\n", log.toString("UTF-8"));
    }

    @Test
    public void aProviderIsCalledWithARealBundle() throws Exception {
        start(SCENE);
        String extras = "{\"tool_arguments\":{\"map\":{\"location\":\"Bern\"}},\"tool_name\":\"t\"}";
        assertEquals("{\"bundle\":" + extras + "}",
                Json.write(result("provider_call", "{\"authority\":\"sinew.echo\",\"method\":\"echo\",\"extras\":" + extras + "}")));
        assertEquals("{\"bundle\":null}", Json.write(result("provider_call", "{\"authority\":\"sinew.echo\",\"method\":\"null\"}")));
        assertEquals("{\"bundle\":{\"success\":true,\"tool_input_required\":{\"strings\":[\"location\"]},\"tool_name\":\"get_weather_forecast\"}}",
                Json.write(result("provider_call", "{\"authority\":\"com.weather.tool\",\"method\":\"get_tool_info\"}")));
    }

    @Test
    public void eachWayAProviderFailsHasItsError() throws Exception {
        start(SCENE);
        assertEquals("not_found", error("provider_call", "{\"authority\":\"nobody\",\"method\":\"echo\"}"));
        assertEquals("crashed", error("provider_call", "{\"authority\":\"sinew.echo\",\"method\":\"crash\"}"));
        assertEquals("denied", error("provider_call", "{\"authority\":\"sinew.echo\",\"method\":\"refuse\"}"));
        assertEquals("failed", error("provider_call", "{\"authority\":\"sinew.echo\",\"method\":\"?\"}"));
        assertEquals("failed", error("provider_call", "{\"authority\":\"com.weather.tool\",\"method\":\"execute_tool\"}"));
        assertEquals("invalid", error("provider_call", "{\"authority\":\"sinew.echo\",\"method\":\"echo\",\"extras\":{\"a\":1.5}}"));
        assertEquals("invalid", error("provider_call", "{\"authority\":\"sinew.echo\"}"));
        assertEquals("timeout", error("provider_call", "{\"authority\":\"sinew.echo\",\"method\":\"hang\",\"timeout_ms\":10}"));
    }

    @Test
    public void aProviderThatHangsHoldsUpNobody() throws Exception {
        start(SCENE);
        for (int i = 0; i < 8; i++) {
            send("{\"id\":" + i + ",\"method\":\"provider_call\",\"params\":{\"authority\":\"sinew.echo\",\"method\":\"hang\"}}");
        }
        assertEquals("busy", error("provider_call", "{\"authority\":\"sinew.echo\",\"method\":\"echo\"}"));
        assertNotNull(result("tree", "{}"));
        assertNotNull(result("ping", "{}"));
    }

    @Test
    public void whatIsTooMuchToWaitIsRefusedAtOnce() throws Exception {
        start(SCENE);
        // One is under way and 64 may wait behind it.
        send("{\"id\":0,\"method\":\"touch\",\"params\":{\"strokes\":[[[1,1,0],[1,1,60000]]]}}");
        for (int i = 1; i <= 100; i++) {
            send("{\"id\":" + i + ",\"method\":\"clipboard_get\"}");
        }
        for (int i = 65; i <= 100; i++) {
            assertTrue(answers.readLine().startsWith("{\"id\":" + i + ",\"error\":{\"type\":\"busy\""));
        }
        assertNotNull(result("ping", "{}"));
    }

    @Test
    public void aPackagesComponentsComeWithTheirMetaData() throws Exception {
        start(SCENE);
        assertEquals("{\"components\":[{\"kind\":\"activity\",\"name\":\"com.example.Tools\",\"exported\":true,\"enabled\":true,\"permission\":null,"
                + "\"meta\":{\"icon\":2130837504,\"mMCP_manifest\":\"{}\"}},"
                + "{\"kind\":\"provider\",\"name\":\"com.example.P\",\"exported\":false,\"enabled\":true,\"permission\":\"com.example.X\","
                + "\"authority\":\"com.example.p\",\"meta\":{}}]}", Json.write(result("package_meta", "{\"package\":\"com.example\"}")));
        assertEquals("not_found", error("package_meta", "{\"package\":\"com.nobody\"}"));
    }

    @Test
    public void whatAPhoneLacksIsLeftOutAndRefused() throws Exception {
        String hello = start("{\"without\":[\"tree\",\"clipboard_get\"]}");
        assertTrue(!hello.contains("\"tree\"") && !hello.contains("clipboard_get"));
        assertEquals("unsupported", error("tree", "{}"));
        assertEquals("unsupported", error("clipboard_get", "{}"));
    }

    @Test
    public void anAnswerTooLargeIsAnErrorAndNotASilence() throws Exception {
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < 3_000_000; i++) {
            text.append('\u0001');
        }
        start(SCENE);
        // A control character is one byte in no JSON; six times three million is more than a line.
        FakePhone phone = new FakePhone((Map<?, ?>) Json.parse(SCENE), new PrintStream(log));
        phone.setClipboard(text.toString());
        end();
        start(phone);
        assertEquals("too_large", error("clipboard_get", "{}"));
        assertNotNull(result("ping", "{}"));
    }

    @Test
    public void theAgentEndsWithItsInputEvenWhenAProviderHangs() throws Exception {
        start(SCENE);
        send("{\"id\":1,\"method\":\"provider_call\",\"params\":{\"authority\":\"sinew.echo\",\"method\":\"hang\"}}");
        requests.close();
        thread.join();
        assertTrue(answers.readLine().startsWith("{\"id\":1,\"error\":{\"type\":\"failed\""));
        assertNull(answers.readLine());
    }

    private String start(String scene) throws Exception {
        return start(new FakePhone((Map<?, ?>) Json.parse(scene), new PrintStream(log, true)));
    }

    private String start(Phone phone) throws Exception {
        PipedOutputStream out = new PipedOutputStream();
        answers = new BufferedReader(new InputStreamReader(new PipedInputStream(out, 1 << 20), StandardCharsets.UTF_8));
        PipedInputStream in = new PipedInputStream(1 << 20);
        requests = new PipedOutputStream(in);
        final Agent agent = new Agent(phone, in, out);
        final OutputStream end = out;
        thread = new Thread() {
            @Override
            public void run() {
                try {
                    agent.run();
                    end.close();
                } catch (Exception e) {
                    throw new AssertionError(e);
                }
            }
        };
        thread.start();
        return answers.readLine();
    }

    private void send(String line) throws IOException {
        requests.write((line + "\n").getBytes(StandardCharsets.UTF_8));
        requests.flush();
    }

    private String ask(String line) throws IOException {
        send(line);
        return answers.readLine();
    }

    private Map<?, ?> answer(String method, String params) throws Exception {
        String line = ask("{\"id\":77,\"method\":\"" + method + "\",\"params\":" + params + "}");
        Map<?, ?> answer = (Map<?, ?>) Json.parse(line);
        assertEquals(77L, answer.get("id"));
        return answer;
    }

    private Map<?, ?> result(String method, String params) throws Exception {
        Map<?, ?> answer = answer(method, params);
        assertTrue("" + answer, answer.containsKey("result"));
        return (Map<?, ?>) answer.get("result");
    }

    private Object error(String method, String params) throws Exception {
        return ((Map<?, ?>) answer(method, params).get("error")).get("type");
    }
}
