package sinew.agent;

import android.app.ActivityManager;
import android.app.ActivityThread;
import android.content.AttributionSource;
import android.content.Context;
import android.content.ContextWrapper;
import android.os.Process;

import java.lang.reflect.Constructor;

/**
 * A context that says what the process is: the package com.android.shell, which may read the
 * clipboard in the background. The methods without @Override came after Android 9.
 */
final class ShellContext extends ContextWrapper {
    static final String PACKAGE = "com.android.shell";

    private ShellContext(Context base) {
        super(base);
    }

    /** Some makers' services ask the context for more; the system's own answers where it can be had. */
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
