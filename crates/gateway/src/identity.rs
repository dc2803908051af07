//! Ids of devices, which are minted once, and names that people give them.

use std::sync::Arc;

use serde_json::json;
use sinew_tool::spelling::nearest;
use sinew_tool::{DeviceId, DeviceInfo, Digest, ErrorKind, ToolError};
use unicode_general_category::{GeneralCategory as Category, get_general_category as category};

use crate::snapshot::DeviceEntry;

/// Long enough for "the lamp above the workbench", short enough for a table.
const MAX_NAME: usize = 40;

/// The first free id similar to what the device suggests; where that is taken, with a suffix from its key, so that
/// the same device gets the same id on every gateway.
pub(crate) fn mint(info: &DeviceInfo, is_taken: impl Fn(&DeviceId) -> bool) -> Option<DeviceId> {
    let slugs = [DeviceId::slug(&info.suggested_id), DeviceId::slug(info.family.name.as_str()), "device".to_owned()];
    let base = slugs.into_iter().find(|slug| !slug.is_empty()).unwrap_or_default();
    let digest = Digest::of(&json!(info.key.0));
    let suffixes = [6, 12, 20].into_iter().map(|digits| digest.short(digits));
    let numbers = (2u64..).map(|number| number.to_string());
    let candidates = std::iter::once(base.clone()).chain(suffixes.chain(numbers).map(|suffix| {
        let room = DeviceId::MAX_LENGTH - suffix.len() - 1;
        format!("{}-{suffix}", base[..base.len().min(room)].trim_end_matches('-'))
    }));
    candidates.filter_map(|text| DeviceId::parse(&text)).find(|id| !is_taken(id))
}

/// A name that a person gave, checked; `None` for an empty one, which removes the name.
pub(crate) fn given_name(text: &str) -> Result<Option<String>, ToolError> {
    let name = text.trim();
    // Many scripts, and any letter that was taken apart, need marks that are no letters by themselves.
    let is_mark = |character| {
        let is_seen = !matches!(character, '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}');
        is_seen && matches!(category(character), Category::NonspacingMark | Category::SpacingMark)
    };
    let is_fine =
        |character: char| character.is_alphanumeric() || is_mark(character) || " -_.,()'&+#".contains(character);
    let length = name.chars().count();
    if length > MAX_NAME || !name.chars().all(is_fine) {
        let issue = format!("must have at most {MAX_NAME} characters: letters, digits, spaces and - _ . , ( ) ' & + #");
        return Err(ToolError::new(ErrorKind::InvalidArguments, format!("the name of a device {issue}"))
            .with_details(json!({"parameter_name": "name", "issue": issue})));
    }
    Ok((length > 0).then(|| name.to_owned()))
}

pub(crate) fn name_taken(name: &str, holder: &DeviceId) -> ToolError {
    let issue = format!("already belongs to {holder}");
    ToolError::new(
        ErrorKind::InvalidArguments,
        format!("the name `{name}` {issue}; choose another, or rename that device first"),
    )
    .with_details(json!({"parameter_name": "name", "issue": issue}))
}

/// Devices whose names are compared with one that is not known; the comparison takes about a microsecond each.
const MAX_COMPARED: usize = 1_000;
/// Devices that an error lists.
const MAX_SHOWN: usize = 10;

pub(crate) fn unknown_device<'a>(text: &str, known: impl Iterator<Item = &'a Arc<DeviceEntry>>) -> ToolError {
    let text = sinew_tool::text::clean_line(text, 64);
    let entries: Vec<&Arc<DeviceEntry>> = known.take(MAX_COMPARED).collect();
    let names = entries.iter().flat_map(|entry| [Some(entry.id.as_str()), entry.name.as_deref()]).flatten();
    // Another number is another device, and no typing mistake.
    let letters = |name: &str| name.replace(|letter: char| letter.is_ascii_digit(), "").to_lowercase();
    let written = letters(&text);
    let names = names.filter(|name| letters(name) != written);
    let shown: Vec<String> = entries.iter().take(MAX_SHOWN).map(|entry| entry.title()).collect();
    let more = if entries.len() > MAX_SHOWN { ", …" } else { "" };
    let known = match nearest(&text, names) {
        _ if shown.is_empty() => "no device has joined yet".to_owned(),
        Some(name) => format!("did you mean `{name}`? Known are {}{more}", shown.join(", ")),
        None => format!("known are {}{more}", shown.join(", ")),
    };
    ToolError::new(ErrorKind::UnknownDevice, format!("no device has the id or name `{text}`; {known}"))
        .with_details(json!({"parameter_name": "device", "issue": "unknown device"}))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use sinew_tool::{Admission, DeviceKey, Family, FamilyName, Reach, Status, TextTrust};

    use super::*;

    fn info(key: &str, suggested_id: &str) -> DeviceInfo {
        DeviceInfo {
            key: DeviceKey(key.to_owned()),
            suggested_id: suggested_id.to_owned(),
            family: Family::new(FamilyName::of("board"), TextTrust::Attributed, Reach::OneLink),
            admission: Admission::Local,
            name: String::new(),
            version: String::new(),
            status: Status::Ready,
            instructions: None,
            labels: Vec::new(),
            attributes: Default::default(),
        }
    }

    #[test]
    fn ids_are_made_of_the_suggestion_and_stay_apart() {
        let plain = |suggested| mint(&info("board:x", suggested), |_| false).unwrap().to_string();
        assert_eq!(plain("Board DDEE01"), "board-ddee01");
        assert_eq!(plain("日本"), "board");
        let mut taken = HashSet::new();
        for number in 0..200 {
            let id = mint(&info(&format!("board:{number}"), "a-very-long-suggestion-indeed"), |id| taken.contains(id));
            assert!(taken.insert(id.unwrap()));
        }
        let once = mint(&info("board:same", "x"), |id| id.as_str() == "x");
        assert_eq!(once, mint(&info("board:same", "x"), |id| id.as_str() == "x"));
    }

    #[test]
    fn one_key_with_every_suffix_taken_still_gets_an_id() {
        let mut taken = HashSet::new();
        for _ in 0..20 {
            let id = mint(&info("board:x", "x"), |id| taken.contains(id));
            assert!(taken.insert(id.unwrap()));
        }
    }

    #[test]
    fn given_names_have_letters_of_any_script_and_few_signs() {
        assert_eq!(given_name("  Küche (links) "), Ok(Some("Küche (links)".to_owned())));
        assert_eq!(given_name(" "), Ok(None));
        for name in ["ห้องนอน", "Cafe\u{301}", "रसोई", "நிலா"] {
            assert_eq!(given_name(name), Ok(Some(name.to_owned())));
        }
        for wrong in ["a/b", "a\nb", "a\u{e0100}", "a`b", "\"", &"x".repeat(41)] {
            assert!(given_name(wrong).is_err(), "{wrong:?}");
        }
    }
}
