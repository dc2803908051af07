package sinew.agent;

import android.accessibilityservice.AccessibilityServiceInfo;
import android.app.UiAutomation;
import android.app.UiAutomationConnection;
import android.graphics.Bitmap;
import android.graphics.Rect;
import android.os.Bundle;
import android.os.HandlerThread;
import android.os.SystemClock;
import android.view.accessibility.AccessibilityNodeInfo;
import android.view.accessibility.AccessibilityWindowInfo;

import java.io.ByteArrayOutputStream;
import java.util.ArrayList;
import java.util.List;

/**
 * The screen through UiAutomation, which only one program can use at a time. It is connected on
 * first use, so that an agent that only calls providers does not block other programs.
 */
final class AndroidScreen {
    /** Accessibility services of the phone's owner keep running. */
    private static final int KEEP_OTHER_SERVICES = UiAutomation.FLAG_DONT_SUPPRESS_ACCESSIBILITY_SERVICES;
    /** One second: windows appear with a delay after the connection and after they open. */
    private static final long PATIENCE_MS = 1000;

    private UiAutomation automation;
    private HandlerThread thread;

    List<Element> roots() throws Exception {
        long until = SystemClock.uptimeMillis() + PATIENCE_MS;
        for (;;) {
            List<Element> roots = rootsNow();
            if (!roots.isEmpty() || SystemClock.uptimeMillis() > until) {
                return roots;
            }
            Thread.sleep(50);
        }
    }

    private List<Element> rootsNow() throws Exception {
        UiAutomation automation = connected();
        List<Element> roots = new ArrayList<Element>();
        for (AccessibilityWindowInfo window : automation.getWindows()) {
            AccessibilityNodeInfo root = window.getRoot();
            if (root != null) {
                roots.add(new NodeElement(root));
            }
        }
        if (roots.isEmpty()) {
            AccessibilityNodeInfo root = automation.getRootInActiveWindow();
            if (root != null) {
                roots.add(new NodeElement(root));
            }
        }
        return roots;
    }

    Element focused() throws Exception {
        AccessibilityNodeInfo node = connected().findFocus(AccessibilityNodeInfo.FOCUS_INPUT);
        return node == null ? null : new NodeElement(node);
    }

    byte[] picture(int maxSide, int quality) throws Exception {
        Bitmap whole = held().takeScreenshot();
        if (whole == null) {
            throw new Fault(Fault.DENIED, "the screen cannot be captured: the display is off, or the app in front "
                    + "forbids it (FLAG_SECURE)");
        }
        int longest = Math.max(whole.getWidth(), whole.getHeight());
        Bitmap small = whole;
        if (longest > maxSide) {
            small = Bitmap.createScaledBitmap(whole, Math.max(1, whole.getWidth() * maxSide / longest),
                    Math.max(1, whole.getHeight() * maxSide / longest), true);
        }
        ByteArrayOutputStream jpeg = new ByteArrayOutputStream();
        boolean done = small.compress(Bitmap.CompressFormat.JPEG, quality, jpeg);
        small.recycle();
        whole.recycle();
        if (!done) {
            throw new Fault(Fault.FAILED, "Android could not make a JPEG of the screen");
        }
        return jpeg.toByteArray();
    }

    /** The connection as it is: pictures need no fresh nodes, and must not clear those that a tree is made of. */
    private synchronized UiAutomation held() throws Fault {
        return automation != null && automation.getServiceInfo() != null ? automation : connected();
    }

    synchronized void close() {
        if (automation != null) {
            try {
                automation.disconnect();
            } catch (RuntimeException gone) {
                // The system dropped the connection first.
            }
            thread.quit();
            automation = null;
        }
    }

    /** Setting the service info also clears the cache of nodes, so the current screen is read. */
    @SuppressWarnings("deprecation")
    private synchronized UiAutomation connected() throws Fault {
        if (automation != null) {
            try {
                configure(automation);
                return automation;
            } catch (RuntimeException lost) {
                close();
            }
        }
        HandlerThread handlers = new HandlerThread(Agent.NAME + "-screen");
        handlers.start();
        UiAutomation fresh = new UiAutomation(handlers.getLooper(), new UiAutomationConnection());
        try {
            fresh.connect(KEEP_OTHER_SERVICES);
            configure(fresh);
        } catch (RuntimeException e) {
            handlers.quit();
            for (Throwable cause = e; cause != null; cause = cause.getCause()) {
                if (String.valueOf(cause.getMessage()).contains("already registered")) {
                    throw new Fault(Fault.BUSY, "another tool reads this phone's screen (uiautomator, Appium, a second "
                            + "agent); end it first");
                }
            }
            throw e;
        }
        automation = fresh;
        thread = handlers;
        return fresh;
    }

    private static void configure(UiAutomation automation) {
        AccessibilityServiceInfo info = automation.getServiceInfo();
        if (info == null) {
            throw new IllegalStateException("the accessibility service is not connected");
        }
        info.flags |= AccessibilityServiceInfo.FLAG_RETRIEVE_INTERACTIVE_WINDOWS
                | AccessibilityServiceInfo.FLAG_REPORT_VIEW_IDS
                | AccessibilityServiceInfo.FLAG_INCLUDE_NOT_IMPORTANT_VIEWS;
        automation.setServiceInfo(info);
    }

    static final class NodeElement implements Element {
        private final AccessibilityNodeInfo node;

        NodeElement(AccessibilityNodeInfo node) {
            this.node = node;
        }

        @Override
        public CharSequence className() {
            return node.getClassName();
        }

        @Override
        public CharSequence packageName() {
            return node.getPackageName();
        }

        @Override
        public CharSequence text() {
            return node.isShowingHintText() ? null : node.getText();
        }

        @Override
        public CharSequence description() {
            return node.getContentDescription();
        }

        @Override
        public CharSequence resourceId() {
            return node.getViewIdResourceName();
        }

        @Override
        public CharSequence hint() {
            CharSequence hint = node.getHintText();
            return hint == null && node.isShowingHintText() ? node.getText() : hint;
        }

        @Override
        public int[] bounds() {
            Rect bounds = new Rect();
            node.getBoundsInScreen(bounds);
            return new int[] {bounds.left, bounds.top, bounds.right, bounds.bottom};
        }

        @Override
        @SuppressWarnings("deprecation")
        public int flags() {
            return (node.isCheckable() ? CHECKABLE : 0)
                    | (node.isChecked() ? CHECKED : 0)
                    | (node.isClickable() ? CLICKABLE : 0)
                    | (node.isLongClickable() ? LONG_CLICKABLE : 0)
                    | (node.isEnabled() ? ENABLED : 0)
                    | (node.isFocusable() ? FOCUSABLE : 0)
                    | (node.isFocused() ? FOCUSED : 0)
                    | (node.isScrollable() ? SCROLLABLE : 0)
                    | (node.isEditable() ? EDITABLE : 0)
                    | (node.isPassword() ? PASSWORD : 0)
                    | (node.isSelected() ? SELECTED : 0)
                    | (node.isVisibleToUser() ? VISIBLE : 0);
        }

        @Override
        public int[] selection() {
            int start = node.getTextSelectionStart();
            int end = node.getTextSelectionEnd();
            return node.isEditable() && start >= 0 && end >= 0 ? new int[] {Math.min(start, end), Math.max(start, end)} : null;
        }

        @Override
        public double[] range() {
            AccessibilityNodeInfo.RangeInfo range = node.getRangeInfo();
            return range == null ? null : new double[] {range.getMin(), range.getMax(), range.getCurrent()};
        }

        @Override
        public int childCount() {
            return node.getChildCount();
        }

        @Override
        public Element child(int index) {
            AccessibilityNodeInfo child = node.getChild(index);
            return child == null ? null : new NodeElement(child);
        }

        @Override
        public boolean refresh() {
            return node.refresh();
        }

        @Override
        public boolean focus() {
            return node.performAction(AccessibilityNodeInfo.ACTION_FOCUS);
        }

        @Override
        public boolean setText(String text) {
            Bundle arguments = new Bundle();
            arguments.putCharSequence(AccessibilityNodeInfo.ACTION_ARGUMENT_SET_TEXT_CHARSEQUENCE, text);
            return node.performAction(AccessibilityNodeInfo.ACTION_SET_TEXT, arguments);
        }

        @Override
        public boolean select(int start, int end) {
            Bundle arguments = new Bundle();
            arguments.putInt(AccessibilityNodeInfo.ACTION_ARGUMENT_SELECTION_START_INT, start);
            arguments.putInt(AccessibilityNodeInfo.ACTION_ARGUMENT_SELECTION_END_INT, end);
            return node.performAction(AccessibilityNodeInfo.ACTION_SET_SELECTION, arguments);
        }
    }
}
