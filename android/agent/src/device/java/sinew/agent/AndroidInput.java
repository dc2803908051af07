package sinew.agent;

import android.hardware.input.IInputManager;
import android.os.ServiceManager;
import android.os.SystemClock;
import android.view.InputDevice;
import android.view.InputEvent;
import android.view.KeyCharacterMap;
import android.view.KeyEvent;
import android.view.MotionEvent;

import java.util.List;

/**
 * Fingers and keys, through the input service itself: it accepts any number of fingers and needs
 * no UiAutomation, which another tool may be using.
 */
final class AndroidInput {
    private static final int ASYNC = 0;
    private static final int WAIT_FOR_FINISH = 2;

    void play(List<Gestures.Event> events) throws Exception {
        long base = SystemClock.uptimeMillis();
        int played = 0;
        try {
            for (Gestures.Event event : events) {
                long wait = base + event.at - SystemClock.uptimeMillis();
                if (wait > 0) {
                    Thread.sleep(wait);
                }
                boolean last = played == events.size() - 1;
                inject(motion(event, base, event.action), last ? WAIT_FOR_FINISH : ASYNC);
                played++;
            }
        } catch (Exception e) {
            if (played > 0 && events.get(played - 1).action != Gestures.UP) {
                inject(motion(events.get(played - 1), base, Gestures.CANCEL), ASYNC);
            }
            throw e;
        }
    }

    void key(int code, int meta) throws Exception {
        long down = SystemClock.uptimeMillis();
        inject(key(down, down, KeyEvent.ACTION_DOWN, code, meta), WAIT_FOR_FINISH);
        inject(key(down, SystemClock.uptimeMillis(), KeyEvent.ACTION_UP, code, meta), WAIT_FOR_FINISH);
    }

    private static KeyEvent key(long down, long at, int action, int code, int meta) {
        return new KeyEvent(down, at, action, code, 0, meta, KeyCharacterMap.VIRTUAL_KEYBOARD, 0, 0,
                InputDevice.SOURCE_KEYBOARD);
    }

    static MotionEvent motion(Gestures.Event event, long base, int action) {
        int count = event.ids.length;
        MotionEvent.PointerProperties[] fingers = new MotionEvent.PointerProperties[count];
        MotionEvent.PointerCoords[] places = new MotionEvent.PointerCoords[count];
        for (int i = 0; i < count; i++) {
            fingers[i] = new MotionEvent.PointerProperties();
            fingers[i].id = event.ids[i];
            fingers[i].toolType = MotionEvent.TOOL_TYPE_FINGER;
            places[i] = new MotionEvent.PointerCoords();
            places[i].x = event.x[i];
            places[i].y = event.y[i];
            places[i].pressure = event.action == Gestures.UP ? 0 : 1;
            places[i].size = 1;
        }
        int packed = action | event.index << MotionEvent.ACTION_POINTER_INDEX_SHIFT;
        if (action != Gestures.POINTER_DOWN && action != Gestures.POINTER_UP) {
            packed = action;
        }
        return MotionEvent.obtain(base + event.down, base + event.at, packed, count, fingers, places, 0, 0, 1, 1, 0, 0,
                InputDevice.SOURCE_TOUCHSCREEN, 0);
    }

    private static void inject(InputEvent event, int mode) throws Exception {
        IInputManager input = IInputManager.Stub.asInterface(ServiceManager.getService("input"));
        boolean taken;
        try {
            taken = input.injectInputEvent(event, mode);
        } catch (SecurityException e) {
            throw new Fault(Fault.DENIED, "the phone does not let adb touch it; in the developer options, switch on "
                    + "'USB debugging (Security settings)' or its like: " + e.getMessage());
        }
        if (!taken) {
            throw new Fault(Fault.FAILED, "the phone did not take the input; the screen may be off or the app may hang");
        }
    }
}
