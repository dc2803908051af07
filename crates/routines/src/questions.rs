//! What devices ask in the middle of a run. The run waits at that step; whoever waits for the run is asked.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use sinew_tool::{Answer, BoxFuture, Caller, ErrorKind, LogLevel, PendingApproval, Question, ToolError, Value};
use tokio::sync::oneshot;

use crate::runs::Run;

type Answers = BTreeMap<String, Answer>;
type Reply = oneshot::Sender<Result<Answers, ToolError>>;

/// Questions that a run waits with.
#[derive(Debug)]
pub(crate) struct RunQuestions {
    pub(crate) asked: BTreeMap<String, Question>,
    /// `None` once they were answered.
    reply: Mutex<Option<Reply>>,
}

impl RunQuestions {
    pub(crate) fn is_open(&self) -> bool {
        self.reply.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// The first answer counts.
    pub(crate) fn answer(&self, answer: Result<Answers, ToolError>) {
        if let Some(reply) = self.reply.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // A step that was given up meanwhile needs no answer.
            let _ = reply.send(answer);
        }
    }
}

/// The caller of a run's steps.
pub(crate) struct RunCaller {
    run: Arc<Run>,
    /// Whoever began the run.
    first: Arc<dyn Caller>,
    /// Counts what was asked.
    asked: tokio::sync::Mutex<u32>,
}

impl RunCaller {
    pub(crate) fn new(run: Arc<Run>, first: Arc<dyn Caller>) -> RunCaller {
        RunCaller { run, first, asked: tokio::sync::Mutex::default() }
    }
}

impl Caller for RunCaller {
    fn progress(&self, _: f64, _: Option<f64>, _: Option<&str>) {}

    fn is_patient(&self) -> bool {
        self.first.is_patient()
    }

    fn log(&self, level: LogLevel, data: Value) {
        self.first.log(level, data);
    }

    fn waits_for_approval(&self, pending: &PendingApproval) {
        self.first.waits_for_approval(pending);
    }

    fn ask(&self, questions: BTreeMap<String, Question>) -> BoxFuture<'_, Result<Answers, ToolError>> {
        Box::pin(async move {
            let mut number = self.asked.lock().await;
            *number += 1;
            // Whoever repeats a call sends all answers again, by their keys. An answer is good for one question of one
            // run, never for the next step, another device or the same question of a later run.
            let prefix = format!("{}.{number}.", self.run.id);
            let asked = questions.into_iter().map(|(key, question)| (format!("{prefix}{key}"), question)).collect();
            let (reply, answers) = oneshot::channel();
            let before = self.run.ask(RunQuestions { asked, reply: Mutex::new(Some(reply)) });
            let answers = answers.await.unwrap_or_else(|_| {
                Err(ToolError::new(ErrorKind::Cancelled, "nobody can answer the question of this step any more"))
            });
            self.run.set(before);
            let own_key = |key: String| key.strip_prefix(&prefix).map(str::to_owned);
            Ok(answers?.into_iter().filter_map(|(key, answer)| Some((own_key(key)?, answer))).collect())
        })
    }
}
