//! Where a result or an error comes from, and whether it holds text that anybody may have written.

use serde_json::json;
use sinew_tool::outcome::SOURCE_KEY;
use sinew_tool::{Effect, Outcome, TextTrust, ToolError, Value};

use crate::snapshot::Holder;

/// Marks the result of a device. What the device itself put there is replaced; only that it has text of others stays, for
/// another gateway may have passed the call on and marked the result. `has_quotes`: the device made it of answers with
/// text of others.
pub(crate) fn mark(holder: Holder<'_>, has_quotes: bool, mut outcome: Outcome) -> Outcome {
    let source = source(holder, has_quotes || outcome.is_third_party());
    outcome.meta.insert(SOURCE_KEY.to_owned(), source);
    outcome
}

/// Marks an error in the words of a device, in the same way.
pub(crate) fn mark_error(holder: Holder<'_>, has_quotes: bool, mut error: ToolError) -> ToolError {
    error.source = Some(Box::new(source(holder, has_quotes || error.is_third_party())));
    error
}

/// Marks a result that the gateway made itself.
pub(crate) fn mark_own(mut outcome: Outcome) -> Outcome {
    let source = own(json!({}), outcome.is_third_party());
    outcome.meta.insert(SOURCE_KEY.to_owned(), source);
    outcome
}

/// The source of what the gateway made itself, of answers of devices with a label or without any.
pub(crate) fn own(mut source: Value, has_quotes: bool) -> Value {
    source["family"] = json!("gateway");
    if has_quotes {
        source["third_party"] = json!(true);
    }
    source
}

fn source(holder: Holder<'_>, has_quotes: bool) -> Value {
    let family = &holder.entry.info.family;
    let shows_others = family.shows_others && holder.offered.tool.effect == Some(Effect::Read);
    let mut source = json!({"device": holder.entry.id.as_str(), "family": family.name});
    if has_quotes || shows_others || family.passes_text_on || family.text_trust == TextTrust::Quoted {
        source["third_party"] = json!(true);
    }
    source
}
