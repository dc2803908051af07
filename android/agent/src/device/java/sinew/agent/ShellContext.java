package sinew.agent;

import android.app.ActivityManager;
import android.app.ActivityThread;
import android.content.AttributionSource;
import android.content.Context;
import android.content.ContextWrapper;
import android.os.Process;

import java.lang.reflect.Constructor;

/**
 * A context that identifies the process as the package com.android.shell, which may read the
 * clipboard in the background. The methods without @Override came after Android 9.
 */
final class ShellContext extends ContextWrapper {
    static final String PACKAGE = "com.android.shell";

    private ShellContext(Context base) {
        super(base);
    }

    /** Services of some manufacturers need more of the context; the system's own is used if available. */
    static ShellContext create() {
        Context base = null;
        try {
            Constructor<ActivityThread> make = ActivityThread.class.getDeclaredConstructor();
            make.setAccessible(true);
            base = make.newInstance().getSystemContext();
        } catch (Throwable thrown) {
            System.err.println(Agent.NAME + ": no system context: " + thrown);
        }
        return new ShellContext(base);
    }

    static AttributionSource attribution() {
        return new AttributionSource.Builder(Process.myUid()).setPackageName(PACKAGE).build();
    }

    @Override
    public String getPackageName() {
        return PACKAGE;
    }

    @Override
    public String getOpPackageName() {
        return PACKAGE;
    }

    public String getAttributionTag() {
        return null;
    }

    public AttributionSource getAttributionSource() {
        return attribution();
    }

    public int getDeviceId() {
        return 0;
    }

    @Override
    public int getUserId() {
        return ActivityManager.getCurrentUser();
    }
}
