//! Touching and typing with `input`.

use std::time::Duration;

use super::{AGENT, AdbPhone, MAX_TYPED};
use crate::adb::command::ShellCommand;
use crate::adb::shell::CommandLimits;
use crate::phone::PhoneError;
use crate::touch::{Key, Stroke};
use crate::tree::UiNode;

/// Longer text is typed in pieces: fast keyboards drop what comes at once.
const PIECE: usize = 100;

/// As many pieces go in one command line.
const PIECES: usize = 20;

impl AdbPhone {
    pub(super) async fn play(&self, strokes: &[Stroke]) -> Result<(), PhoneError> {
        let command = gesture(strokes, self.about.sdk)?;
        let length = strokes.iter().map(Stroke::end).max().unwrap_or_default();
        self.input(&command, CommandLimits::seconds(15 + length.as_secs())).await
    }

    pub(super) async fn press(&self, key: Key) -> Result<(), PhoneError> {
        let command = match (key, key.code()) {
            (Key::Notifications, _) => ShellCommand::new("cmd statusbar expand-notifications"),
            (_, None) => ShellCommand::new("cmd statusbar expand-settings"),
            (_, Some(code)) => ShellCommand::new("input keyevent").arg(code),
        };
        match key {
            Key::Sleep | Key::WakeUp => self.act(&command, CommandLimits::seconds(15)).await,
            _ => self.input(&command, CommandLimits::seconds(15)).await,
        }
    }

    pub(super) async fn write(&self, text: &str) -> Result<(), PhoneError> {
        let pieces = typing(text)?;
        for group in pieces.chunks(PIECES) {
            let joined = group.iter().cloned().reduce(ShellCommand::and);
            if let Some(command) = joined {
                self.input(&command, CommandLimits::seconds(30)).await?;
            }
        }
        Ok(())
    }

    /// Focuses the field, empties it, types, and reads it back: keyboards correct what they are given.
    pub(super) async fn fill(&self, node: &UiNode, text: &str) -> Result<(), PhoneError> {
        typing(text)?;
        if !node.focused && node.bounds.is_empty() {
            let message = "the field is not visible; bring it into view with scroll_to_element";
            return Err(PhoneError::Failed(message.to_owned()));
        }
        if !node.focused {
            let (x, y) = node.bounds.center();
            self.play(&[Stroke::hold(x as f32, y as f32, Duration::ZERO, Duration::from_millis(50))]).await?;
            // The field takes the focus and the keyboard comes up; keys sent before go nowhere.
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
        self.input(&emptying(node, self.about.sdk), CommandLimits::seconds(30)).await?;
        self.write(text).await?;
        if node.password {
            return Ok(());
        }
        let Ok(tree) = self.read_tree().await else { return Ok(()) };
        let now = tree.nodes().iter().find(|other| other.editable && (other.focused || is_same(node, other)));
        let Some(now) = now else { return Ok(()) };
        let content = now.text.as_deref().unwrap_or_default();
        // An empty field may show its hint as its text.
        if content == text || text.is_empty() {
            return Ok(());
        }
        let shown: String = content.chars().take(100).collect();
        Err(PhoneError::Failed(format!(
            "the text was typed, but the field now reads '{shown}': the phone's keyboard may have changed it"
        )))
    }
}

fn is_same(a: &UiNode, b: &UiNode) -> bool {
    a.class == b.class && a.resource_id == b.resource_id && a.bounds == b.bounds
}

/// `input` for a gesture of one finger at a time.
fn gesture(strokes: &[Stroke], sdk: u32) -> Result<ShellCommand, PhoneError> {
    let mut order: Vec<&Stroke> = strokes.iter().filter(|stroke| !stroke.points.is_empty()).collect();
    order.sort_by_key(|stroke| stroke.start());
    if order.windows(2).any(|pair| pair[1].start() < pair[0].end()) {
        return Err(PhoneError::unsupported("touching with several fingers", AGENT));
    }
    let mut commands = Vec::new();
    let mut now = Duration::ZERO;
    for stroke in order {
        // Starting `input` takes longer than a short gap, so only a long one is waited for.
        let gap = stroke.start().saturating_sub(now);
        if gap > Duration::from_millis(200) {
            commands.push(pause(gap));
        }
        commands.push(one(stroke, sdk)?);
        now = stroke.end();
    }
    commands
        .into_iter()
        .reduce(ShellCommand::and)
        .ok_or_else(|| PhoneError::Invalid("the gesture has no points".to_owned()))
}

fn pause(time: Duration) -> ShellCommand {
    ShellCommand::new("sleep").arg(format!("{:.3}", time.as_secs_f32()))
}

fn one(stroke: &Stroke, sdk: u32) -> Result<ShellCommand, PhoneError> {
    let points = &stroke.points;
    let at = |value: f32| value.round() as i64;
    let milliseconds = (stroke.end() - stroke.start()).as_millis();
    let (Some(first), Some(last)) = (points.first(), points.last()) else {
        return Err(PhoneError::Invalid("the gesture has no points".to_owned()));
    };
    if stroke.is_still() && milliseconds <= 100 {
        return Ok(ShellCommand::new("input tap").arg(at(first.x)).arg(at(first.y)));
    }
    if points.len() == 2 || stroke.is_still() {
        let ends = [at(first.x), at(first.y), at(last.x), at(last.y)];
        return Ok(ShellCommand::new("input swipe").args(ends).arg(milliseconds));
    }
    // 30: Android 11 was the first to play single events.
    if sdk < 30 {
        return Err(PhoneError::unsupported("drawing a path with corners on an Android before 11", AGENT));
    }
    let event = |kind: &'static str, nth: usize| {
        ShellCommand::new("input motionevent").arg(kind).arg(at(points[nth].x)).arg(at(points[nth].y))
    };
    let mut command = event("DOWN", 0);
    for nth in 1..points.len() {
        command = command.and(pause(points[nth].at.saturating_sub(points[nth - 1].at))).and(event("MOVE", nth));
    }
    let command = command.and(event("UP", points.len() - 1));
    // A shell that is told of the end of its connection would stop, and the finger would stay down.
    Ok(command.within("trap '' HUP TERM &&", ""))
}

/// The commands that type a text, or why it cannot be typed. Decided before anything is sent.
fn typing(text: &str) -> Result<Vec<ShellCommand>, PhoneError> {
    if let Some(odd) = text.chars().find(|character| !matches!(character, ' '..='~' | '\n' | '\t')) {
        return Err(PhoneError::unsupported(
            format!("typing '{}' (U+{:04X}), which is not on a US keyboard,", odd.escape_debug(), u32::from(odd)),
            AGENT,
        ));
    }
    // All of it is ASCII by now, so bytes are characters.
    if text.len() > MAX_TYPED {
        let what = format!("typing {} characters key by key ({MAX_TYPED} is the most)", text.len());
        return Err(PhoneError::unsupported(what, AGENT));
    }
    let mut commands = Vec::new();
    let mut piece = String::new();
    let flush = |piece: &mut String, commands: &mut Vec<ShellCommand>| {
        if !piece.is_empty() {
            commands.push(ShellCommand::new("input text").arg(std::mem::take(piece)));
        }
    };
    for character in text.chars() {
        match character {
            '\n' | '\t' => {
                flush(&mut piece, &mut commands);
                commands.push(ShellCommand::new("input keyevent").arg(if character == '\n' { 66 } else { 61 }));
            }
            // `input` takes `%s` for a space, so a literal one must not come about.
            's' if piece.ends_with('%') => {
                flush(&mut piece, &mut commands);
                piece.push('s');
            }
            ' ' => piece.push_str("%s"),
            _ => piece.push(character),
        }
        if piece.len() >= PIECE {
            flush(&mut piece, &mut commands);
        }
    }
    flush(&mut piece, &mut commands);
    Ok(commands)
}

/// Selects all and deletes, or on an Android before 12 goes to the end and deletes backwards.
fn emptying(node: &UiNode, sdk: u32) -> ShellCommand {
    if sdk >= 31 {
        return ShellCommand::new("input keycombination 113 29 && input keyevent 67");
    }
    let length = node.text.as_deref().unwrap_or_default().chars().count();
    // Five more than were seen, in case the field holds more than it shows.
    let deletes = std::iter::repeat_n(67, (length + 5).min(2000));
    ShellCommand::new("input keyevent").arg(123).args(deletes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::touch::Point;

    fn line(strokes: &[Stroke], sdk: u32) -> String {
        gesture(strokes, sdk).map(|command| command.line().to_owned()).unwrap_or_else(|error| error.to_string())
    }

    fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    #[test]
    fn gestures_become_the_commands_that_a_phone_has() {
        let tap = |start| Stroke::hold(10.4, 20.6, ms(start), ms(50));
        assert_eq!(line(&[tap(0)], 28), "input tap '10' '21'");
        assert_eq!(line(&[tap(0), tap(150)], 28), "input tap '10' '21' && input tap '10' '21'");
        assert_eq!(line(&[tap(0), tap(550)], 28), "input tap '10' '21' && sleep '0.500' && input tap '10' '21'");
        assert_eq!(line(&[Stroke::hold(1.0, 2.0, ms(0), ms(800))], 28), "input swipe '1' '2' '1' '2' '800'");
        assert_eq!(
            line(&[Stroke::line((1.0, 2.0), (3.0, 4.0), ms(0), ms(300))], 28),
            "input swipe '1' '2' '3' '4' '300'"
        );
    }

    #[test]
    fn a_bent_path_is_played_event_by_event_where_android_can() {
        let point = |x: f32, at: u64| Point { x, y: 0.0, at: ms(at) };
        let path = [Stroke { points: vec![point(0.0, 0), point(5.0, 100), point(2.0, 150)] }];
        assert_eq!(
            line(&path, 34),
            "trap '' HUP TERM && input motionevent 'DOWN' '0' '0' && sleep '0.100' && input motionevent 'MOVE' '5' '0' && sleep '0.050' && input motionevent 'MOVE' '2' '0' && input motionevent 'UP' '2' '0'"
        );
        assert!(line(&path, 28).contains("agent"));
    }

    #[test]
    fn two_fingers_at_once_are_refused_with_the_remedy() {
        let finger = |x: f32| Stroke::line((x, 0.0), (x + 5.0, 0.0), ms(0), ms(300));
        assert!(matches!(gesture(&[finger(0.0), finger(50.0)], 34), Err(PhoneError::Unsupported { .. })));
    }

    #[test]
    fn text_is_typed_in_pieces_and_a_percent_sign_never_becomes_a_space() {
        let lines = |text: &str| -> Vec<String> {
            typing(text).unwrap().iter().map(|command| command.line().to_owned()).collect()
        };
        assert_eq!(lines("a b's"), ["input text 'a%sb'\\''s'"]);
        assert_eq!(lines("100%sure"), ["input text '100%'", "input text 'sure'"]);
        assert_eq!(lines("a\n\tb"), ["input text 'a'", "input keyevent '66'", "input keyevent '61'", "input text 'b'"]);
        assert_eq!(lines(&"x".repeat(250)).len(), 3);
        assert!(lines("").is_empty());
    }

    #[test]
    fn what_keys_cannot_type_in_time_is_refused_before_anything_is_typed() {
        assert!(typing(&"x".repeat(MAX_TYPED)).is_ok());
        let error = typing(&"x".repeat(MAX_TYPED + 1)).unwrap_err();
        assert!(error.to_string().contains("typing 2001 characters key by key"), "{error}");
    }

    #[test]
    fn what_a_keyboard_does_not_have_is_refused_before_anything_is_typed() {
        for text in ["naïve", "emoji 🦀", "nul\0", "مرحبا"] {
            assert!(matches!(typing(text), Err(PhoneError::Unsupported { .. })), "{text}");
        }
    }

    #[test]
    fn a_field_is_emptied_as_its_android_allows() {
        let node = UiNode { text: Some("abc".to_owned()), ..UiNode::default() };
        assert_eq!(emptying(&node, 34).line(), "input keycombination 113 29 && input keyevent 67");
        assert_eq!(emptying(&node, 28).line().matches("'67'").count(), 8);
    }
}
