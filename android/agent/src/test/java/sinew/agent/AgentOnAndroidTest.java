package sinew.agent;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertTrue;
import static org.robolectric.Shadows.shadowOf;

import android.graphics.Rect;
import android.os.Bundle;
import android.os.Parcel;
import android.view.InputDevice;
import android.view.MotionEvent;
import android.view.accessibility.AccessibilityNodeInfo;

import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.RobolectricTestRunner;
import org.robolectric.annotation.Config;

import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Random;

/** The edge to Android on Android's own classes, as far as they run on a JVM. */
@RunWith(RobolectricTestRunner.class)
@Config(sdk = {28, 34}, manifest = Config.NONE)
public class AgentOnAndroidTest {
    private final AndroidPhone phone = new AndroidPhone();
    private final Bundles bundles = new Bundles(phone);

    @Test
    public void everyBundleComesBackThroughARealParcel() throws Fault {
        Random random = new Random(6);
        for (int i = 0; i < 500; i++) {
            String text = Json.write(bundles.encode(Samples.bag(phone, random, 3)));
            Bundle sent = (Bundle) bundles.decode((Map<?, ?>) Json.parse(text)).raw();
            Bundle received = transact(sent);
            // A CharSequence that is no String arrives as a String; that is Android's own doing.
            String expected = text.replaceAll("\\{\"charsequence\":(\"(?:[^\"\\\\]|\\\\.)*\")\\}", "$1");
            assertEquals(expected, Json.write(bundles.encode(phone.wrap(received))));
        }
    }

    @Test
    public void aProviderReadsTheArgumentsAsAMapOfStrings() throws Fault {
        String json = "{\"tool_name\":\"t\",\"tool_arguments\":{\"map\":{\"location\":\"Z\u00fcrich\"}}}";
        Bundle received = transact((Bundle) bundles.decode((Map<?, ?>) Json.parse(json)).raw());
        assertEquals("t", received.getString("tool_name"));
        assertEquals(Collections.singletonMap("location", "Z\u00fcrich"), received.getSerializable("tool_arguments"));
    }

    @Test
    public void theClipboardKeepsWhatItIsGiven() throws Exception {
        assertNull(phone.clipboard());
        phone.setClipboard("a \ud83d\ude00");
        assertEquals("a \ud83d\ude00", phone.clipboard());
    }

    @Test
    public void aNodeTellsAllThatATreeNeeds() {
        AccessibilityNodeInfo node = AccessibilityNodeInfo.obtain();
        node.setClassName("android.widget.EditText");
        node.setPackageName("com.example");
        node.setText("Search");
        node.setHintText("Search");
        node.setShowingHintText(true);
        node.setContentDescription("field");
        node.setViewIdResourceName("com.example:id/field");
        node.setBoundsInScreen(new Rect(1, -2, 3, 4));
        node.setEditable(true);
        node.setFocusable(true);
        node.setEnabled(true);
        node.setVisibleToUser(true);
        shadowOf(node).addChild(AccessibilityNodeInfo.obtain());
        Map<String, Object> tree = new Trees().walk(
                Collections.<Element>singletonList(new AndroidScreen.NodeElement(node)), 0, System.nanoTime() + (1L << 40));
        Map<?, ?> first = (Map<?, ?>) ((List<?>) tree.get("nodes")).get(0);
        assertEquals("{\"depth\":0,\"class\":\"android.widget.EditText\",\"package\":\"com.example\",\"description\":\"field\","
                + "\"id\":\"com.example:id/field\",\"hint\":\"Search\",\"bounds\":[1,-2,3,4],\"flags\":"
                + (Element.EDITABLE | Element.FOCUSABLE | Element.ENABLED | Element.VISIBLE) + ",\"handle\":65536}", Json.write(first));
        assertEquals(2, ((List<?>) tree.get("nodes")).size());
    }

    @Test
    public void aPinchIsATouchOfTwoFingers() throws Fault {
        List<Gestures.Event> events = Gestures.plan((List<?>) Json.parse("[[[0,0,0],[40,0,20]],[[100,0,0],[60,0,20]]]"));
        MotionEvent second = AndroidInput.motion(events.get(1), 1000, events.get(1).action);
        assertEquals(MotionEvent.ACTION_POINTER_DOWN, second.getActionMasked());
        assertEquals(1, second.getActionIndex());
        MotionEvent move = AndroidInput.motion(events.get(2), 1000, events.get(2).action);
        assertEquals(MotionEvent.ACTION_MOVE, move.getAction());
        assertEquals(2, move.getPointerCount());
        assertEquals(1000, move.getDownTime());
        assertEquals(1010, move.getEventTime());
        assertEquals(20f, move.getX(0), 0);
        assertEquals(80f, move.getX(1), 0);
        assertTrue(move.isFromSource(InputDevice.SOURCE_TOUCHSCREEN));
        MotionEvent cancel = AndroidInput.motion(events.get(2), 1000, Gestures.CANCEL);
        assertEquals(MotionEvent.ACTION_CANCEL, cancel.getAction());
    }

    private static Bundle transact(Bundle bundle) {
        Parcel parcel = Parcel.obtain();
        try {
            parcel.writeBundle(bundle);
            parcel.setDataPosition(0);
            return parcel.readBundle();
        } finally {
            parcel.recycle();
        }
    }
}
