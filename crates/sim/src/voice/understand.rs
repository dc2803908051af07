//! What somebody wants who says a sentence: a tool and its arguments, by the words they share.

use sinew_tool::{Args, Value, json};

/// Words that say nothing about a tool.
const FILLER: [&str; 16] =
    ["the", "a", "an", "to", "of", "please", "is", "it", "my", "in", "and", "turn", "switch", "set", "get", "on"];

/// The tool that fits best, and arguments for it. `tools` as `tools/list` gives them.
pub(crate) fn understand(text: &str, tools: &[Value]) -> Option<(String, Args)> {
    let wanted = words(text);
    let shared = |known: &str| {
        let known = words(known);
        wanted.iter().filter(|word| !FILLER.contains(&word.as_str()) && known.contains(word)).count()
    };
    let has = |tool: &Value, kind: &str| properties(tool).any(|(_, schema)| schema["type"] == kind);
    let says_switch = wanted.iter().any(|word| matches!(word.as_str(), "on" | "off"));
    let says_number = wanted.iter().any(|word| word.parse::<i64>().is_ok());
    let score = |tool: &Value| {
        // The name says more than the description.
        let words = 3 * shared(tool["name"].as_str()?) + shared(tool["description"].as_str().unwrap_or_default());
        let fits = says_switch == has(tool, "boolean") && (!says_number || has(tool, "integer"));
        (words > 0).then_some((words, fits))
    };
    // Of equal ones the first: the board's own come before those of others.
    let scored = tools.iter().rev().filter_map(|tool| Some((score(tool)?, tool)));
    let best = scored.max_by_key(|(score, _)| *score)?.1;
    let args = properties(best).filter_map(|(name, schema)| Some((name.clone(), argument(schema, &wanted)?))).collect();
    Some((best["name"].as_str()?.to_owned(), args))
}

fn properties(tool: &Value) -> impl Iterator<Item = (&String, &Value)> {
    tool["inputSchema"]["properties"].as_object().into_iter().flatten()
}

fn argument(schema: &Value, wanted: &[String]) -> Option<Value> {
    match schema["type"].as_str()? {
        "boolean" => Some(json!(!wanted.iter().any(|word| word == "off"))),
        "integer" | "number" => {
            let spoken = wanted.iter().find_map(|word| word.parse::<i64>().ok());
            spoken.map(Value::from).or_else(|| schema.get("default").or(schema.get("minimum")).cloned())
        }
        "string" => {
            let choices = schema["enum"].as_array().into_iter().flatten();
            let chosen = choices.filter_map(Value::as_str).find(|choice| wanted.iter().any(|word| word == choice));
            Some(json!(chosen.map(str::to_owned).unwrap_or_else(|| wanted.join(" "))))
        }
        _ => None,
    }
}

fn words(text: &str) -> Vec<String> {
    let parts = text.split(|character: char| !character.is_alphanumeric()).filter(|word| !word.is_empty());
    parts.map(str::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_finds_its_tool_and_arguments() {
        let tools = [
            json!({"name": "self.get_device_status", "description": "Volume, screen and battery", "inputSchema": {}}),
            json!({"name": "self.relay.get", "description": "Which relays are on", "inputSchema": {"properties": {}}}),
            json!({"name": "self.relay.set", "description": "Switch a relay", "inputSchema": {"properties": {
                "channel": {"type": "integer", "minimum": 1, "maximum": 4}, "on": {"type": "boolean"}}}}),
            json!({"name": "self.audio_speaker.set_volume", "description": "Set the volume", "inputSchema": {"properties": {
                "volume": {"type": "integer", "minimum": 0, "maximum": 100}}}}),
            json!({"name": "other__self_audio_speaker_set_volume", "description": "Set the volume", "inputSchema": {
                "properties": {"volume": {"type": "integer"}}}}),
        ];
        let understood = |text: &str| understand(text, &tools).map(|(name, args)| (name, Value::Object(args)));
        let some = |name: &str, args: Value| Some((name.to_owned(), args));
        assert_eq!(understood("Turn on the relay!"), some("self.relay.set", json!({"channel": 1, "on": true})));
        assert_eq!(understood("turn off relay 3"), some("self.relay.set", json!({"channel": 3, "on": false})));
        assert_eq!(understood("volume 30 please"), some("self.audio_speaker.set_volume", json!({"volume": 30})));
        assert_eq!(understood("tell me a joke"), None);
    }
}
