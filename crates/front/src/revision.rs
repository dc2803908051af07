//! The revisions of MCP, and what each of them has.
//!
//! A client gets only what its revision knows: clients of the older ones refuse a whole result for one content type
//! that they have never heard of.

use rmcp::RoleServer;
use rmcp::model::Tool;
use rmcp::service::RequestContext;

/// A revision of MCP, by its date.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Revision {
    November2024,
    March2025,
    June2025,
    November2025,
    July2026,
}

impl Revision {
    /// The revision of a request. A request that names none is from a client of the newest.
    pub(crate) fn of(cx: &RequestContext<RoleServer>) -> Revision {
        cx.protocol_version().map_or(Revision::July2026, |version| Revision::parse(version.as_str()))
    }

    /// The newest revision that is not later than `date`; dates compare as text.
    pub(crate) fn parse(date: &str) -> Revision {
        match date {
            date if date >= "2026-07-28" => Revision::July2026,
            date if date >= "2025-11-25" => Revision::November2025,
            date if date >= "2025-06-18" => Revision::June2025,
            date if date >= "2025-03-26" => Revision::March2025,
            _ => Revision::November2024,
        }
    }

    pub(crate) fn has_audio(self) -> bool {
        self >= Revision::March2025
    }

    pub(crate) fn has_annotations(self) -> bool {
        self >= Revision::March2025
    }

    pub(crate) fn has_progress_messages(self) -> bool {
        self >= Revision::March2025
    }

    /// The only revision that allows several messages in one.
    pub(crate) fn has_batches(self) -> bool {
        self == Revision::March2025
    }

    pub(crate) fn has_resource_links(self) -> bool {
        self >= Revision::June2025
    }

    pub(crate) fn has_titles(self) -> bool {
        self >= Revision::June2025
    }

    /// `structuredContent` and `outputSchema`.
    pub(crate) fn has_structured_results(self) -> bool {
        self >= Revision::June2025
    }

    /// Streams that begin with an event without data. Earlier clients read every event as a message.
    pub(crate) fn has_priming_events(self) -> bool {
        self >= Revision::November2025
    }

    /// Arguments that are also sent as headers.
    pub(crate) fn has_header_arguments(self) -> bool {
        self >= Revision::July2026
    }

    /// Removes from a tool what the revision does not know.
    pub(crate) fn trim(self, tool: &mut Tool) {
        if !self.has_annotations() {
            tool.annotations = None;
        }
        if !self.has_titles() {
            tool.title = None;
            // `_meta` of a tool came with titles.
            tool.meta = None;
        }
        if !self.has_structured_results() {
            tool.output_schema = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_between_two_revisions_is_the_earlier_one() {
        for (date, revision) in [
            ("2024-10-07", Revision::November2024),
            ("2024-11-05", Revision::November2024),
            ("2025-03-26", Revision::March2025),
            ("2025-06-01", Revision::March2025),
            ("2025-06-18", Revision::June2025),
            ("2025-11-25", Revision::November2025),
            ("2026-07-28", Revision::July2026),
            ("2031-01-01", Revision::July2026),
            ("", Revision::November2024),
        ] {
            assert_eq!(Revision::parse(date), revision, "{date}");
        }
    }
}
