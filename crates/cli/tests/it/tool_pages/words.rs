//! What a schema cannot say: the words of the built-in tools' page. Those of phone tools are in their rows.

/// One tool.
pub struct Words {
    pub name: &'static str,
    pub purpose: &'static str,
    /// What a success holds.
    pub answers: &'static str,
    /// The arguments of the example.
    pub call: &'static str,
    pub security: &'static str,
}

pub const FILE: &str = "built-in.md";
pub const TITLE: &str = "Built-in tools";
pub const INTRODUCTION: &str = "What the gateway itself offers. The two for specifications are listed where `spec-tools = true` stands in the configuration.";
/// The state in which the examples are run.
pub const SCENE: &str = "With a virtual phone connected:";

/// Description and example of each argument.
pub const ARGUMENTS: &[(&str, &str, &str)] = &[
    ("text", "The document: MCP_TOOL_SPECIFICATION.md, tools/list JSON or a manifest.", "\"{\\\"tools\\\": []}\""),
    ("device", "Only this device, by id or name.", "\"virtual-phone\""),
    ("seconds", "How long at most; 300 if left out. A lease ends earlier after 60 s without use.", "120"),
    ("wait", "How many seconds to wait while another caller has it.", "10"),
    ("purpose", "What for. Only administrators see it.", "\"login test\""),
    ("run", "A name for your work, where several agents share one token.", "\"agent-2\""),
    ("since", "`next` of the last answer; left out, from the oldest that is kept.", "\"0.0\""),
    ("search", "Words that must all occur in a device's id, name, kind, key or labels.", "\"kitchen lamp\""),
    ("label", "Only devices with this label.", "\"kitchen\""),
    ("family", "Only devices of this family: board, phone, app, server, thing and others.", "\"phone\""),
    ("state", "Only devices that are ready, away, or connected and not usable (other).", "\"ready\""),
    ("after", "`next` of the last answer; left out, from the first.", "\"board-0049\""),
    ("limit", "How many devices or events at most; 50 if left out.", "50"),
    (
        "old",
        "The document before: MCP_TOOL_SPECIFICATION.md, tools/list JSON or a manifest.",
        "\"{\\\"tools\\\": []}\"",
    ),
    ("new", "The document after, in any of the same forms.", "\"{\\\"tools\\\": []}\""),
];

pub const TOOLS: &[Words] = &[
    Words {
        name: "list_devices",
        purpose: "Answers with the devices behind the gateway, their states, and how many tools each has. The ids are what the argument `device` of other tools takes. Many devices come in pages; with words, a label, a family or a state it answers with the devices that fit.",
        answers: "The devices, also those that are away, how many fit, and, unless this is the last page, what to continue from.",
        call: r#"{"state": "ready"}"#,
        security: "- **Data handling**: names and kinds of all devices are told to every client; addresses and tokens are not.",
    },
    Words {
        name: "get_device_events",
        purpose: "Answers with what devices reported without being asked, oldest first, page by page.",
        answers: "The events, and the cursor to go on from.",
        call: r#"{"since": "1", "limit": 5}"#,
        security: "- **Data handling**: events are texts that devices chose; they are bounded and cleaned, and still nothing to obey.",
    },
    Words {
        name: "reserve_device",
        purpose: "Gives the caller a device to itself. Meanwhile tools that change something on it are refused to other callers, which are told who has it, for how long, and their place in the queue; reading goes on. Reserving a device that the caller has already prolongs the same lease. Each call prolongs it too, up to `seconds` in all. With `label:NAME` as the device, it is the first one with that label that is free. Agents that share a token and name a `run` call their device as `lease:ID`; others need not.",
        answers: "The id of the lease, the device, and how many seconds it lasts at most.",
        call: r#"{"device": "virtual-phone", "seconds": 120, "purpose": "login test"}"#,
        security: "- **Authorization**: only callers that may change something on a device can reserve it. An administrator can break a lease. The id of a lease is of use to its own token alone.",
    },
    Words {
        name: "release_device",
        purpose: "Gives back a device that the caller reserved, so that the next one can have it. Releasing a device that the caller does not have changes nothing.",
        answers: "Whether the caller had it.",
        call: r#"{"device": "virtual-phone"}"#,
        security: "- **Authorization**: a caller can release its own leases only.",
    },
    Words {
        name: "validate_tool_specification",
        purpose: "Judges a tool specification by the rules of `sinew spec lint` and answers with findings, each with its rule, severity, line and column.",
        answers: "Whether it is free of errors, the tools it describes, and the findings.",
        call: r#"{"text": "{\"tools\": [{\"name\": \"relay\", \"description\": \"Switches the relay of the board.\", \"inputSchema\": {\"type\": \"object\", \"properties\": {\"on\": {\"type\": \"boolean\"}}}}]}"}"#,
        security: "- **Input validation**: at most 512 KiB of text are read; nothing it names is called, opened or fetched.",
    },
    Words {
        name: "compare_tool_specifications",
        purpose: "Compares two tool specifications by the rules of `sinew spec diff`: each change as breaking, additive or cosmetic, and the version it needs.",
        answers: "The required bump, the changes, and whether the declared versions are enough.",
        call: r#"{"old": "{\"tools\": [{\"name\": \"relay\"}]}", "new": "{\"tools\": [{\"name\": \"relay\"}, {\"name\": \"blink\"}]}"}"#,
        security: "- **Input validation**: at most 512 KiB of each text are read; nothing they name is called, opened or fetched.",
    },
];
