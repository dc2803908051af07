//! Selects devices for a page of their list.

use sinew_gateway::DeviceView;
use sinew_tool::{ErrorKind, ToolError};

/// Which devices are asked for.
pub(crate) struct WantedDevices<'a> {
    /// All must occur, in lower case.
    words: Vec<String>,
    state: Option<&'a str>,
    family: Option<&'a str>,
}

impl<'a> WantedDevices<'a> {
    pub(crate) fn new(
        search: Option<&str>,
        state: Option<&'a str>,
        family: Option<&'a str>,
    ) -> Result<WantedDevices<'a>, ToolError> {
        if state.is_some_and(|state| !["ready", "away", "other"].contains(&state)) {
            let message = "`state` must be `ready`, `away` or `other`";
            return Err(ToolError::new(ErrorKind::InvalidArguments, message));
        }
        let words = search.unwrap_or_default().split_whitespace().map(str::to_lowercase).collect();
        Ok(WantedDevices { words, state, family })
    }

    pub(crate) fn has(&self, device: &DeviceView) -> bool {
        let state = if ["ready", "away"].contains(&device.state.as_str()) { &device.state } else { "other" };
        self.state.is_none_or(|wanted| wanted == state)
            && self.family.is_none_or(|wanted| wanted == device.family.name.to_string())
            && self.words.iter().all(|word| has_word(device, word))
    }
}

fn has_word(device: &DeviceView, word: &str) -> bool {
    let texts = [device.id.as_str(), device.name.as_deref().unwrap_or_default(), &device.kind, &device.key.0];
    texts.iter().any(|text| text.to_lowercase().contains(word))
        || device.labels.iter().any(|label| label.to_string().to_lowercase().contains(word))
}
