package androidx.test.runner.intent;

public final class IntentMonitorRegistry {
    private IntentMonitorRegistry() {
    }

    public static void registerInstance(IntentMonitor monitor) {
    }
}
