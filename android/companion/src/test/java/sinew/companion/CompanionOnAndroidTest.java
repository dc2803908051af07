package sinew.companion;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertTrue;
import static org.junit.Assert.fail;
import static org.robolectric.Shadows.shadowOf;

import android.app.Activity;
import android.content.Intent;
import android.net.Uri;

import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.Robolectric;
import org.robolectric.RobolectricTestRunner;
import org.robolectric.android.controller.ActivityController;
import org.robolectric.annotation.Config;
import org.robolectric.shadows.ShadowActivity;

import java.io.FileNotFoundException;

/** The companion on Android's own classes: the call goes out, its result comes back. */
@RunWith(RobolectricTestRunner.class)
@Config(sdk = {28, 34}, manifest = Config.NONE)
public class CompanionOnAndroidTest {
    private final AnswerProvider provider = Robolectric.setupContentProvider(AnswerProvider.class, "sinew.companion");

    @Test
    public void aToolIsCalledByItsComponentAndItsResultHandedOut() throws Exception {
        Activity activity = start("one", "com.pdf/.Tools").get();
        ShadowActivity.IntentForResult call = shadowOf(activity).getNextStartedActivityForResult();
        assertEquals("com.pdf/.Tools", call.intent.getComponent().flattenToShortString());
        assertEquals("pdf_tool", call.intent.getStringExtra("tool_name"));
        assertEquals("{\"path\":\"/\u00fc\"}", call.intent.getStringExtra("parameters"));
        shadowOf(activity).receiveResult(call.intent, Activity.RESULT_OK, new Intent().putExtra("result", "text\n\"\ud83d\ude00\""));
        assertTrue(activity.isFinishing());
        assertEquals("{\"code\":-1,\"result\":\"text\\u000a\\\"\ud83d\ude00\\\"\"}", answer("one"));
    }

    @Test
    public void aToolThatGivesNothingIsToldFromOneThatGivesAnEmptyText() throws Exception {
        Activity none = start("none", "com.pdf/.Tools").get();
        shadowOf(none).receiveResult(shadowOf(none).getNextStartedActivityForResult().intent, Activity.RESULT_CANCELED, null);
        assertEquals("{\"code\":0,\"result\":null}", answer("none"));
        Activity empty = start("empty", "com.pdf/.Tools").get();
        shadowOf(empty).receiveResult(shadowOf(empty).getNextStartedActivityForResult().intent, 5, new Intent().putExtra("result", ""));
        assertEquals("{\"code\":5,\"result\":\"\"}", answer("empty"));
    }

    @Test
    public void aCallThatIsClosedIsSaidToBeAbandoned() throws Exception {
        ActivityController<CallActivity> controller = start("closed", "com.pdf/.Tools");
        controller.get().finish();
        controller.pause().stop().destroy();
        assertTrue(answer("closed").startsWith("{\"error\":{\"type\":\"abandoned\""));
    }

    @Test
    public void aComponentThatIsNoneIsAnError() throws Exception {
        Activity activity = start("bad", "nonsense").get();
        assertNull(shadowOf(activity).getNextStartedActivityForResult());
        assertTrue(answer("bad").contains("the component must be PACKAGE/CLASS"));
    }

    @Test
    public void theProviderOffersNothingButItsAnswers() throws Exception {
        assertEquals("{\"companion\":\"sinew-companion\",\"version\":\"0.1.0\",\"protocol\":1}", Answer.about());
        for (String[] one : new String[][] {{"/call/", "r"}, {"/etc/passwd", "r"}, {"/about", "w"}, {"", "r"}}) {
            try {
                provider.openFile(Uri.parse("content://sinew.companion" + one[0]), one[1]);
                fail(one[0]);
            } catch (FileNotFoundException expected) {
                assertTrue(expected.getMessage().contains("/about"));
            }
        }
    }

    private static ActivityController<CallActivity> start(String token, String component) {
        Intent intent = new Intent().putExtra("token", token).putExtra("component", component)
                .putExtra("tool_name", "pdf_tool").putExtra("parameters", "{\"path\":\"/\u00fc\"}");
        return Robolectric.buildActivity(CallActivity.class, intent).create();
    }

    /** Past the pipe: Robolectric's is a file, at whose end a reader does not wait for the writer. */
    private static String answer(String token) {
        final String[] taken = new String[1];
        AnswerProvider.MAILBOX.read(token, new Mailbox.Reader() {
            @Override
            public void take(String answer) {
                taken[0] = answer;
            }
        }, "replaced");
        return taken[0];
    }
}
