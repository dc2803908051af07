//! The conformance device's tools that ask their caller something before they answer.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use sinew_tool::{Answer, Call, ErrorKind, LogLevel, Outcome, Question, Tool, ToolError};

type QuestionMap = BTreeMap<String, Question>;
type AnswerMap = BTreeMap<String, Answer>;

pub(crate) fn tools() -> Vec<Tool> {
    let plain =
        |name: &str, description: &str| Tool::new(name, description, json!({"type": "object", "properties": {}}));
    let with_text = |name: &str, description: &str, argument: &str| {
        let schema = json!({
            "type": "object",
            "properties": {argument: {"type": "string", "description": "What to ask"}},
            "required": [argument],
        });
        Tool::new(name, description, schema)
    };
    vec![
        with_text("test_sampling", "Asks the model", "prompt"),
        with_text("test_elicitation", "Asks the person for a name and an address", "message"),
        plain("test_elicitation_sep1034_defaults", "Asks with defaults of every type"),
        plain("test_elicitation_sep1330_enums", "Asks with every form of choice"),
        plain("test_missing_capability", "Needs a client that can sample"),
        plain("test_streaming_elicitation", "Reports progress, then asks the person"),
        plain("test_input_required_result_elicitation", "Asks the person for a name"),
        plain("test_input_required_result_sampling", "Asks the model for a capital"),
        plain("test_input_required_result_list_roots", "Asks the client for its folders"),
        plain("test_input_required_result_request_state", "Asks for a confirmation"),
        plain("test_input_required_result_tampered_state", "Asks for a confirmation"),
        plain("test_input_required_result_multiple_inputs", "Asks the person, the model and the client at once"),
        plain("test_input_required_result_multi_round", "Asks twice, one question after the other"),
        plain("test_input_required_result_capabilities", "Asks only what the client can answer"),
    ]
}

/// `None` where the tool is not one of these.
pub(crate) async fn answer(call: &Call) -> Option<Result<Outcome, ToolError>> {
    Some(match call.tool.as_str() {
        "test_sampling" => sample(call).await,
        "test_elicitation" => elicit(call).await,
        "test_elicitation_sep1034_defaults" => fill_form(call, defaults()).await,
        "test_elicitation_sep1330_enums" => fill_form(call, choices()).await,
        "test_missing_capability" => tell(call, one("capability", completion("Are you there?", 100))).await,
        "test_streaming_elicitation" => {
            call.caller.progress(1.0, Some(2.0), Some("about to ask"));
            call.caller.log(LogLevel::Info, json!("About to ask"));
            tell(call, one("user_name", name("What is your name?"))).await
        }
        "test_input_required_result_elicitation" => greet(call).await,
        "test_input_required_result_sampling" => {
            tell(call, one("capital_question", completion("What is the capital of France?", 100))).await
        }
        "test_input_required_result_list_roots" => tell(call, one("client_roots", Question::Roots)).await,
        "test_input_required_result_request_state" | "test_input_required_result_tampered_state" => confirm(call).await,
        "test_input_required_result_multiple_inputs" => {
            let mut questions = one("user_name", name("What is your name?"));
            questions.insert("greeting".to_owned(), completion("Generate a greeting", 50));
            questions.insert("client_roots".to_owned(), Question::Roots);
            tell(call, questions).await
        }
        "test_input_required_result_multi_round" => two_rounds(call).await,
        "test_input_required_result_capabilities" => ask_what_fits(call).await,
        _ => return None,
    })
}

async fn sample(call: &Call) -> Result<Outcome, ToolError> {
    let prompt = call.args.get("prompt").and_then(Value::as_str).unwrap_or_default();
    let answers = call.caller.ask(one("sample", completion(prompt, 100))).await?;
    Ok(Outcome::text(format!("LLM response: {}", answers["sample"]["content"]["text"].as_str().unwrap_or_default())))
}

async fn elicit(call: &Call) -> Result<Outcome, ToolError> {
    let message = call.args.get("message").and_then(Value::as_str).unwrap_or_default();
    let properties = json!({
        "username": {"type": "string", "description": "User's response"},
        "email": {"type": "string", "description": "User's email address"},
    });
    let answers = call.caller.ask(one("person", form(message, properties, &["username", "email"]))).await?;
    Ok(Outcome::text(format!("User response: {}", summary(&answers["person"]))))
}

async fn fill_form(call: &Call, question: Question) -> Result<Outcome, ToolError> {
    let answers = call.caller.ask(one("form", question)).await?;
    Ok(Outcome::text(format!("Elicitation completed: {}", summary(&answers["form"]))))
}

async fn greet(call: &Call) -> Result<Outcome, ToolError> {
    let answers = call.caller.ask(one("user_name", name("What is your name?"))).await?;
    Ok(Outcome::text(format!("Hello, {}!", answers["user_name"]["content"]["name"].as_str().unwrap_or("stranger"))))
}

async fn confirm(call: &Call) -> Result<Outcome, ToolError> {
    let question = form("Please confirm", json!({"ok": {"type": "boolean"}}), &["ok"]);
    call.caller.ask(one("confirm", question)).await?;
    Ok(Outcome::text("state-ok"))
}

async fn two_rounds(call: &Call) -> Result<Outcome, ToolError> {
    call.caller.ask(one("step1", name("Step 1: What is your name?"))).await?;
    let colour = form("Step 2: What is your favorite color?", json!({"color": {"type": "string"}}), &["color"]);
    let answers = call.caller.ask(one("step2", colour)).await?;
    Ok(Outcome::text(format!("Two rounds: {}", summary(&answers["step2"]))))
}

/// The person first; where the client cannot ask the person, the model.
async fn ask_what_fits(call: &Call) -> Result<Outcome, ToolError> {
    match call.caller.ask(one("user_name", name("What is your name?"))).await {
        Ok(answers) => Ok(listing(&answers)),
        Err(error) if error.kind == ErrorKind::Unsupported => {
            tell(call, one("greeting", completion("Generate a greeting", 50))).await
        }
        Err(error) => Err(error),
    }
}

/// Asks, and tells the answers.
async fn tell(call: &Call, questions: QuestionMap) -> Result<Outcome, ToolError> {
    call.caller.ask(questions).await.map(|answers| listing(&answers))
}

fn listing(answers: &AnswerMap) -> Outcome {
    Outcome::text(json!(answers).to_string())
}

fn summary(answer: &Answer) -> String {
    let content = answer.get("content").cloned().unwrap_or_else(|| json!({}));
    format!("action={}, content={content}", answer["action"].as_str().unwrap_or("none"))
}

fn one(key: &str, question: Question) -> QuestionMap {
    BTreeMap::from([(key.to_owned(), question)])
}

fn name(message: &str) -> Question {
    form(message, json!({"name": {"type": "string"}}), &["name"])
}

fn form(message: &str, properties: Value, required: &[&str]) -> Question {
    let schema = json!({"type": "object", "properties": properties, "required": required});
    Question::Form { message: message.to_owned(), schema }
}

fn completion(text: &str, max_tokens: u32) -> Question {
    let message = json!({"role": "user", "content": {"type": "text", "text": text}});
    Question::Completion { params: json!({"messages": [message], "maxTokens": max_tokens}) }
}

fn defaults() -> Question {
    let properties = json!({
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": true},
    });
    form("Please check these defaults", properties, &[])
}

fn choices() -> Question {
    let options = json!(["option1", "option2", "option3"]);
    let titled = json!([
        {"const": "value1", "title": "First"},
        {"const": "value2", "title": "Second"},
        {"const": "value3", "title": "Third"},
    ]);
    let properties = json!({
        "untitledSingle": {"type": "string", "enum": options},
        "titledSingle": {"type": "string", "oneOf": titled},
        "legacyEnum": {
            "type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": options}},
        "titledMulti": {"type": "array", "items": {"anyOf": titled}},
    });
    form("Please choose", properties, &[])
}
