package sinew.agent;

import java.lang.reflect.Method;
import java.util.Arrays;

/**
 * The hidden methods of Android whose parameters changed between versions, chosen by their types.
 * Everything else hidden that the agent uses has been the same since Android 9.
 */
final class Signatures {
    private static final String TEXT = "java.lang.String";
    private static final String BUNDLE = "android.os.Bundle";
    private static final String SOURCE = "android.content.AttributionSource";

    private Signatures() {
    }

    /** The method of that name with the most parameters; shorter ones exist for old callers. */
    static Method longest(Class<?> type, String name) throws NoSuchMethodException {
        Method found = null;
        for (Method method : type.getMethods()) {
            boolean longer = found == null || method.getParameterTypes().length > found.getParameterTypes().length;
            if (method.getName().equals(name) && longer) {
                found = method;
            }
        }
        if (found == null) {
            throw new NoSuchMethodException(type.getName() + "." + name);
        }
        return found;
    }

    /** IContentProvider.call: Android 9; 10 with the authority; 11 with a tag; since 12 with a source. */
    static Object[] call(String[] types, Object source, String caller, String authority, String method, String arg,
            Object extras) throws Fault {
        String shape = shape(types);
        if (shape.equals(shape(SOURCE, TEXT, TEXT, TEXT, BUNDLE))) {
            return new Object[] {source, authority, method, arg, extras};
        }
        if (shape.equals(shape(TEXT, TEXT, TEXT, TEXT, TEXT, BUNDLE))) {
            return new Object[] {caller, null, authority, method, arg, extras};
        }
        if (shape.equals(shape(TEXT, TEXT, TEXT, TEXT, BUNDLE))) {
            return new Object[] {caller, authority, method, arg, extras};
        }
        if (shape.equals(shape(TEXT, TEXT, TEXT, BUNDLE))) {
            return new Object[] {caller, method, arg, extras};
        }
        throw unknown("IContentProvider.call", types);
    }

    /** IActivityManager.getContentProviderExternal: Android 9; since 10 with a tag. */
    static Object[] external(String[] types, String authority, int user, Object token) throws Fault {
        String shape = shape(types);
        if (shape.equals(shape(TEXT, "int", "android.os.IBinder", TEXT))) {
            return new Object[] {authority, user, token, Agent.NAME};
        }
        if (shape.equals(shape(TEXT, "int", "android.os.IBinder"))) {
            return new Object[] {authority, user, token};
        }
        throw unknown("IActivityManager.getContentProviderExternal", types);
    }

    /** IPackageManager.getPackageInfo(name, flags, user): the flags are a long since Android 13. */
    static Object[] packageInfo(String[] types, String name, long flags, int user) throws Fault {
        String shape = shape(types);
        if (shape.equals(shape(TEXT, "long", "int"))) {
            return new Object[] {name, flags, user};
        }
        if (shape.equals(shape(TEXT, "int", "int"))) {
            return new Object[] {name, (int) flags, user};
        }
        throw unknown("IPackageManager.getPackageInfo", types);
    }

    /** The names of a method's parameter types. */
    static String[] types(Method method) {
        String[] names = new String[method.getParameterTypes().length];
        for (int i = 0; i < names.length; i++) {
            names[i] = method.getParameterTypes()[i].getName();
        }
        return names;
    }

    private static String shape(String... types) {
        return Arrays.toString(types);
    }

    private static Fault unknown(String method, String[] types) {
        return new Fault(Fault.UNSUPPORTED, "this Android has another " + method + shape(types)
                + " than the agent knows; a newer agent may know it");
    }
}
