//! Gestures at coordinates: tap, press, swipe, scroll, pinch, free paths.

use std::time::Duration;

use serde_json::Value;
use sinew_tool::{Args, Outcome, ToolError};

use super::Operator;
use super::args::{duration, invalid, number, number_of, word};
use super::element::Target;
use crate::phone::{PhoneError, Screen};
use crate::touch::{Point, Stroke};
use crate::tree::Rect;

/// How long a tap's finger is down.
pub(super) const TAP: Duration = Duration::from_millis(50);

/// From the first finger's lifting to the second tap: long enough to be two, short enough to be one.
const GAP: Duration = Duration::from_millis(100);

/// As many fingers as Android accepts in one gesture.
const MAX_FINGERS: usize = 10;
const MAX_POINTS: usize = 1_000;

fn coordinate(args: &Args, name: &str) -> Result<f32, ToolError> {
    let value = number(args, name)?;
    not_negative(value, &format!("Parameter '{name}'"))
}

fn not_negative(value: f32, what: &str) -> Result<f32, ToolError> {
    match value < 0.0 {
        true => Err(invalid(what, format!("{what} must be >= 0, got: {value:?}"))),
        false => Ok(value),
    }
}

async fn point(on: &Operator<'_>, args: &Args, x: &str, y: &str) -> Result<(f32, f32), ToolError> {
    let at = (coordinate(args, x)?, coordinate(args, y)?);
    on.on_screen(&[(&format!("Parameter '{x}'"), at.0, &format!("Parameter '{y}'"), at.1)]).await?;
    Ok(at)
}

fn shown((x, y): (f32, f32)) -> String {
    format!("({}, {})", x as i64, y as i64)
}

pub(super) async fn tap(on: &Operator<'_>, args: &Args) -> Result<Outcome, ToolError> {
    let (x, y) = point(on, args, "x", "y").await?;
    on.phone.touch(&[Stroke::hold(x, y, Duration::ZERO, TAP)]).await?;
    Ok(Outcome::text(format!("Tap executed at {}", shown((x, y)))))
}

pub(super) async fn long_press(on: &Operator<'_>, args: &Args) -> Result<Outcome, ToolError> {
    let milliseconds = duration(args, 1000)?;
    let (x, y) = point(on, args, "x", "y").await?;
    on.phone.touch(&[Stroke::hold(x, y, Duration::ZERO, Duration::from_millis(milliseconds))]).await?;
    Ok(Outcome::text(format!("Long press executed at {} for {milliseconds}ms", shown((x, y)))))
}

pub(super) async fn double_tap(on: &Operator<'_>, args: &Args) -> Result<Outcome, ToolError> {
    let (x, y) = point(on, args, "x", "y").await?;
    on.phone.touch(&[Stroke::hold(x, y, Duration::ZERO, TAP), Stroke::hold(x, y, TAP + GAP, TAP)]).await?;
    Ok(Outcome::text(format!("Double tap executed at {}", shown((x, y)))))
}

pub(super) async fn swipe(on: &Operator<'_>, args: &Args) -> Result<Outcome, ToolError> {
    let milliseconds = duration(args, 300)?;
    let (from, to) = (point(on, args, "x1", "y1").await?, point(on, args, "x2", "y2").await?);
    on.phone.touch(&[Stroke::line(from, to, Duration::ZERO, Duration::from_millis(milliseconds))]).await?;
    Ok(Outcome::text(format!("Swipe executed from {} to {} over {milliseconds}ms", shown(from), shown(to))))
}

pub(super) async fn scroll(on: &Operator<'_>, args: &Args) -> Result<Outcome, ToolError> {
    let direction = word(args, "direction", &["up", "down", "left", "right"])?;
    let direction = direction.ok_or_else(|| invalid("direction", "Missing required parameter: 'direction'"))?;
    let amount = word(args, "amount", &["small", "medium", "large"])?.unwrap_or("medium");
    let share = match amount {
        "small" => 0.25,
        "medium" => 0.5,
        _ => 0.75,
    };
    let area = match Target::read(args)? {
        Some(target) => {
            let tree = on.live_tree().await?;
            let index = on.find(&tree, &target)?;
            tree.visible_bounds(index)
        }
        None => {
            let Screen { width, height, .. } = on.screen_now().await?;
            Rect::new(0, 0, width as i32, height as i32)
        }
    };
    on.phone.touch(&[scroll_stroke(area, direction, share)?]).await?;
    Ok(Outcome::text(format!("Scroll {direction} ({amount}) executed")))
}

/// A swipe along the middle of an area that brings into view what lies in that direction: the finger
/// goes the other way. It begins well inside, because bars stand at the edges and whatever the finger
/// touches first is what scrolls.
pub(super) fn scroll_stroke(area: Rect, direction: &str, share: f32) -> Result<Stroke, PhoneError> {
    if area.is_empty() {
        return Err(PhoneError::Failed("there is no area on the screen to scroll in".to_owned()));
    }
    let (x, y) = area.center();
    let (x, y) = (x as f32, y as f32);
    let (width, height) = ((area.right - area.left) as f32, (area.bottom - area.top) as f32);
    // Which way the finger goes, in whole areas.
    let (right, down) = match direction {
        "up" => (0.0, height),
        "down" => (0.0, -height),
        "left" => (width, 0.0),
        _ => (-width, 0.0),
    };
    let begin = -(share / 2.0).min(0.28);
    let at = |way: f32| (x + right * way, y + down * way);
    Ok(Stroke::line(at(begin), at(begin + share), Duration::ZERO, Duration::from_millis(300)))
}

pub(super) async fn pinch(on: &Operator<'_>, args: &Args) -> Result<Outcome, ToolError> {
    let scale = number(args, "scale")?;
    if scale <= 0.0 {
        return Err(invalid("scale", format!("Parameter 'scale' must be > 0, got: {scale:?}")));
    }
    let milliseconds = duration(args, 300)?;
    let center = point(on, args, "center_x", "center_y").await?;
    let (inner, outer) = spread(center.0, on.screen().await?.width as f32, scale);
    let (from, to) = if scale > 1.0 { (inner, outer) } else { (outer, inner) };
    let finger = |side: f32| {
        let at = |distance: f32| (center.0 + side * distance, center.1);
        Stroke::line(at(from), at(to), Duration::ZERO, Duration::from_millis(milliseconds))
    };
    on.phone.touch(&[finger(-1.0), finger(1.0)]).await?;
    let way = if scale > 1.0 { "zoom in" } else { "zoom out" };
    let at = shown(center);
    Ok(Outcome::text(format!("Pinch ({way}) executed at {at} with scale {scale:?} over {milliseconds}ms")))
}

/// The fingers' least and greatest distance from the centre: 100 pixels and its multiple, or less
/// where the screen's edge is nearer, in the ratio of the scale.
fn spread(x: f32, width: f32, scale: f32) -> (f32, f32) {
    let ratio = scale.max(1.0 / scale);
    let room = x.min(width - 1.0 - x).max(1.0);
    let outer = (100.0 * ratio).min(room);
    (outer / ratio, outer)
}

pub(super) async fn custom(on: &Operator<'_>, args: &Args) -> Result<Outcome, ToolError> {
    let strokes = paths(args)?;
    let points: usize = strokes.iter().map(|stroke| stroke.points.len()).sum();
    for (finger, stroke) in strokes.iter().enumerate() {
        for (nth, point) in stroke.points.iter().enumerate() {
            let name = |axis: &str| format!("path[{finger}][{nth}].{axis}");
            on.on_screen(&[(&name("x"), point.x, &name("y"), point.y)]).await?;
        }
    }
    on.phone.touch(&strokes).await?;
    Ok(Outcome::text(format!("Custom gesture executed with {} path(s), total {points} point(s)", strokes.len())))
}

fn paths(args: &Args) -> Result<Vec<Stroke>, ToolError> {
    let paths = args.get("paths").filter(|paths| !paths.is_null());
    let paths = paths.ok_or_else(|| invalid("paths", "Missing required parameter: 'paths'"))?;
    let paths = paths.as_array().ok_or_else(|| invalid("paths", "Parameter 'paths' must be an array"))?;
    if paths.is_empty() {
        return Err(invalid("paths", "Parameter 'paths' must not be empty"));
    }
    if paths.len() > MAX_FINGERS {
        return Err(invalid(
            "paths",
            format!("Parameter 'paths' must have at most {MAX_FINGERS} paths, has {}", paths.len()),
        ));
    }
    paths.iter().enumerate().map(|(finger, path)| stroke(finger, path)).collect()
}

fn stroke(finger: usize, path: &Value) -> Result<Stroke, ToolError> {
    let path = path
        .as_array()
        .ok_or_else(|| invalid("paths", format!("Path at index {finger} must be an array of points")))?;
    if path.len() < 2 {
        return Err(invalid(
            "paths",
            format!("Path at index {finger} must have at least 2 points, has {}", path.len()),
        ));
    }
    if path.len() > MAX_POINTS {
        return Err(invalid(
            "paths",
            format!("Path at index {finger} must have at most {MAX_POINTS} points, has {}", path.len()),
        ));
    }
    let mut points = Vec::with_capacity(path.len());
    let mut before: Option<u64> = None;
    for (nth, point) in path.iter().enumerate() {
        let place = format!("path[{finger}][{nth}]");
        let member = |name: &str| -> Result<f32, ToolError> {
            let value = point.get(name).filter(|value| !value.is_null());
            let value = value.ok_or_else(|| invalid("paths", format!("Missing '{name}' in point at {place}")))?;
            not_negative(number_of(value, &format!("{place}.{name}"))?, &format!("{place}.{name}"))
        };
        let (x, y, time) = (member("x")?, member("y")?, member("time")?);
        if time.fract() != 0.0 || time > 60_000.0 {
            return Err(invalid(
                "paths",
                format!("{place}.time must be a whole number of milliseconds up to 60000, got: {time:?}"),
            ));
        }
        let time = time as u64;
        if let Some(before) = before.filter(|before| time <= *before) {
            return Err(invalid(
                "paths",
                format!(
                    "Times must be monotonically increasing within each path. {place}.time ({time}) <= previous time ({before})"
                ),
            ));
        }
        before = Some(time);
        points.push(Point { x, y, at: Duration::from_millis(time) });
    }
    Ok(Stroke { points })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scrolling_up_moves_the_finger_down() {
        let area = Rect::new(0, 0, 1000, 2000);
        let ends = |direction: &str| {
            let points = scroll_stroke(area, direction, 0.5).unwrap().points;
            ((points[0].x, points[0].y), (points[1].x, points[1].y))
        };
        assert_eq!(ends("up"), ((500.0, 500.0), (500.0, 1500.0)));
        assert_eq!(ends("down"), ((500.0, 1500.0), (500.0, 500.0)));
        assert_eq!(ends("left"), ((250.0, 1000.0), (750.0, 1000.0)));
        assert_eq!(ends("right"), ((750.0, 1000.0), (250.0, 1000.0)));
        let far = scroll_stroke(area, "up", 0.75).unwrap().points;
        assert_eq!((far[0].y.round(), far[1].y.round()), (440.0, 1940.0), "below a title bar");
        assert!(scroll_stroke(Rect::default(), "up", 0.5).is_err());
    }

    #[test]
    fn fingers_keep_the_ratio_and_stay_on_the_screen() {
        assert_eq!(spread(540.0, 1080.0, 2.0), (100.0, 200.0));
        assert_eq!(spread(540.0, 1080.0, 0.5), (100.0, 200.0));
        let (inner, outer) = spread(50.0, 1080.0, 4.0);
        assert_eq!((inner, outer), (12.5, 50.0));
    }
}
