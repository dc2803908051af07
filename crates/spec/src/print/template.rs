//! The blank form.

/// The project's own template. Linting it says `unfilled`, and nothing else.
pub const TEMPLATE: &str = include_str!("../../../../template/module_template/MCP_TOOL_SPECIFICATION.md");

/// The template for a tool of this name. Its author fills in the rest; until then linting
/// says `unfilled`.
pub fn new_from_template(name: &str) -> String {
    let name: String = name.chars().filter(|c| !c.is_control() && !matches!(c, '`' | '{' | '}')).collect();
    TEMPLATE.replace("{{tool_name}}", name.trim())
}

/// The part of the template that stands for one tool.
pub fn tool_from_template(name: &str) -> String {
    let whole = new_from_template(name);
    whole.find("\n## Tool:").map_or(whole.clone(), |start| whole[start + 1..].to_owned())
}
