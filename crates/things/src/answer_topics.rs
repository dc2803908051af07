//! What is known of the topics on which a gadget answers.
//!
//! An answer on MQTT does not say which call it belongs to, and some gadgets answer twice. Before a call is sent, its
//! topic must be quiet, so that what comes then is its own answer. A gadget that was seen to answer once is not waited for
//! again.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// A second answer comes within this time after the first.
const QUIET_TIME: Duration = Duration::from_secs(1);
/// A topic that never rests is used all the same.
const MAX_WAIT_TIME: Duration = Duration::from_secs(3);
/// Topics that are known; the one that was silent for longest is forgotten first.
const MAX_TOPICS: usize = 64;

#[derive(Default)]
pub(crate) struct AnswerTopics {
    topics: Mutex<HashMap<String, Heard>>,
}

struct Heard {
    /// The last message, or when a call gave up.
    last: Instant,
    habit: Habit,
}

/// How a gadget answers.
#[derive(Clone, Copy, PartialEq)]
enum Habit {
    Unknown,
    Once,
    Again,
}

impl AnswerTopics {
    fn with<T>(&self, act: impl FnOnce(&mut HashMap<String, Heard>) -> T) -> T {
        act(&mut self.topics.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The answer to a call came.
    pub(crate) fn note_answer(&self, topic: &str) {
        self.note(topic, |_| {});
    }

    /// A call waits no longer; its answer may still come.
    pub(crate) fn note_given_up(&self, topic: &str) {
        self.note(topic, |heard| {
            if heard.habit == Habit::Once {
                heard.habit = Habit::Unknown;
            }
        });
    }

    fn note(&self, topic: &str, change: impl FnOnce(&mut Heard)) {
        self.with(|topics| {
            if !topics.contains_key(topic) && topics.len() >= MAX_TOPICS {
                let oldest = topics.iter().min_by_key(|(_, heard)| heard.last).map(|(topic, _)| topic.clone());
                oldest.and_then(|topic| topics.remove(&topic));
            }
            let new = || Heard { last: Instant::now(), habit: Habit::Unknown };
            let heard = topics.entry(topic.to_owned()).or_insert_with(new);
            heard.last = Instant::now();
            change(heard);
        });
    }

    /// A message came that no call waited for. Soon after an answer, it is another answer.
    pub(crate) fn note_other(&self, topic: &str) {
        self.with(|topics| {
            if let Some(heard) = topics.get_mut(topic) {
                if heard.last.elapsed() < 2 * QUIET_TIME {
                    heard.habit = Habit::Again;
                }
                heard.last = Instant::now();
            }
        });
    }

    /// Waits until no earlier answer is expected on a topic.
    pub(crate) async fn quiet(&self, topic: &str) {
        let end = Instant::now() + MAX_WAIT_TIME;
        while let Some(due) = self.with(|topics| topics.get_mut(topic)?.quiet_at())
            && Instant::now() < end
        {
            sleep_until(due.min(end)).await;
        }
    }
}

impl Heard {
    /// When the topic will be quiet; `None` where it is.
    fn quiet_at(&mut self) -> Option<Instant> {
        let due = self.last + QUIET_TIME;
        if self.habit == Habit::Once {
            return None;
        }
        if due > Instant::now() {
            return Some(due);
        }
        if self.habit == Habit::Unknown {
            self.habit = Habit::Once;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn waited(topics: &AnswerTopics) -> Duration {
        let begin = Instant::now();
        topics.quiet("t").await;
        begin.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn a_gadget_that_answers_once_is_waited_for_once() {
        let topics = AnswerTopics::default();
        assert_eq!(waited(&topics).await, Duration::ZERO);
        topics.note_answer("t");
        assert!(waited(&topics).await >= QUIET_TIME);
        for _ in 0..3 {
            topics.note_answer("t");
            assert_eq!(waited(&topics).await, Duration::ZERO);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_gadget_that_answers_twice_is_waited_for_each_time() {
        let topics = std::sync::Arc::new(AnswerTopics::default());
        for _ in 0..3 {
            topics.note_answer("t");
            let again = topics.clone();
            tokio::spawn(async move {
                tokio::time::sleep(QUIET_TIME / 2).await;
                again.note_other("t");
            });
            assert!(waited(&topics).await >= QUIET_TIME * 3 / 2);
        }
        topics.note_answer("t");
        assert!(waited(&topics).await >= QUIET_TIME);
    }

    #[tokio::test(start_paused = true)]
    async fn after_a_call_that_gave_up_its_answer_is_waited_for() {
        let topics = AnswerTopics::default();
        topics.note_answer("t");
        waited(&topics).await;
        assert_eq!(waited(&topics).await, Duration::ZERO);
        topics.note_given_up("t");
        assert!(waited(&topics).await >= QUIET_TIME);
    }

    #[tokio::test(start_paused = true)]
    async fn a_topic_that_never_rests_holds_nobody_up_for_long_and_topics_are_few() {
        let topics = std::sync::Arc::new(AnswerTopics::default());
        topics.note_answer("t");
        let chatty = topics.clone();
        tokio::spawn(async move {
            loop {
                chatty.note_other("t");
                tokio::time::sleep(QUIET_TIME / 4).await;
            }
        });
        let time = waited(&topics).await;
        assert!((MAX_WAIT_TIME..MAX_WAIT_TIME + QUIET_TIME).contains(&time), "{time:?}");
        (0..1000).for_each(|number| topics.note_answer(&number.to_string()));
        assert!(topics.with(|topics| topics.len()) <= MAX_TOPICS);
    }
}
