package sinew.agent;

import android.app.ActivityManager;
import android.content.ClipData;
import android.content.ClipboardManager;
import android.hardware.display.DisplayManagerGlobal;
import android.os.Build;
import android.os.Bundle;
import android.os.Handler;
import android.os.IPowerManager;
import android.os.Parcelable;
import android.os.ServiceManager;
import android.view.Display;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;

/** The real phone. Each part of Android that it uses has a class: input, screen, providers, packages. */
final class AndroidPhone implements Phone {
    private final AndroidScreen screen = new AndroidScreen();
    private final AndroidInput input = new AndroidInput();
    /** Created on the main thread: the system's context needs its looper. */
    private final ShellContext context = ShellContext.create();
    private ClipboardManager clipboard;

    @Override
    public int api() {
        return Build.VERSION.SDK_INT;
    }

    @Override
    public String release() {
        return Build.VERSION.RELEASE;
    }

    @Override
    public List<String> capabilities() {
        List<String> all = new ArrayList<String>(Arrays.asList(Methods.PING, Methods.PROVIDER_CALL, "package_meta"));
        offer(all, "accessibility", "tree", "set_text", "select", Methods.PICTURE);
        offer(all, "input", "touch", "key");
        offer(all, "clipboard", "clipboard_get", "clipboard_set");
        return all;
    }

    private static void offer(List<String> all, String service, String... methods) {
        if (ServiceManager.getService(service) != null) {
            all.addAll(Arrays.asList(methods));
        }
    }

    @Override
    public List<Element> roots() throws Exception {
        return screen.roots();
    }

    @Override
    public byte[] picture(int maxSide, int quality) throws Exception {
        return screen.picture(maxSide, quality);
    }

    @Override
    public Element focused() throws Exception {
        return screen.focused();
    }

    @Override
    public int rotation() {
        Display display = DisplayManagerGlobal.getInstance().getRealDisplay(Display.DEFAULT_DISPLAY);
        return display == null ? 0 : display.getRotation();
    }

    @Override
    public boolean awake() throws Exception {
        return IPowerManager.Stub.asInterface(ServiceManager.getService("power")).isInteractive();
    }

    @Override
    public void play(List<Gestures.Event> events) throws Exception {
        input.play(events);
    }

    @Override
    public void key(int code, int meta) throws Exception {
        input.key(code, meta);
    }

    @Override
    public String clipboard() throws Exception {
        ClipData clip = clipboardManager().getPrimaryClip();
        if (clip == null || clip.getItemCount() == 0) {
            return null;
        }
        CharSequence text = clip.getItemAt(0).getText();
        return text == null ? null : text.toString();
    }

    @Override
    public void setClipboard(String text) throws Exception {
        clipboardManager().setPrimaryClip(ClipData.newPlainText(null, text));
    }

    private ClipboardManager clipboardManager() throws Exception {
        if (clipboard == null) {
            clipboard = new ClipboardManager(context, (Handler) null);
        }
        return clipboard;
    }

    @Override
    public Bag call(String authority, String method, String arg, Bag extras, int user) throws Exception {
        Bundle answer = AndroidProviders.call(authority, method, arg, extras == null ? null : (Bundle) extras.raw(), user);
        return answer == null ? null : new BundleBag(answer);
    }

    @Override
    public List<Component> components(String name, int user) throws Exception {
        return AndroidPackages.components(name, user);
    }

    @Override
    public int user() {
        return ActivityManager.getCurrentUser();
    }

    @Override
    public void close() {
        screen.close();
    }

    @Override
    public Bag create() {
        return new BundleBag(new Bundle());
    }

    @Override
    public Bag wrap(Object value) {
        return value instanceof Bundle ? new BundleBag((Bundle) value) : null;
    }

    @Override
    public Object array(List<Bag> bags) {
        Parcelable[] array = new Parcelable[bags.size()];
        for (int i = 0; i < array.length; i++) {
            array[i] = bags.get(i) == null ? null : (Bundle) bags.get(i).raw();
        }
        return array;
    }

    @Override
    public List<Bag> items(Object value) {
        if (!(value instanceof Parcelable[])) {
            return null;
        }
        List<Bag> bags = new ArrayList<Bag>();
        for (Parcelable item : (Parcelable[]) value) {
            if (item != null && !(item instanceof Bundle)) {
                return null;
            }
            bags.add(wrap(item));
        }
        return bags;
    }

    /** Android's own bundle. */
    static final class BundleBag implements Bag {
        private final Bundle bundle;

        BundleBag(Bundle bundle) {
            this.bundle = bundle;
        }

        @Override
        public Collection<String> keys() {
            return bundle.keySet();
        }

        @Override
        @SuppressWarnings("deprecation")
        public Object get(String key) {
            return bundle.get(key);
        }

        @Override
        public Object raw() {
            return bundle;
        }

        /** The bundle keeps the object; its type matters only when it is sent. */
        @Override
        public void put(String key, Object value) {
            if (value instanceof Parcelable) {
                bundle.putParcelable(key, (Parcelable) value);
            } else if (value instanceof Parcelable[]) {
                bundle.putParcelableArray(key, (Parcelable[]) value);
            } else {
                bundle.putSerializable(key, (Serializable) value);
            }
        }
    }
}
