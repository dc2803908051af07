package sinew.agent;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;
import static org.junit.Assert.fail;

import org.junit.Test;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;

public class GesturesTest {
    @Test
    public void aTapIsDownAndUpAtOnePlace() throws Fault {
        assertEquals("0 DOWN 0:5.0,6.0 | 50 UP 0:5.0,6.0", show("[[[5,6,0],[5,6,50]]]"));
        assertEquals("0 DOWN 0:5.0,6.0 | 0 UP 0:5.0,6.0", show("[[[5,6,0]]]"));
    }

    @Test
    public void aSwipeMovesAtEvenPaceAndEndsWhereItShould() throws Fault {
        assertEquals("0 DOWN 0:0.0,0.0 | 10 MOVE 0:40.0,4.0 | 20 MOVE 0:80.0,8.0 | 25 MOVE 0:100.0,10.0 | 25 UP 0:100.0,10.0",
                show("[[[0,0,0],[100,10,25]]]"));
    }

    @Test
    public void aDoubleTapIsTwoTouchesOfOneFinger() throws Fault {
        List<Gestures.Event> events = plan("[[[5,6,0],[5,6,40]],[[5,6,120],[5,6,160]]]");
        assertEquals("0 DOWN 0:5.0,6.0 | 40 UP 0:5.0,6.0 | 120 DOWN 0:5.0,6.0 | 160 UP 0:5.0,6.0", show(events));
        assertEquals(120, events.get(2).down);
        assertEquals(120, events.get(3).down);
    }

    @Test
    public void aPinchHasTwoFingersInEachMove() throws Fault {
        assertEquals("0 DOWN 0:0.0,0.0 | 0 POINTER_DOWN[1] 0:0.0,0.0 1:100.0,0.0 | 10 MOVE 0:20.0,0.0 1:80.0,0.0 "
                + "| 20 MOVE 0:40.0,0.0 1:60.0,0.0 | 20 POINTER_UP[0] 0:40.0,0.0 1:60.0,0.0 | 20 UP 1:60.0,0.0",
                show("[[[0,0,0],[40,0,20]],[[100,0,0],[60,0,20]]]"));
    }

    @Test
    public void aFingerThatComesLaterTakesTheFreeId() throws Fault {
        assertEquals("0 DOWN 0:1.0,1.0 | 0 POINTER_DOWN[1] 0:1.0,1.0 1:2.0,2.0 | 5 POINTER_UP[0] 0:1.0,1.0 1:2.0,2.0 "
                + "| 5 POINTER_DOWN[0] 0:3.0,3.0 1:2.0,2.0 | 9 POINTER_UP[0] 0:3.0,3.0 1:2.0,2.0 | 9 UP 1:2.0,2.0",
                show("[[[1,1,0],[1,1,5]],[[2,2,0],[2,2,9]],[[3,3,5],[3,3,9]]]"));
    }

    @Test
    public void everyPlanIsOneThatAndroidTakes() throws Fault {
        Random random = new Random(4);
        for (int i = 0; i < 3000; i++) {
            List<Object> strokes = new ArrayList<Object>();
            for (int n = 1 + random.nextInt(8); n > 0; n--) {
                List<Object> stroke = new ArrayList<Object>();
                long time = random.nextInt(100);
                for (int m = 1 + random.nextInt(4); m > 0; m--) {
                    stroke.add(Arrays.<Object>asList((long) random.nextInt(1000), random.nextDouble() * 1000, time));
                    time += random.nextInt(3) == 0 ? 0 : random.nextInt(60);
                }
                strokes.add(stroke);
            }
            consistent(Gestures.plan(strokes));
        }
    }

    @Test
    public void whatNoHandDoesIsRefused() {
        StringBuilder eleven = new StringBuilder("[[[1,1,0],[1,1,10]]");
        for (int i = 0; i < 10; i++) {
            eleven.append(",[[1,1,0],[1,1,10]]");
        }
        String[] bad = {"[]", "[[]]", "[[1]]", "[[[1,2]]]", "[[[1,2,3,4]]]", "[[[1,2,-1]]]", "[[[1,2,0.5]]]", "[[[\"1\",2,0]]]",
            "[[[1,2,5],[1,2,4]]]", "[[[1,2,60001]]]", "[[[1e9,2,0]]]", "[[[null,2,0]]]", "[\"a\"]", eleven + "]"};
        for (String strokes : bad) {
            try {
                plan(strokes);
                fail(strokes);
            } catch (Fault fault) {
                assertEquals(strokes, Fault.INVALID, fault.type);
            }
        }
    }

    /** Replays the events as Android's dispatcher checks them. */
    private static void consistent(List<Gestures.Event> events) {
        List<Integer> touching = new ArrayList<Integer>();
        long before = 0;
        long down = -1;
        for (Gestures.Event event : events) {
            assertTrue(event.at >= before);
            before = event.at;
            List<Integer> ids = new ArrayList<Integer>();
            for (int id : event.ids) {
                assertTrue(ids.isEmpty() || id > ids.get(ids.size() - 1));
                ids.add(id);
            }
            switch (event.action) {
                case Gestures.DOWN:
                    assertTrue(touching.isEmpty());
                    down = event.at;
                    touching = ids;
                    break;
                case Gestures.POINTER_DOWN:
                    List<Integer> others = new ArrayList<Integer>(ids);
                    others.remove(event.index);
                    assertEquals(touching, others);
                    assertTrue(touching.size() > 0);
                    touching = ids;
                    break;
                case Gestures.MOVE:
                    assertEquals(touching, ids);
                    break;
                default:
                    assertEquals(touching, ids);
                    assertEquals(event.action == Gestures.UP, ids.size() == 1);
                    touching = new ArrayList<Integer>(ids);
                    touching.remove(event.index);
            }
            assertEquals(down, event.down);
        }
        assertTrue(touching.isEmpty());
    }

    private static List<Gestures.Event> plan(String strokes) throws Fault {
        return Gestures.plan((List<?>) Json.parse(strokes));
    }

    private static String show(String strokes) throws Fault {
        List<Gestures.Event> events = plan(strokes);
        consistent(events);
        return show(events);
    }

    private static String show(List<Gestures.Event> events) {
        String[] names = {"DOWN", "UP", "MOVE", "CANCEL", "", "POINTER_DOWN", "POINTER_UP"};
        List<String> all = new ArrayList<String>();
        for (Gestures.Event event : events) {
            StringBuilder out = new StringBuilder().append(event.at).append(' ').append(names[event.action]);
            if (event.action >= Gestures.POINTER_DOWN) {
                out.append('[').append(event.index).append(']');
            }
            for (int i = 0; i < event.ids.length; i++) {
                out.append(' ').append(event.ids[i]).append(':').append(event.x[i]).append(',').append(event.y[i]);
            }
            all.add(out.toString());
        }
        return String.join(" | ", all);
    }
}
