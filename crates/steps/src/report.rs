//! What happened in a run, for programs and for people.

mod html;
mod junit;

use std::time::Duration;

use serde_json::{Value, json};
use sinew_tool::{Args, Content, Outcome, ToolError};

/// A run, step by step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunReport {
    pub steps: Vec<StepRecord>,
    pub returned: Option<Value>,
    /// Why it ended early.
    pub failure: Option<ToolError>,
    pub took: Duration,
}

/// One step that was carried out.
#[derive(Clone, Debug, PartialEq)]
pub struct StepRecord {
    /// Its place: `2.then.1`, `3[2].1`.
    pub at: String,
    pub kind: &'static str,
    /// The tool, or the kind where it is no call.
    pub what: String,
    /// Since the run began.
    pub started: Duration,
    pub took: Duration,
    pub outcome: Result<Outcome, ToolError>,
    /// The screen that it met, as text; `None` for the first.
    pub before: Option<String>,
    pub after: Option<Observation>,
}

/// What was to be seen on a device at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation {
    /// The screen as text.
    pub screen: String,
    pub picture: Option<Content>,
}

/// The text of one screen in a report.
const MAX_SCREEN: usize = 4_000;

impl Observation {
    /// The tool that looks at a screen.
    pub const TOOL: &str = "get_screen";

    /// What the tool is called with: a report has small pictures.
    pub fn arguments() -> Args {
        let wanted = json!({"max_bytes": MAX_SCREEN, "screenshot": "plain", "quality": 60, "max_side": 480});
        wanted.as_object().cloned().unwrap_or_default()
    }

    /// What the tool answered.
    pub fn of(answer: Result<Outcome, ToolError>) -> Observation {
        match answer {
            Ok(seen) => {
                let picture = seen.content.iter().find(|item| matches!(item, Content::Image { .. })).cloned();
                Observation { screen: seen.joined_text(), picture }
            }
            Err(error) => Observation { screen: format!("cannot be read: {}", error.message), picture: None },
        }
    }
}

/// A longer text of an answer is cut in a report.
const MAX_TEXT: usize = 10_000;

impl RunReport {
    pub fn failed_step(&self) -> Option<&StepRecord> {
        self.steps.last().filter(|step| step.outcome.is_err())
    }

    pub fn to_json(&self) -> Value {
        json!({
            "ok": self.failure.is_none(),
            "tookMs": self.took.as_millis() as u64,
            "failure": self.failure.as_ref().map(|error| error.message.clone()),
            "returned": self.returned,
            "steps": self.steps.iter().map(StepRecord::to_json).collect::<Vec<_>>(),
        })
    }

    /// One file without scripts or anything from elsewhere.
    pub fn to_html(&self, title: &str) -> String {
        html::page(title, &[(None, self)])
    }
}

/// A run among others.
#[derive(Clone, Debug, PartialEq)]
pub struct SuiteCase {
    /// Where it ran: a device, or nothing where its steps say so themselves.
    pub lane: String,
    pub name: String,
    pub report: RunReport,
}

/// Runs in one file without scripts or anything from elsewhere.
pub fn to_html(title: &str, cases: &[SuiteCase]) -> String {
    let heading = |case: &SuiteCase| match case.lane.is_empty() {
        true => case.name.clone(),
        false => format!("{} on {}", case.name, case.lane),
    };
    let cases: Vec<_> = cases.iter().map(|case| (Some(heading(case)), &case.report)).collect();
    html::page(title, &cases)
}

/// Runs as CI systems read them: a suite for each lane.
pub fn to_junit(cases: &[SuiteCase]) -> String {
    junit::document(cases)
}

impl StepRecord {
    /// What the step answered or why it failed.
    pub fn text(&self) -> String {
        let text = match &self.outcome {
            Ok(outcome) => outcome.joined_text(),
            Err(error) => error.message.clone(),
        };
        match text.len() > MAX_TEXT {
            true => format!("{}…", &text[..text.floor_char_boundary(MAX_TEXT)]),
            false => text,
        }
    }

    /// The same without what was answered and seen.
    pub(crate) fn without_answer(mut self) -> StepRecord {
        self.outcome = self.outcome.map(|_| Outcome::default());
        (self.before, self.after) = (None, None);
        self
    }

    fn to_json(&self) -> Value {
        let after = self.after.as_ref().map(|seen| {
            let picture = seen.picture.as_ref().map(Content::to_json);
            json!({"screen": seen.screen, "picture": picture})
        });
        json!({
            "at": self.at,
            "kind": self.kind,
            "what": self.what,
            "ok": self.outcome.is_ok(),
            "startedMs": self.started.as_millis() as u64,
            "tookMs": self.took.as_millis() as u64,
            "text": self.text(),
            "before": self.before.as_ref().map(|screen| json!({"screen": screen})),
            "after": after,
        })
    }
}

/// Text as markup shows it; what XML cannot hold is replaced.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            '\n' | '\t' => safe.push(character),
            '\u{fffe}' | '\u{ffff}' => safe.push('\u{fffd}'),
            control if control.is_control() => safe.push('\u{fffd}'),
            plain => safe.push(plain),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;
    use sinew_tool::ErrorKind;

    fn report() -> RunReport {
        let picture = Content::image(b"\xff\xd8\xff", "image/jpeg", Some((1, 1)));
        let seen =
            Observation { screen: "app x\ne1 btn \"<script>alert(1)</script>\"".to_owned(), picture: Some(picture) };
        let step = |at: &str, outcome| StepRecord {
            at: at.to_owned(),
            kind: "call",
            what: "tap".to_owned(),
            started: Duration::from_millis(5),
            took: Duration::from_millis(20),
            outcome,
            before: Some(seen.screen.clone()),
            after: Some(seen.clone()),
        };
        let error = ToolError::new(ErrorKind::ActionFailed, "it's \u{1b} <b>\"broken\"</b>");
        RunReport {
            steps: vec![step("1", Ok(Outcome::text("done"))), step("2", Err(error.clone()))],
            returned: None,
            failure: Some(error),
            took: Duration::from_millis(45),
        }
    }

    #[test]
    fn nothing_a_screen_shows_becomes_markup() {
        let page = report().to_html("A <title>");
        assert!(!page.contains("<script") && !page.contains("<b>") && page.contains("&lt;script&gt;"), "{page}");
        assert!(page.contains("data:image/jpeg;base64,/9j/") && page.contains("A &lt;title&gt;"), "{page}");
        assert!(page.contains("2 steps, failed at step 2 after 45 ms") && page.contains("2. tap failed"), "{page}");
        // What a step did not change is shown once.
        assert_eq!(
            (page.matches("<figcaption>After: the same").count(), page.matches("&lt;script&gt;").count()),
            (2, 2)
        );
        let case = SuiteCase { lane: "phones & more".to_owned(), name: "first".to_owned(), report: report() };
        let page = to_html("All", std::slice::from_ref(&case));
        assert!(page.contains("<h1>All</h1>") && page.contains("\"run-1\">first on phones &amp; more<"), "{page}");
        assert!(page.contains("1 of 1 runs failed") && page.contains("href=\"#run-1\""), "{page}");
        assert!(page.contains("<td>step 2: it&#39;s"), "{page}");
        let suite = to_junit(&[case]);
        assert!(
            suite.contains("<failure message=\"it&#39;s \u{fffd} &lt;b&gt;") && !suite.contains('\u{1b}'),
            "{suite}"
        );
        assert!(suite.contains("tests=\"1\" failures=\"1\"") && suite.contains("phones &amp; more"), "{suite}");
    }

    #[test]
    fn programs_read_every_step() {
        let json = report().to_json();
        assert_eq!((&json["ok"], &json["tookMs"]), (&json!(false), &json!(45)));
        assert_eq!(json["steps"][0]["after"]["picture"]["mimeType"], "image/jpeg");
        assert_eq!((&json["steps"][1]["at"], &json["steps"][1]["ok"]), (&json!("2"), &json!(false)));
    }
}
