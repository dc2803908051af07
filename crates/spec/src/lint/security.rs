//! The security section: whether it says what could go wrong with this tool.

use super::{Reporter, rules, words};
use crate::model::{Section, ToolSpecification};

/// What a tool accesses, and the words that reveal it.
const TOUCHES: &[(&str, &[&str])] = &[
    ("files", &["file", "files", "path", "paths", "directory", "folder", "filesystem", "upload", "download", "disk"]),
    (
        "the network",
        &[
            "url", "urls", "uri", "http", "https", "network", "host", "endpoint", "webhook", "socket", "fetch",
            "download", "email",
        ],
    ),
    ("code", &["code", "command", "commands", "script", "shell", "execute", "exec", "eval", "sql", "build", "compile"]),
    (
        "data",
        &[
            "delete",
            "database",
            "password",
            "token",
            "secret",
            "credential",
            "credentials",
            "user",
            "contacts",
            "sms",
            "location",
            "clipboard",
            "personal",
            "overwrite",
        ],
    ),
    (
        "a device",
        &[
            "lock",
            "unlock",
            "door",
            "gate",
            "relay",
            "motor",
            "heater",
            "oven",
            "valve",
            "pump",
            "alarm",
            "camera",
            "microphone",
            "photo",
            "video",
            "screenshot",
            "record",
            "reboot",
            "shutdown",
            "firmware",
            "gpio",
            "payment",
            "purchase",
            "pay",
        ],
    ),
];

/// Whether a text has only words that fit every tool and name nothing that this one protects.
fn is_empty_words(text: &str) -> bool {
    const EMPTY: &[&str] = &[
        "about",
        "access",
        "actions",
        "ahead",
        "always",
        "application",
        "apply",
        "applies",
        "authentication",
        "authorization",
        "authorized",
        "applicable",
        "appropriate",
        "appropriately",
        "aware",
        "because",
        "before",
        "best",
        "care",
        "careful",
        "carefully",
        "caution",
        "checked",
        "common",
        "concern",
        "concerns",
        "consider",
        "consideration",
        "considerations",
        "control",
        "data",
        "ensure",
        "ensured",
        "environment",
        "environments",
        "errors",
        "every",
        "follow",
        "followed",
        "following",
        "fully",
        "general",
        "good",
        "handle",
        "handled",
        "handles",
        "handling",
        "have",
        "important",
        "input",
        "inputs",
        "issue",
        "issues",
        "known",
        "make",
        "measures",
        "must",
        "necessary",
        "need",
        "needed",
        "normal",
        "only",
        "permissions",
        "please",
        "practice",
        "practices",
        "production",
        "proper",
        "properly",
        "required",
        "responsibly",
        "responsible",
        "risk",
        "risks",
        "safe",
        "safely",
        "safety",
        "sanitize",
        "sanitized",
        "secure",
        "secured",
        "securely",
        "security",
        "sensitive",
        "should",
        "special",
        "specific",
        "standard",
        "such",
        "suitable",
        "sure",
        "system",
        "systems",
        "take",
        "taken",
        "that",
        "their",
        "them",
        "there",
        "these",
        "they",
        "this",
        "tool",
        "tools",
        "trusted",
        "used",
        "user",
        "users",
        "using",
        "usual",
        "valid",
        "validate",
        "validated",
        "validates",
        "validation",
        "very",
        "when",
        "where",
        "which",
        "will",
        "with",
        "within",
        "without",
        "your",
    ];
    let plain = text.to_lowercase();
    let words = plain.split(|c: char| !c.is_alphanumeric()).filter(|word| word.chars().count() > 3 || !word.is_ascii());
    words.filter(|word| !EMPTY.contains(word)).take(3).count() < 3
}

pub(super) fn check(reporter: &mut Reporter<'_>, tool: &ToolSpecification) {
    let Some(place) = tool.places.section(Section::Security).filter(|place| place.is_filled) else { return };
    let said: Vec<&str> =
        tool.security.split_whitespace().filter(|word| word.chars().any(char::is_alphanumeric)).collect();
    let is_dismissed = {
        let plain = tool.security.replace(['*', '`', '-', '.', '_'], "").trim().to_lowercase();
        plain.starts_with("n/a")
            || plain.starts_with("none")
            || plain.starts_with("no security")
            || plain.starts_with("no known")
            || plain.starts_with("there are no")
            || plain.starts_with("not applicable")
            || words::is_unwritten(&tool.security)
    };
    // A useful sentence names what it protects, which takes at least eight words.
    if !is_dismissed && said.len() >= 8 && !is_empty_words(&tool.security) {
        return;
    }
    let names = tool.parameters().map(|(name, _)| name.as_str());
    let words: Vec<String> = std::iter::once(tool.name.as_str())
        .chain(names)
        .chain(std::iter::once(tool.purpose.as_str()))
        .flat_map(|text| text.split(|c: char| !c.is_alphanumeric()))
        .map(str::to_lowercase)
        .collect();
    let touched: Vec<&str> = TOUCHES
        .iter()
        .filter(|(_, marks)| words.iter().any(|word| marks.contains(&word.as_str())))
        .map(|(what, _)| *what)
        .collect();
    if !touched.is_empty() {
        let message = format!(
            "the tool uses {}, and this section does not say what could go wrong and what prevents it",
            touched.join(", ")
        );
        reporter.report(&rules::SECURITY_BOILERPLATE, place.heading, message);
    }
}
