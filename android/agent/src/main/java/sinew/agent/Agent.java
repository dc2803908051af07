package sinew.agent;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * Reads requests, one JSON object a line, and answers each with one line. Requests that use the screen
 * run one after the other, and pictures of it beside them; provider calls, which an app may never answer, run
 * in parallel.
 */
final class Agent {
    static final String NAME = "sinew-agent";
    static final String VERSION = "0.1.0";
    /** Increased with each incompatible change of the protocol. */
    static final int PROTOCOL = 1;

    /** 64: a host with more waiting requests does not read the answers. */
    private static final int MAX_WAITING = 64;
    /** 8 providers at a time; one that hangs occupies its thread until the agent ends. */
    private static final int MAX_PROVIDER_CALLS = 8;
    private static final long PROVIDER_MS = 30_000;
    private static final int MAX_MESSAGE = 2000;

    private static final ThreadFactory DAEMONS = new ThreadFactory() {
        @Override
        public Thread newThread(Runnable work) {
            Thread thread = new Thread(work, NAME);
            thread.setDaemon(true);
            return thread;
        }
    };

    private final Phone phone;
    private final Methods methods;
    private final Lines lines;
    private final ExecutorService screen =
            new ThreadPoolExecutor(1, 1, 0, TimeUnit.SECONDS, new ArrayBlockingQueue<Runnable>(MAX_WAITING), DAEMONS);
    private final ExecutorService pictures =
            new ThreadPoolExecutor(1, 1, 0, TimeUnit.SECONDS, new ArrayBlockingQueue<Runnable>(MAX_WAITING), DAEMONS);
    private final ExecutorService providers =
            new ThreadPoolExecutor(0, MAX_PROVIDER_CALLS, 10, TimeUnit.SECONDS, new SynchronousQueue<Runnable>(), DAEMONS);
    private final ScheduledExecutorService clock = Executors.newSingleThreadScheduledExecutor(DAEMONS);

    Agent(Phone phone, InputStream in, OutputStream out) {
        this.phone = phone;
        this.methods = new Methods(phone);
        this.lines = new Lines(in, out);
    }

    /** Serves until the input ends. Running requests then have two seconds before they are interrupted. */
    void run() throws IOException, Fault, InterruptedException {
        try {
            lines.write(Json.write(hello()));
            for (;;) {
                String line;
                try {
                    line = lines.read();
                } catch (Fault fault) {
                    answer(null, fault);
                    continue;
                }
                if (line == null) {
                    break;
                }
                handle(line);
            }
        } finally {
            screen.shutdown();
            pictures.shutdownNow();
            providers.shutdown();
            long until = System.nanoTime() + TimeUnit.SECONDS.toNanos(2);
            boolean done = screen.awaitTermination(until - System.nanoTime(), TimeUnit.NANOSECONDS)
                    && providers.awaitTermination(until - System.nanoTime(), TimeUnit.NANOSECONDS);
            if (!done) {
                screen.shutdownNow();
                providers.shutdownNow();
                // An interrupted gesture lifts its fingers first.
                screen.awaitTermination(500, TimeUnit.MILLISECONDS);
                providers.awaitTermination(500, TimeUnit.MILLISECONDS);
            }
            clock.shutdownNow();
            phone.close();
        }
    }

    private Map<String, Object> hello() {
        Map<String, Object> hello = new LinkedHashMap<String, Object>();
        hello.put("hello", NAME);
        hello.put("version", VERSION);
        hello.put("protocol", PROTOCOL);
        hello.put("api", phone.api());
        hello.put("release", phone.release());
        hello.put("capabilities", phone.capabilities());
        return hello;
    }

    private void handle(String line) {
        Object id = null;
        try {
            Object request = Json.parse(line);
            if (!(request instanceof Map)) {
                throw new Fault(Fault.BAD_REQUEST, "a request must be an object");
            }
            Map<?, ?> members = (Map<?, ?>) request;
            Object given = members.get("id");
            if (!(given instanceof Long) && !(given instanceof String)) {
                throw new Fault(Fault.BAD_REQUEST, "'id' must be a whole number or a string");
            }
            id = given;
            Object method = members.get("method");
            Object params = members.containsKey("params") ? members.get("params") : new LinkedHashMap<String, Object>();
            if (!(method instanceof String) || !(params instanceof Map)) {
                throw new Fault(Fault.BAD_REQUEST, "'method' must be a string and 'params' an object");
            }
            start(new Request(id, (String) method, new Params((Map<?, ?>) params)));
        } catch (RejectedExecutionException e) {
            answer(id, new Fault(Fault.BUSY, "too many requests are under way; wait for answers, or start the agent anew"));
        } catch (Throwable thrown) {
            answer(id, Fault.of(thrown));
        }
    }

    private void start(final Request request) throws Fault {
        if (request.method.equals(Methods.PING)) {
            request.run();
        } else if (request.method.equals(Methods.PROVIDER_CALL)) {
            final long budget = request.params.number("timeout_ms", 1, 600_000, PROVIDER_MS);
            providers.execute(request);
            clock.schedule(new Runnable() {
                @Override
                public void run() {
                    request.finish(null, new Fault(Fault.TIMEOUT, "the provider did not answer within " + budget
                            + " ms; what it began it may finish"));
                }
            }, budget, TimeUnit.MILLISECONDS);
        } else if (request.method.equals(Methods.PICTURE)) {
            pictures.execute(request);
        } else {
            screen.execute(request);
        }
    }

    private final class Request implements Runnable {
        final Object id;
        final String method;
        final Params params;
        private final AtomicBoolean answered = new AtomicBoolean();

        Request(Object id, String method, Params params) {
            this.id = id;
            this.method = method;
            this.params = params;
        }

        @Override
        public void run() {
            try {
                finish(methods.call(method, params), null);
            } catch (Throwable thrown) {
                finish(null, Fault.of(thrown));
            }
        }

        /** The first answer counts; an answer after the timeout is dropped. */
        void finish(Object result, Fault fault) {
            if (!answered.compareAndSet(false, true)) {
                return;
            }
            if (fault == null) {
                fault = send(id, "result", result);
            }
            if (fault != null) {
                answer(id, fault);
            }
        }
    }

    private void answer(Object id, Fault fault) {
        String said = String.valueOf(fault.getMessage());
        Map<String, Object> error = new LinkedHashMap<String, Object>();
        error.put("type", fault.type);
        error.put("message", said.length() > MAX_MESSAGE ? said.substring(0, MAX_MESSAGE) : said);
        send(id, "error", error);
    }

    /** Why the line could not be built; null if it was sent, or if nobody reads any more. */
    private Fault send(Object id, String kind, Object body) {
        Map<String, Object> answer = new LinkedHashMap<String, Object>();
        answer.put("id", id);
        answer.put(kind, body);
        try {
            lines.write(Json.write(answer));
            return null;
        } catch (IOException gone) {
            return null;
        } catch (Throwable thrown) {
            return Fault.of(thrown);
        }
    }
}
