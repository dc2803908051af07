//! Under which topics boards are found: one template each for presence, for what a board says, and for what it is
//! told. `{device}` stands for the board.

use std::fmt;

use sinew_tool::lenient;

/// The place of the board in a template.
const DEVICE: &str = "{device}";
/// Far beyond any sensible topic, and far below what MQTT allows.
const LONGEST: usize = 256;
/// As long as a hardware id may be at the other listeners.
const LONGEST_ID: usize = 64;

/// A topic with a place for the board's id.
#[derive(Clone, PartialEq, Eq)]
pub struct Template {
    text: String,
    /// How much of the text is before `{device}`.
    before: usize,
}

/// Where boards of a broker are found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topics {
    /// A retained message while the board is there, and its will.
    pub presence: Template,
    /// From boards to the gateway.
    pub up: Template,
    /// From the gateway to boards.
    pub down: Template,
}

impl Topics {
    /// Fails where two of them are the same.
    pub fn new(presence: &str, up: &str, down: &str) -> Result<Topics, String> {
        let topics =
            Topics { presence: Template::parse(presence)?, up: Template::parse(up)?, down: Template::parse(down)? };
        if topics.presence == topics.up || topics.up == topics.down || topics.presence == topics.down {
            return Err("the topics `presence`, `up` and `down` must differ from each other".to_owned());
        }
        Ok(topics)
    }
}

impl Template {
    pub fn parse(text: &str) -> Result<Template, String> {
        let wrong = |why: &str| Err(format!("the topic `{text}` {why}; for example `sinew/boards/{DEVICE}/up`"));
        let Some(before) = text.find(DEVICE) else { return wrong("has no `{device}`") };
        if text.split('/').filter(|level| *level == DEVICE).count() != 1 || text.matches(DEVICE).count() != 1 {
            return wrong("must have `{device}` once, as a level of its own between slashes");
        }
        if text.contains(['+', '#', '\0']) {
            return wrong("must not have `+` or `#`");
        }
        if text.len() > LONGEST {
            return wrong("is too long");
        }
        Ok(Template { text: text.to_owned(), before })
    }

    /// The filter that finds all boards.
    pub(crate) fn filter(&self) -> String {
        self.text.replace(DEVICE, "+")
    }

    /// The topic of one board.
    pub(crate) fn of(&self, device: &str) -> String {
        self.text.replace(DEVICE, device)
    }

    /// The level that stands for the board, where the topic is of this kind.
    pub(crate) fn level<'a>(&self, topic: &'a str) -> Option<&'a str> {
        let after = &self.text[self.before + DEVICE.len()..];
        let level = topic.strip_prefix(&self.text[..self.before])?.strip_suffix(after)?;
        (!level.contains('/')).then_some(level)
    }
}

impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Whether a level of a topic can be a board's id. It is taken as it is: who may speak under which topic is the
/// broker's decision, and two topics must never become one board.
pub(crate) fn is_id(level: &str) -> bool {
    (1..=LONGEST_ID).contains(&level.len()) && level.bytes().all(|byte| byte.is_ascii_graphic())
}

/// What a presence message says: `Some(true)` where the board is there.
pub(crate) fn read_presence(payload: &[u8]) -> Option<bool> {
    if payload.is_empty() {
        return Some(false);
    }
    if payload.eq_ignore_ascii_case(b"online") {
        return Some(true);
    }
    if payload.eq_ignore_ascii_case(b"offline") {
        return Some(false);
    }
    lenient::read::<sinew_tool::Value>(payload).ok()?.get("online")?.as_bool()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_topic_names_its_board_and_the_way_back() {
        let template = Template::parse("sinew/boards/{device}/up").expect("valid");
        assert_eq!(template.filter(), "sinew/boards/+/up");
        assert_eq!(template.of("aa:bb"), "sinew/boards/aa:bb/up");
        assert_eq!(template.level("sinew/boards/aa:bb/up"), Some("aa:bb"));
        for other in ["sinew/boards/aa/down", "sinew/boards/a/b/up", "sinew/boards/up", "x", ""] {
            assert_eq!(template.level(other), None, "{other}");
        }
        assert_eq!(Template::parse("{device}").expect("valid").level("x"), Some("x"));
    }

    #[test]
    fn a_template_has_the_board_once_as_a_level_of_its_own() {
        for wrong in ["", "a/b", "a/x{device}/b", "{device}/{device}", "a/{device}{device}", "+/{device}", "{device}/#"]
        {
            let problem = Template::parse(wrong).expect_err(wrong);
            assert!(problem.contains("sinew/boards/{device}/up"), "{problem}");
        }
        assert!(Topics::new("a/{device}", "a/{device}", "b/{device}").is_err());
    }

    #[test]
    fn presence_is_json_or_a_word_and_nothing_is_absence() {
        for there in [&br#"{"online":true,"name":"lamp"}"#[..], b"online", b"Online"] {
            assert_eq!(read_presence(there), Some(true));
        }
        for gone in [&br#"{"online":false}"#[..], b"", b"offline"] {
            assert_eq!(read_presence(gone), Some(false));
        }
        for neither in [&b"{}"[..], b"1", b"{\"online\":1}", b"\xff", b"[]"] {
            assert_eq!(read_presence(neither), None);
        }
    }

    proptest! {
        #[test]
        fn whatever_comes_is_read_or_left_alone(topic in ".*", payload in proptest::collection::vec(any::<u8>(), 0..64)) {
            let template = Template::parse("a/{device}/up").expect("valid");
            if let Some(level) = template.level(&topic) {
                prop_assert_eq!(template.of(level), topic);
            }
            let _ = read_presence(&payload);
        }

        #[test]
        fn an_id_is_found_again_in_every_topic_of_its_own(id in "[!-~]{1,64}", before in "[a-z/]{0,9}", after in "[a-z/]{0,9}") {
            prop_assume!(is_id(&id) && !id.contains('/'));
            let template = Template::parse(&format!("{before}/{{device}}/{after}")).expect("valid");
            let topic = template.of(&id);
            prop_assert_eq!(template.level(&topic), Some(id.as_str()));
        }
    }
}
