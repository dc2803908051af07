package sinew.agent;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertTrue;

import org.junit.AfterClass;
import org.junit.BeforeClass;
import org.junit.Test;
import org.objectweb.asm.ClassReader;
import org.objectweb.asm.ClassVisitor;
import org.objectweb.asm.FieldVisitor;
import org.objectweb.asm.Handle;
import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Opcodes;
import org.objectweb.asm.Type;

import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.zip.ZipEntry;
import java.util.zip.ZipFile;

/**
 * Every class, method and field of Android that the compiled agent and companion name must be in
 * every Android they are meant for. The system property android.jars lists those; without it the
 * one on the class path is checked. Class files are read and not loaded: Android's need no JVM.
 */
public class LinkTest {
    /** What is used only behind a check of the API level, and the level it came with. */
    private static final Map<String, Integer> GUARDED = new HashMap<String, Integer>();

    static {
        GUARDED.put("android/content/AttributionSource", 31);
        GUARDED.put("android/content/AttributionSource$Builder", 31);
    }

    private static final List<Android> ANDROIDS = new ArrayList<Android>();
    private static final Set<String> USED = new TreeSet<String>();

    @BeforeClass
    public static void open() throws IOException {
        String jars = System.getProperty("android.jars");
        String all = jars == null || jars.isEmpty() || jars.startsWith("$") ? System.getProperty("java.class.path") : jars;
        for (String jar : all.split(File.pathSeparator)) {
            if (new File(jar).getName().startsWith("android-all-")) {
                ANDROIDS.add(new Android(new File(jar)));
            }
        }
        File classes = new File(Agent.class.getProtectionDomain().getCodeSource().getLocation().getPath());
        for (String folder : new String[] {"sinew/agent", "sinew/companion"}) {
            for (File file : new File(classes, folder).listFiles()) {
                new ClassReader(Files.readAllBytes(file.toPath())).accept(new Uses(), ClassReader.SKIP_DEBUG);
            }
        }
    }

    @AfterClass
    public static void close() throws IOException {
        for (Android android : ANDROIDS) {
            android.jar.close();
        }
    }

    @Test
    public void everythingNamedIsInEveryAndroid() throws IOException {
        assertFalse("no android-all jar to check", ANDROIDS.isEmpty());
        assertTrue("the agent names " + USED.size(), USED.size() > 100);
        Set<String> missing = new TreeSet<String>();
        for (Android android : ANDROIDS) {
            System.out.println("android " + android.name + " (API " + android.api() + "): " + USED.size() + " names");
            for (String use : USED) {
                String[] parts = use.split(" ");
                Integer since = GUARDED.get(parts[0]);
                boolean expected = since == null || android.api() >= since;
                if (expected && !android.has(parts[0], parts.length > 1 ? parts[1] : null)) {
                    missing.add(android.name + ": " + use);
                }
            }
        }
        assertEquals(new TreeSet<String>(), missing);
    }

    @Test
    public void theMethodsThatChangedAreKnownInEveryForm() throws Exception {
        for (Android android : ANDROIDS) {
            String[] call = android.longest("android/content/IContentProvider", "call");
            Object[] arguments = Signatures.call(call, "source", "caller", "authority", "method", "arg", "extras");
            assertEquals(android.name, call.length, arguments.length);
            List<Object> last = Arrays.asList(arguments).subList(arguments.length - 3, arguments.length);
            assertEquals(android.name, Arrays.<Object>asList("method", "arg", "extras"), last);
            assertEquals(android.name, android.api() >= 31 ? "source" : "caller", arguments[0]);

            String[] external = android.longest("android/app/IActivityManager", "getContentProviderExternal");
            assertEquals(android.name, external.length, Signatures.external(external, "authority", 0, "token").length);

            String[] info = android.longest("android/content/pm/IPackageManager", "getPackageInfo");
            Object flags = Signatures.packageInfo(info, "name", 1L, 0)[1];
            assertEquals(android.name, android.api() >= 33 ? (Object) 1L : (Object) 1, flags);
        }
    }

    @Test
    public void anUnknownFormIsSaidToBeUnsupported() {
        try {
            Signatures.call(new String[] {"int"}, null, null, null, null, null, null);
        } catch (Fault fault) {
            assertEquals(Fault.UNSUPPORTED, fault.type);
        }
    }

    @Test
    public void theContextSpeaksForTheShellWhereverAndroidAsks() throws IOException {
        for (Android android : ANDROIDS) {
            String context = "android/content/Context";
            assertTrue(android.name, android.has(context, "getOpPackageName()Ljava/lang/String;"));
            assertTrue(android.name, android.has(context, "getUserId()I"));
            assertEquals(android.name, android.api() >= 30, android.has(context, "getAttributionTag()Ljava/lang/String;"));
            assertEquals(android.name, android.api() >= 31,
                    android.has(context, "getAttributionSource()Landroid/content/AttributionSource;"));
            assertEquals(android.name, android.api() >= 34, android.has(context, "getDeviceId()I"));
            // Made through reflection, because it is not public.
            assertTrue(android.name, android.has("android/app/ActivityThread", "<init>()V"));
        }
    }

    /** Collects "owner", "owner name(descriptor)" and "owner name:descriptor" of all that is Android's. */
    private static final class Uses extends ClassVisitor {
        Uses() {
            super(Opcodes.ASM9);
        }

        @Override
        public void visit(int version, int access, String name, String signature, String parent, String[] interfaces) {
            assertEquals(name + " must be Java 8", Opcodes.V1_8, version);
            add(parent, null);
        }

        @Override
        public MethodVisitor visitMethod(int access, String name, String descriptor, String signature, String[] thrown) {
            return new MethodVisitor(Opcodes.ASM9) {
                @Override
                public void visitMethodInsn(int code, String owner, String name, String descriptor, boolean isInterface) {
                    add(owner, name + descriptor);
                }

                @Override
                public void visitFieldInsn(int code, String owner, String name, String descriptor) {
                    add(owner, name + ":" + descriptor);
                }

                @Override
                public void visitTypeInsn(int code, String type) {
                    add(Type.getObjectType(type).getSort() == Type.ARRAY
                            ? Type.getObjectType(type).getElementType().getInternalName() : type, null);
                }

                @Override
                public void visitInvokeDynamicInsn(String name, String descriptor, Handle bootstrap, Object... arguments) {
                    throw new AssertionError("a lambda, which the dexer does not translate: " + name);
                }
            };
        }

        private static void add(String owner, String member) {
            if (owner.startsWith("android/") || owner.startsWith("com/android/")) {
                USED.add(member == null ? owner : owner + " " + member);
            }
        }
    }

    /** One Android's classes. */
    private static final class Android {
        final String name;
        final ZipFile jar;
        private final Map<String, Members> seen = new HashMap<String, Members>();

        Android(File file) throws IOException {
            name = file.getName();
            jar = new ZipFile(file);
        }

        int api() {
            String release = name.substring("android-all-".length(), name.indexOf("-robolectric"));
            List<String> known = Arrays.asList("9", "10", "11", "12", "12.1", "13", "14", "15", "16", "17");
            assertTrue(release, known.contains(release));
            return 28 + known.indexOf(release);
        }

        boolean has(String type, String member) throws IOException {
            Members members = members(type);
            if (members == null) {
                return false;
            }
            if (member == null || members.names.contains(member)) {
                return true;
            }
            if (member.startsWith("<init>")) {
                return false;
            }
            for (String parent : members.parents) {
                if (parent.startsWith("java/") ? inJava(parent, member) : has(parent, member)) {
                    return true;
                }
            }
            return false;
        }

        private static boolean inJava(String type, String member) {
            try {
                for (java.lang.reflect.Method method : Class.forName(type.replace('/', '.')).getMethods()) {
                    if (member.equals(method.getName() + Type.getMethodDescriptor(method))) {
                        return true;
                    }
                }
            } catch (ClassNotFoundException e) {
                return false;
            }
            return false;
        }

        String[] longest(String type, String method) throws IOException {
            Type[] found = new Type[0];
            for (String member : members(type).names) {
                if (member.startsWith(method + "(")) {
                    Type[] types = Type.getArgumentTypes(member.substring(method.length()));
                    found = types.length > found.length ? types : found;
                }
            }
            String[] names = new String[found.length];
            for (int i = 0; i < names.length; i++) {
                names[i] = found[i].getClassName();
            }
            return names;
        }

        private Members members(String type) throws IOException {
            if (!seen.containsKey(type)) {
                ZipEntry entry = jar.getEntry(type + ".class");
                Members members = null;
                if (entry != null) {
                    members = new Members();
                    try (InputStream in = jar.getInputStream(entry)) {
                        new ClassReader(in).accept(members, ClassReader.SKIP_CODE | ClassReader.SKIP_DEBUG);
                    }
                }
                seen.put(type, members);
            }
            return seen.get(type);
        }
    }

    private static final class Members extends ClassVisitor {
        final Set<String> names = new TreeSet<String>();
        final List<String> parents = new ArrayList<String>();

        Members() {
            super(Opcodes.ASM9);
        }

        @Override
        public void visit(int version, int access, String name, String signature, String parent, String[] interfaces) {
            parents.add(parent);
            parents.addAll(Arrays.asList(interfaces));
        }

        @Override
        public MethodVisitor visitMethod(int access, String name, String descriptor, String signature, String[] thrown) {
            names.add(name + descriptor);
            return null;
        }

        @Override
        public FieldVisitor visitField(int access, String name, String descriptor, String signature, Object value) {
            names.add(name + ":" + descriptor);
            return null;
        }
    }
}
