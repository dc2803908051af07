package sinew.agent;

/** Why a request failed: a type from a closed list for programs, and a sentence for people. */
final class Fault extends Exception {
    /** Not a valid request: not JSON, not an object, no method, or a line that is too long. */
    static final String BAD_REQUEST = "bad_request";
    static final String UNKNOWN_METHOD = "unknown_method";
    /** A parameter is missing, of the wrong type or out of range. */
    static final String INVALID = "invalid";
    /** Android does not permit it to the shell user. */
    static final String DENIED = "denied";
    /** The display is off; nothing was done. */
    static final String ASLEEP = "asleep";
    /** The node is no longer on the screen. */
    static final String NO_ELEMENT = "no_element";
    /** No such provider or package. */
    static final String NOT_FOUND = "not_found";
    /** This Android cannot do it; nothing was done. */
    static final String UNSUPPORTED = "unsupported";
    /** Another program uses what is needed, or too many requests are running. */
    static final String BUSY = "busy";
    static final String TIMEOUT = "timeout";
    /** Larger than a line or a binder transaction. */
    static final String TOO_LARGE = "too_large";
    /** The app died during the call. */
    static final String CRASHED = "crashed";
    static final String FAILED = "failed";

    private static final long serialVersionUID = 1;

    final String type;

    Fault(String type, String message) {
        super(message);
        this.type = type;
    }

    static Fault invalid(String message) {
        return new Fault(INVALID, message);
    }

    /** The fault for any exception. */
    static Fault of(Throwable thrown) {
        if (thrown instanceof Fault) {
            return (Fault) thrown;
        }
        String said = thrown.getMessage() == null ? "" : ": " + thrown.getMessage();
        if (thrown instanceof SecurityException) {
            return new Fault(DENIED, "Android refused it" + said);
        }
        if (thrown instanceof LinkageError || thrown instanceof ReflectiveOperationException) {
            return new Fault(UNSUPPORTED, "this Android lacks what is needed, " + thrown.getClass().getName() + said);
        }
        if (thrown instanceof OutOfMemoryError) {
            return new Fault(TOO_LARGE, "the phone has not enough memory for it");
        }
        if (thrown instanceof InterruptedException) {
            return new Fault(FAILED, "the agent was told to end before this was done");
        }
        return new Fault(FAILED, thrown.getClass().getName() + said);
    }
}
