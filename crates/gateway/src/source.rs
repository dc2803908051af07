//! Where a result comes from, in its `_meta`, and whether it holds text that anybody may have written.

use serde_json::json;
use sinew_tool::outcome::SOURCE_KEY;
use sinew_tool::{Effect, Outcome, TextTrust, Value};

use crate::snapshot::Holder;

/// Marks the result of a device. What the device itself put there is replaced; only that it has text of others stays, for
/// another gateway may have passed the call on and marked the result. `has_quotes`: the device made it of answers with
/// text of others.
pub(crate) fn mark(holder: Holder<'_>, has_quotes: bool, mut outcome: Outcome) -> Outcome {
    let family = &holder.entry.info.family;
    let shows_others = family.shows_others && holder.offered.tool.effect == Some(Effect::Read);
    let mut source = json!({"device": holder.entry.id.as_str(), "family": family.name});
    if has_quotes || outcome.is_third_party() || family.text_trust == TextTrust::Quoted || shows_others {
        source["third_party"] = json!(true);
    }
    outcome.meta.insert(SOURCE_KEY.to_owned(), source);
    outcome
}

/// Marks a result that the gateway made itself, of devices with a label or without any.
pub(crate) fn mark_own(mut source: Value, parts: &[&Outcome], mut outcome: Outcome) -> Outcome {
    source["family"] = json!("gateway");
    if parts.iter().any(|part| part.is_third_party()) {
        source["third_party"] = json!(true);
    }
    outcome.meta.insert(SOURCE_KEY.to_owned(), source);
    outcome
}
