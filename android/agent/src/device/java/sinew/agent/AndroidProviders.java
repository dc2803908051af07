package sinew.agent;

import android.app.ActivityManager;
import android.app.ContentProviderHolder;
import android.app.IActivityManager;
import android.content.IContentProvider;
import android.os.Binder;
import android.os.Build;
import android.os.Bundle;
import android.os.DeadObjectException;
import android.os.IBinder;
import android.os.TransactionTooLargeException;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;

/**
 * Content providers, called as the shell command `content` does. ContentResolver is not used: it
 * turns a provider that died into a null answer.
 */
final class AndroidProviders {
    private AndroidProviders() {
    }

    @SuppressWarnings("deprecation")
    static Bundle call(String authority, String method, String arg, Bundle extras, int user) throws Exception {
        IActivityManager manager = ActivityManager.getService();
        IBinder token = new Binder();
        Method get = Signatures.longest(IActivityManager.class, "getContentProviderExternal");
        ContentProviderHolder holder =
                (ContentProviderHolder) invoke(get, manager, Signatures.external(Signatures.types(get), authority, user, token));
        if (holder == null || holder.provider == null) {
            throw new Fault(Fault.NOT_FOUND, "no app offers the content provider '" + authority + "' to user " + user);
        }
        try {
            Method call = Signatures.longest(IContentProvider.class, "call");
            Object source = Build.VERSION.SDK_INT >= 31 ? ShellContext.attribution() : null;
            Object[] arguments =
                    Signatures.call(Signatures.types(call), source, ShellContext.PACKAGE, authority, method, arg, extras);
            return (Bundle) invoke(call, holder.provider, arguments);
        } catch (DeadObjectException e) {
            throw new Fault(Fault.CRASHED, "the app of '" + authority + "' died during " + method);
        } catch (TransactionTooLargeException e) {
            throw new Fault(Fault.TOO_LARGE, "a call carries about 1 MB each way; this one is larger");
        } catch (RuntimeException e) {
            if (e instanceof SecurityException) {
                throw e;
            }
            throw new Fault(Fault.FAILED, "'" + authority + "' threw " + e.getClass().getName() + ": " + e.getMessage());
        } finally {
            manager.removeContentProviderExternal(authority, token);
        }
    }

    static Object invoke(Method method, Object target, Object[] arguments) throws Exception {
        try {
            return method.invoke(target, arguments);
        } catch (InvocationTargetException e) {
            if (e.getCause() instanceof Exception) {
                throw (Exception) e.getCause();
            }
            throw e;
        }
    }
}
