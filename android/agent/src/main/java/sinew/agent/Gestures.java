package sinew.agent;

import java.util.ArrayList;
import java.util.List;
import java.util.SortedSet;
import java.util.TreeSet;

/**
 * Turns strokes, each the path of one finger, into Android's touch events: each event has all
 * fingers that are down, in steps of 10 ms.
 */
final class Gestures {
    static final int DOWN = 0;
    static final int UP = 1;
    static final int MOVE = 2;
    static final int CANCEL = 3;
    static final int POINTER_DOWN = 5;
    static final int POINTER_UP = 6;

    /** 10: more than any touch screen reports, and Android's own limit is 16. */
    static final int MAX_FINGERS = 10;
    static final int MAX_STROKES = 64;
    static final int MAX_POINTS = 4096;
    /** One minute: longer than any human gesture. */
    static final long MAX_MS = 60_000;

    private static final long STEP_MS = 10;
    private static final double MAX_COORDINATE = 100_000;

    private Gestures() {
    }

    /** One touch event; the arrays are parallel. */
    static final class Event {
        final long at;
        /** Time at which the first finger of this touch went down. */
        final long down;
        final int action;
        /** The index of the finger that the action concerns. */
        final int index;
        final int[] ids;
        final float[] x;
        final float[] y;

        Event(long at, long down, int action, int index, List<Finger> fingers) {
            this.at = at;
            this.down = down;
            this.action = action;
            this.index = index;
            ids = new int[fingers.size()];
            x = new float[ids.length];
            y = new float[ids.length];
            for (int i = 0; i < ids.length; i++) {
                ids[i] = fingers.get(i).id;
                x[i] = fingers.get(i).x;
                y[i] = fingers.get(i).y;
            }
        }
    }

    /** A stroke, and the finger that follows it. */
    private static final class Finger {
        float[] xs;
        float[] ys;
        long[] times;
        int id;
        float x;
        float y;
        boolean done;

        long start() {
            return times[0];
        }

        long end() {
            return times[times.length - 1];
        }

        /** Moves the finger to its position at a time; returns whether it moved. */
        boolean goTo(long time) {
            int next = 0;
            while (next < times.length - 1 && times[next] < time) {
                next++;
            }
            float toX = xs[next];
            float toY = ys[next];
            if (next > 0 && times[next] > time) {
                double part = (time - times[next - 1]) / (double) (times[next] - times[next - 1]);
                toX = (float) (xs[next - 1] + (toX - xs[next - 1]) * part);
                toY = (float) (ys[next - 1] + (toY - ys[next - 1]) * part);
            }
            boolean moved = x != toX || y != toY;
            x = toX;
            y = toY;
            return moved;
        }
    }

    /** The strokes are arrays of points [x, y, milliseconds since the gesture began]. */
    static List<Event> plan(List<?> strokes) throws Fault {
        if (strokes.isEmpty() || strokes.size() > MAX_STROKES) {
            throw Fault.invalid("'strokes' must hold 1 to " + MAX_STROKES + " strokes");
        }
        List<Finger> all = new ArrayList<Finger>();
        SortedSet<Long> times = new TreeSet<Long>();
        for (Object stroke : strokes) {
            Finger finger = read(stroke);
            all.add(finger);
            for (long time : finger.times) {
                times.add(time);
            }
            for (long time = finger.start() + STEP_MS; time < finger.end(); time += STEP_MS) {
                times.add(time);
            }
        }
        List<Event> events = new ArrayList<Event>();
        List<Finger> touching = new ArrayList<Finger>();
        long down = 0;
        for (long time : times) {
            boolean moved = false;
            for (Finger finger : touching) {
                moved |= finger.goTo(time);
            }
            if (moved) {
                events.add(new Event(time, down, MOVE, 0, touching));
            }
            lift(touching, time, down, events);
            for (Finger finger : all) {
                if (finger.start() == time && !finger.done) {
                    down = touching.isEmpty() ? time : down;
                    press(finger, touching, time, down, events);
                }
            }
            lift(touching, time, down, events);
        }
        return events;
    }

    private static void press(Finger finger, List<Finger> touching, long time, long down, List<Event> events)
            throws Fault {
        if (touching.size() == MAX_FINGERS) {
            throw Fault.invalid("a gesture may have " + MAX_FINGERS + " fingers down at a time; this one has more");
        }
        // Android expects the fingers of an event in the order of their ids.
        int id = 0;
        while (id < touching.size() && touching.get(id).id == id) {
            id++;
        }
        finger.id = id;
        finger.x = finger.xs[0];
        finger.y = finger.ys[0];
        touching.add(id, finger);
        events.add(new Event(time, down, touching.size() == 1 ? DOWN : POINTER_DOWN, id, touching));
    }

    private static void lift(List<Finger> touching, long time, long down, List<Event> events) {
        for (int i = 0; i < touching.size(); ) {
            Finger finger = touching.get(i);
            if (finger.end() > time) {
                i++;
                continue;
            }
            events.add(new Event(time, down, touching.size() == 1 ? UP : POINTER_UP, i, touching));
            finger.done = true;
            touching.remove(i);
        }
    }

    private static Finger read(Object stroke) throws Fault {
        if (!(stroke instanceof List) || ((List<?>) stroke).isEmpty() || ((List<?>) stroke).size() > MAX_POINTS) {
            throw Fault.invalid("a stroke must be an array of 1 to " + MAX_POINTS + " points");
        }
        List<?> points = (List<?>) stroke;
        Finger finger = new Finger();
        finger.xs = new float[points.size()];
        finger.ys = new float[points.size()];
        finger.times = new long[points.size()];
        long before = 0;
        for (int i = 0; i < points.size(); i++) {
            Object point = points.get(i);
            if (!(point instanceof List) || ((List<?>) point).size() != 3) {
                throw Fault.invalid("a point must be [x, y, milliseconds]");
            }
            finger.xs[i] = coordinate(((List<?>) point).get(0));
            finger.ys[i] = coordinate(((List<?>) point).get(1));
            Object time = ((List<?>) point).get(2);
            if (!(time instanceof Long) || (Long) time < before || (Long) time > MAX_MS) {
                throw Fault.invalid("the times of a stroke must be whole, rise and end by " + MAX_MS + " ms");
            }
            before = (Long) time;
            finger.times[i] = before;
        }
        return finger;
    }

    private static float coordinate(Object value) throws Fault {
        if (!(value instanceof Number) || Math.abs(((Number) value).doubleValue()) > MAX_COORDINATE) {
            throw Fault.invalid("a coordinate must be a number of pixels");
        }
        return ((Number) value).floatValue();
    }
}
