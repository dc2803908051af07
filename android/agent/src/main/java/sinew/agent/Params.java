package sinew.agent;

import java.util.List;
import java.util.Map;

/** A request's parameters, read by name and type; errors name the parameter. */
final class Params {
    private final Map<?, ?> members;

    Params(Map<?, ?> members) {
        this.members = members;
    }

    /** The raw value, or null. */
    Object value(String name) {
        return members.get(name);
    }

    boolean has(String name) {
        return members.get(name) != null;
    }

    String text(String name) throws Fault {
        return (String) want(name, String.class, "a string");
    }

    String optionalText(String name) throws Fault {
        return has(name) ? text(name) : null;
    }

    List<?> list(String name) throws Fault {
        return (List<?>) want(name, List.class, "an array");
    }

    Map<?, ?> map(String name) throws Fault {
        return (Map<?, ?>) want(name, Map.class, "an object");
    }

    long number(String name, long least, long most) throws Fault {
        long number = (Long) want(name, Long.class, "a whole number");
        if (number < least || number > most) {
            throw Fault.invalid("'" + name + "' must be from " + least + " to " + most + "; it is " + number);
        }
        return number;
    }

    long number(String name, long least, long most, long otherwise) throws Fault {
        return has(name) ? number(name, least, most) : otherwise;
    }

    private Object want(String name, Class<?> type, String what) throws Fault {
        Object value = members.get(name);
        if (!type.isInstance(value)) {
            throw Fault.invalid("'" + name + "' must be " + what);
        }
        return value;
    }
}
