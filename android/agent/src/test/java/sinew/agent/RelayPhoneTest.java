package sinew.agent;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertTrue;
import static org.junit.Assert.fail;

import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.junit.After;
import org.junit.Before;
import org.junit.Test;

/** Each question reaches the program that plays the phone, and its answer comes back as a phone would give it. */
public class RelayPhoneTest {
    private final Map<String, String> answers = new LinkedHashMap<String, String>();
    private final List<String> asked = Collections.synchronizedList(new ArrayList<String>());
    private ServerSocket server;
    private RelayPhone phone;

    @Before
    public void open() throws Exception {
        server = new ServerSocket(0, 50, InetAddress.getByName("127.0.0.1"));
        answers.put("about", "{\"result\":{\"api\":35,\"release\":\"15\"}}");
        Thread player = new Thread(new Runnable() {
            @Override
            public void run() {
                play();
            }
        });
        player.setDaemon(true);
        player.start();
        phone = new RelayPhone(server.getLocalPort());
    }

    @After
    public void close() throws Exception {
        server.close();
    }

    private void play() {
        for (;;) {
            try (Socket socket = server.accept()) {
                String question = new Lines(socket.getInputStream(), socket.getOutputStream()).read();
                asked.add(question);
                String answer = answers.get(new Params((Map<?, ?>) Json.parse(question)).text("ask"));
                if (answer != null) {
                    socket.getOutputStream().write((answer + "\n").getBytes(StandardCharsets.UTF_8));
                }
            } catch (Exception e) {
                return;
            }
        }
    }

    @Test
    public void aTreeIsReadAndItsFieldsAreTheOtherProgramsToFill() throws Exception {
        assertEquals(35, phone.api());
        answers.put("tree", "{\"result\":{\"nodes\":[{\"depth\":0,\"class\":\"F\"},"
                + "{\"depth\":1,\"class\":\"E\",\"flags\":320,\"handle\":2}]}}");
        answers.put("field", "{\"result\":true}");
        Element field = phone.focused();
        assertEquals("E", field.className());
        assertTrue(field.refresh());
        assertTrue(field.setText("日本"));
        assertEquals("{\"ask\":\"field\",\"handle\":2,\"text\":\"日本\"}", asked.get(asked.size() - 1));
        answers.put("field", "{\"result\":false}");
        assertFalse(field.refresh());
        assertFalse(phone.roots().get(0).setText("a frame takes no text"));
    }

    @Test
    public void bundlesGoThereAndBack() throws Exception {
        answers.put("provider_call", "{\"result\":{\"n\":{\"long\":5}}}");
        Bag extras = phone.create();
        extras.put("a", "b");
        assertEquals(5L, phone.call("x.y", "m", null, extras, 0).get("n"));
        assertTrue(asked.get(asked.size() - 1).contains("\"extras\":{\"a\":\"b\"}"));
        answers.put("provider_call", "{\"result\":null}");
        assertNull(phone.call("x.y", "m", "arg", null, 0));
    }

    @Test
    public void anErrorKeepsItsTypeAndSilenceIsAFailure() throws Exception {
        answers.put("clipboard_get", "{\"error\":{\"type\":\"denied\",\"message\":\"not now\"}}");
        try {
            phone.clipboard();
            fail("it was refused");
        } catch (Fault fault) {
            assertEquals("denied: not now", fault.type + ": " + fault.getMessage());
        }
        try {
            phone.key(3, 0);
            fail("nobody answered");
        } catch (Exception silence) {
            assertEquals(Fault.FAILED, Fault.of(silence).type);
        }
    }
}
