//! A gadget as the gateway sees it, and what its tools do.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use sinew_fetch::header::CONTENT_TYPE;
use sinew_fetch::{AllowedHosts, FetchError, HeaderMap, HeaderValue, HttpClient, HttpUrl};
use sinew_tool::text::clip;
use sinew_tool::{
    Admission, Args, BoxFuture, Call, Device, DeviceInfo, DeviceKey, Effect, ErrorKind, Family, FamilyName, Outcome,
    Reach, Status, TextTrust, Tool, ToolError, Toolset, Value, json,
};
use tokio::sync::{Semaphore, mpsc, oneshot};

use crate::answer;
use crate::answer_topics::AnswerTopics;
use crate::broker::Publication;
use crate::settings::{ThingAction, ThingPlan, ThingTool};
use crate::template::{TextPlace, TextTemplate};

pub(crate) struct ThingDevice {
    info: Arc<DeviceInfo>,
    tools: Arc<Toolset>,
    actions: Vec<(ThingTool, Option<HttpClient>)>,
    broker: Option<mpsc::Sender<Publication>>,
    /// A gadget does one thing at a time, and its answers do not say which call they belong to.
    turn: Semaphore,
    pub(crate) answer_topics: AnswerTopics,
}

const WHEN_AWAY: &str = "see that it is switched on and its broker runs; it is connected again by itself";

const FAMILY: Family = Family::new(FamilyName::of("thing"), TextTrust::Attributed, Reach::SeveralGateways);
/// The answer of a gadget over HTTP.
const MAX_ANSWER_BYTES: usize = 1 << 20;

/// What is known of a gadget before it is reached.
pub(crate) fn info(plan: &ThingPlan) -> DeviceInfo {
    let address = match &plan.broker {
        Some(broker) => broker.to_string(),
        None => plan.tools.iter().find_map(ThingTool::host).unwrap_or_default(),
    };
    DeviceInfo {
        key: DeviceKey(format!("thing:{}", plan.config.name)),
        suggested_id: plan.config.name.clone(),
        family: FAMILY,
        admission: Admission::Configured,
        name: plan.config.name.clone(),
        version: String::new(),
        status: Status::Ready,
        instructions: plan.config.instructions.clone(),
        labels: plan.config.labels.clone(),
        attributes: [("address", address), ("when_away", WHEN_AWAY.to_owned())]
            .into_iter()
            .map(|(key, value)| (key.to_owned(), json!(value)))
            .collect(),
    }
}

impl ThingDevice {
    pub(crate) fn new(plan: &ThingPlan, broker: Option<mpsc::Sender<Publication>>) -> Result<ThingDevice, String> {
        let with_client = |tool: &ThingTool| Ok::<_, String>((tool.clone(), tool.client()?));
        Ok(ThingDevice {
            info: Arc::new(info(plan)),
            tools: Arc::new(Toolset::new(plan.tools.iter().map(|tool| tool.tool.clone()))),
            actions: plan.tools.iter().map(with_client).collect::<Result<_, _>>()?,
            broker,
            turn: Semaphore::new(1),
            answer_topics: AnswerTopics::default(),
        })
    }

    async fn act(&self, call: Call) -> Result<Outcome, ToolError> {
        let found = self.actions.iter().find(|(known, _)| known.tool.name == call.tool);
        let (tool, client) = found.ok_or_else(|| {
            ToolError::new(ErrorKind::ActionFailed, format!("{} has no tool `{}`", self.info.suggested_id, call.tool))
        })?;
        let _turn = self.turn.acquire().await.map_err(|_| self.away("it was removed"))?;
        let args = with_defaults(call.args, &tool.tool);
        if let ThingAction::Mqtt { answer: Some(answer), .. } = &tool.action {
            self.answer_topics.quiet(&answer.fill(&args, TextPlace::Topic)?).await;
        }
        let acting = async {
            match (&tool.action, client) {
                (ThingAction::Mqtt { .. }, _) => self.publish(tool, &args).await,
                (ThingAction::Http { .. }, Some(client)) => self.request(tool, client, &args).await,
                (ThingAction::Http { .. }, None) => Err(self.away("its address cannot be used")),
            }
        };
        let answered = tokio::time::timeout(tool.timeout, acting).await;
        answered.unwrap_or_else(|_| Err(self.late(&tool.tool.name, tool.timeout)))
    }

    async fn publish(&self, tool: &ThingTool, args: &Args) -> Result<Outcome, ToolError> {
        let ThingAction::Mqtt { topic, payload, answer } = &tool.action else { return Err(self.away("no MQTT")) };
        let (reply, answered) = oneshot::channel();
        let fill = |template: &TextTemplate| template.fill(args, TextPlace::Topic);
        let publication = Publication {
            topic: fill(topic)?,
            payload: payload.fill(args)?.into_bytes(),
            answer: answer.as_ref().map(fill).transpose()?,
            reply,
        };
        let broker = self.broker.as_ref().ok_or_else(|| self.away("it has no broker"))?;
        let mut open = publication.answer.clone().map(|topic| OpenAnswer { device: self, topic: Some(topic) });
        broker.send(publication).await.map_err(|_| self.away("its broker cannot be reached"))?;
        let answered = answered.await;
        if let Some(open) = &mut open {
            open.topic = None;
        }
        match answered {
            Ok(Ok(Some(bytes))) => {
                answer::read(&bytes, tool.pick.as_deref()).map_err(|error| self.named(&tool.tool, error))
            }
            Ok(Ok(None)) => Ok(Outcome::text("sent; the gadget does not confirm it")),
            Ok(Err(why)) => Err(self.away(&why)),
            Err(_) => {
                let message = format!(
                    "{}: the connection to its broker was lost; look before trying again",
                    self.info.suggested_id
                );
                Err(ToolError::new(ErrorKind::DeviceLost, message))
            }
        }
    }

    async fn request(&self, tool: &ThingTool, client: &HttpClient, args: &Args) -> Result<Outcome, ToolError> {
        let ThingAction::Http { method, url, headers, body } = &tool.action else { return Err(self.away("no HTTP")) };
        let id = &self.info.suggested_id;
        let url = HttpUrl::parse(&url.fill(args, TextPlace::Url)?)
            .map_err(|why| ToolError::new(ErrorKind::InvalidArguments, format!("{id}: {why}")))?;
        let mut all = HeaderMap::new();
        let mut sent = Bytes::new();
        if let Some(body) = body {
            sent = body.fill(args)?.into();
            all.insert(CONTENT_TYPE, HeaderValue::from_static(body.content_type()));
        }
        for (name, value) in headers {
            let value = HeaderValue::from_str(&value.fill(args, TextPlace::Header)?);
            let value = value.map_err(|_| self.refused(&format!("the header `{name}` is not plain text")))?;
            all.insert(name.clone(), value);
        }
        // Many gadgets act on GET, and a relay that is toggled twice is where it was.
        let repeatable = tool.tool.effect == Some(Effect::Read);
        let answer = client.send(method.clone(), Some(url.path()), all, sent, repeatable).await;
        let answer = answer.map_err(|error| self.unanswered(error))?;
        let status = answer.status;
        let bytes = answer.whole(MAX_ANSWER_BYTES).await.map_err(|error| self.unanswered(error))?;
        if !status.is_success() {
            let message = format!("{id} answers {status}: {}", clip(String::from_utf8_lossy(&bytes).trim()));
            return Err(ToolError::new(ErrorKind::ActionFailed, message));
        }
        answer::read(&bytes, tool.pick.as_deref()).map_err(|error| self.named(&tool.tool, error))
    }

    fn named(&self, tool: &Tool, error: ToolError) -> ToolError {
        ToolError { message: format!("{}, `{}`: {}", self.info.suggested_id, tool.name, error.message), ..error }
    }

    fn refused(&self, why: &str) -> ToolError {
        ToolError::new(ErrorKind::InvalidArguments, format!("{}: {why}", self.info.suggested_id))
    }

    fn away(&self, why: &str) -> ToolError {
        ToolError::new(ErrorKind::DeviceAway, format!("{}: {why}; nothing was sent", self.info.suggested_id))
    }

    fn late(&self, tool: &str, time: Duration) -> ToolError {
        let id = &self.info.suggested_id;
        let seconds = time.as_secs_f32();
        let message = format!(
            "{id} gave no answer to `{tool}` within {seconds} s; it may still have acted, look before trying again"
        );
        ToolError::new(ErrorKind::Timeout, message)
    }

    fn unanswered(&self, error: FetchError) -> ToolError {
        let kind = match error {
            FetchError::Unreachable(_) => ErrorKind::DeviceAway,
            FetchError::Lost(_) => ErrorKind::DeviceLost,
            FetchError::TooLarge(_) => ErrorKind::TooLarge,
            FetchError::Compressed(_) => ErrorKind::BadAnswer,
        };
        ToolError::new(kind, format!("{}: {error}", self.info.suggested_id))
    }
}

/// An answer that is waited for. Where the call gives up, it may still come.
struct OpenAnswer<'a> {
    device: &'a ThingDevice,
    topic: Option<String>,
}

impl Drop for OpenAnswer<'_> {
    fn drop(&mut self) {
        if let Some(topic) = &self.topic {
            self.device.answer_topics.note_given_up(topic);
        }
    }
}

impl ThingTool {
    /// The client of the machine that the address names before its first argument.
    fn client(&self) -> Result<Option<HttpClient>, String> {
        let ThingAction::Http { url, .. } = &self.action else { return Ok(None) };
        let url = HttpUrl::parse(url.fixed_start())?;
        HttpClient::new(url, HeaderMap::new(), AllowedHosts::Any).map(Some)
    }

    fn host(&self) -> Option<String> {
        match &self.action {
            ThingAction::Http { url, .. } => HttpUrl::parse(url.fixed_start()).ok().map(|url| url.host().to_owned()),
            ThingAction::Mqtt { .. } => None,
        }
    }
}

/// Arguments that were not given have the default of their schema.
fn with_defaults(mut args: Args, tool: &Tool) -> Args {
    for (name, property) in tool.properties().into_iter().flatten() {
        if let Some(default) = property.get("default").filter(|_| args.get(name).is_none_or(Value::is_null)) {
            args.insert(name.clone(), default.clone());
        }
    }
    args
}

impl Device for ThingDevice {
    fn info(&self) -> Arc<DeviceInfo> {
        self.info.clone()
    }

    fn tools(&self) -> Arc<Toolset> {
        self.tools.clone()
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, ToolError>> {
        Box::pin(self.act(call))
    }
}
