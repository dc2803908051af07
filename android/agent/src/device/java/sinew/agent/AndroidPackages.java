package sinew.agent;

import android.content.pm.ActivityInfo;
import android.content.pm.ComponentInfo;
import android.content.pm.IPackageManager;
import android.content.pm.PackageInfo;
import android.content.pm.PackageManager;
import android.content.pm.ProviderInfo;
import android.content.pm.ServiceInfo;
import android.os.ServiceManager;

import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;

/** The components of a package, one kind at a time: all at once may be too large for binder. */
final class AndroidPackages {
    private AndroidPackages() {
    }

    static List<Phone.Component> components(String name, int user) throws Exception {
        List<Phone.Component> all = new ArrayList<Phone.Component>();
        add(all, "activity", info(name, PackageManager.GET_ACTIVITIES, user).activities);
        add(all, "service", info(name, PackageManager.GET_SERVICES, user).services);
        add(all, "receiver", info(name, PackageManager.GET_RECEIVERS, user).receivers);
        add(all, "provider", info(name, PackageManager.GET_PROVIDERS, user).providers);
        return all;
    }

    private static PackageInfo info(String name, int kind, int user) throws Exception {
        IPackageManager packages = IPackageManager.Stub.asInterface(ServiceManager.getService("package"));
        long flags = kind | PackageManager.GET_META_DATA | PackageManager.MATCH_DISABLED_COMPONENTS;
        Method get = Signatures.longest(IPackageManager.class, "getPackageInfo");
        Object[] arguments = Signatures.packageInfo(Signatures.types(get), name, flags, user);
        PackageInfo info = (PackageInfo) AndroidProviders.invoke(get, packages, arguments);
        if (info == null) {
            throw new Fault(Fault.NOT_FOUND, "user " + user + " has no package '" + name + "'");
        }
        return info;
    }

    private static void add(List<Phone.Component> all, String kind, ComponentInfo[] infos) {
        if (infos == null) {
            return;
        }
        for (ComponentInfo info : infos) {
            Phone.Component component = new Phone.Component();
            component.kind = kind;
            component.name = info.name;
            component.exported = info.exported;
            component.enabled = info.enabled;
            component.meta = info.metaData == null ? null : new AndroidPhone.BundleBag(info.metaData);
            if (info instanceof ActivityInfo) {
                component.permission = ((ActivityInfo) info).permission;
            } else if (info instanceof ServiceInfo) {
                component.permission = ((ServiceInfo) info).permission;
            } else if (info instanceof ProviderInfo) {
                component.permission = ((ProviderInfo) info).readPermission;
                component.authority = ((ProviderInfo) info).authority;
            }
            all.add(component);
        }
    }
}
