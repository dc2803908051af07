package sinew.companion;

import android.app.Activity;
import android.content.ActivityNotFoundException;
import android.content.ComponentName;
import android.content.Intent;
import android.os.Bundle;

/**
 * Calls an mMCP tool for the gateway and receives its result, which only an activity can do. It shows
 * nothing. Its extras: token, tool_name, parameters, and component or action (with package).
 */
public final class CallActivity extends Activity {
    private static final int REQUEST = 1;
    private static final String CHOOSER = "com.android.internal.app.ResolverActivity";

    private boolean answered;

    @Override
    protected void onCreate(Bundle saved) {
        super.onCreate(saved);
        if (saved != null) {
            // The system recreated the activity; the call is still running.
            return;
        }
        try {
            Intent call = call(getIntent());
            if (call.getComponent() == null) {
                ComponentName found = call.resolveActivity(getPackageManager());
                if (found != null && found.getClassName().equals(CHOOSER)) {
                    answer(Answer.error("ambiguous", "several apps take this call; name the component"));
                    return;
                }
            }
            startActivityForResult(call, REQUEST);
        } catch (ActivityNotFoundException e) {
            answer(Answer.error("not_found", "no activity takes this call: " + e.getMessage()));
        } catch (SecurityException e) {
            answer(Answer.error("denied", "the activity may not be started from outside: " + e.getMessage()));
        } catch (RuntimeException e) {
            answer(Answer.error("failed", e.toString()));
        }
    }

    private static Intent call(Intent from) {
        Intent call = new Intent(from.getStringExtra("action"));
        String component = from.getStringExtra("component");
        if (component != null) {
            ComponentName name = ComponentName.unflattenFromString(component);
            if (name == null) {
                throw new IllegalArgumentException("the component must be PACKAGE/CLASS; it is " + component);
            }
            call.setComponent(name);
        } else {
            call.setPackage(from.getStringExtra("package"));
        }
        call.putExtra("tool_name", from.getStringExtra("tool_name"));
        call.putExtra("parameters", from.getStringExtra("parameters"));
        return call;
    }

    @Override
    protected void onActivityResult(int request, int code, Intent data) {
        String result = null;
        try {
            result = data == null ? null : data.getStringExtra("result");
        } catch (RuntimeException e) {
            answer(Answer.error("failed", "the result cannot be read: " + e));
            return;
        }
        answer(Answer.result(code, result));
    }

    @Override
    protected void onDestroy() {
        if (isFinishing() && !answered) {
            answer(Answer.error("abandoned", "the call was closed before the tool answered"));
        }
        super.onDestroy();
    }

    private void answer(String answer) {
        answered = true;
        AnswerProvider.MAILBOX.post(String.valueOf(getIntent().getStringExtra("token")), answer);
        if (!isFinishing()) {
            finish();
        }
    }
}
