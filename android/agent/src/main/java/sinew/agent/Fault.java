package sinew.agent;

/** Why a request failed: one word of a closed list for programs, one sentence for people. */
final class Fault extends Exception {
    /** Not a request at all: no JSON, no object, no method, a line too long. */
    static final String BAD_REQUEST = "bad_request";
    static final String UNKNOWN_METHOD = "unknown_method";
    /** A parameter is missing, of the wrong type or out of range. */
    static final String INVALID = "invalid";
    /** Android does not allow it to the shell user. */
    static final String DENIED = "denied";
    /** The display is off; nothing was done. */
    static final String ASLEEP = "asleep";
    /** The node meant is not on the screen any more. */
    static final String NO_ELEMENT = "no_element";
    /** No such provider or package. */
    static final String NOT_FOUND = "not_found";
    /** This Android cannot do it; nothing was done. */
    static final String UNSUPPORTED = "unsupported";
    /** Somebody else holds what is needed, or too much is under way. */
    static final String BUSY = "busy";
    static final String TIMEOUT = "timeout";
    /** More than a line or a binder transaction carries. */
    static final String TOO_LARGE = "too_large";
    /** The app died while it was asked. */
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

    /** What went wrong in the words of the protocol, whatever was thrown. */
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
