package sinew.companion;

import static org.junit.Assert.assertEquals;

import org.junit.Test;
import org.w3c.dom.Element;
import org.w3c.dom.NodeList;

import java.io.File;

import javax.xml.parsers.DocumentBuilderFactory;

public class AnswerTest {
    private static final String ANDROID = "http://schemas.android.com/apk/res/android";

    @Test
    public void answersAreJsonWhateverTheToolSays() {
        assertEquals("{\"code\":-1,\"result\":\"a\\\"b\\\\c\\u000a\ud83d\ude00\"}", Answer.result(-1, "a\"b\\c\n\ud83d\ude00"));
        assertEquals("{\"code\":0,\"result\":null}", Answer.result(0, null));
        assertEquals("{\"error\":{\"type\":\"denied\",\"message\":\"\ufffd\"}}", Answer.error("denied", "\ud800"));
    }

    @Test
    public void whatIsExportedIsForTheShellAlone() throws Exception {
        Element manifest = manifest();
        int exported = 0;
        for (String kind : new String[] {"activity", "activity-alias", "service", "receiver", "provider"}) {
            NodeList components = manifest.getElementsByTagName(kind);
            for (int i = 0; i < components.getLength(); i++) {
                Element component = (Element) components.item(i);
                assertEquals("android.permission.DUMP", component.getAttributeNS(ANDROID, "permission"));
                exported++;
            }
        }
        assertEquals(2, exported);
        assertEquals(0, manifest.getElementsByTagName("uses-permission").getLength());
    }

    @Test
    public void theManifestAndTheCodeNameOneVersion() throws Exception {
        assertEquals(Answer.VERSION, manifest().getAttributeNS(ANDROID, "versionName"));
    }

    private static Element manifest() throws Exception {
        DocumentBuilderFactory factory = DocumentBuilderFactory.newInstance();
        factory.setNamespaceAware(true);
        return factory.newDocumentBuilder().parse(new File("companion/AndroidManifest.xml")).getDocumentElement();
    }
}
