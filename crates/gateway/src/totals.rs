//! What happened since the gateway started, in numbers.

use std::collections::BTreeMap;

use sinew_policy::Verdict;
use sinew_tool::FamilyName;

use crate::call_counts::CallTotals;
use crate::store::CommitCounts;

/// What happened since the gateway started.
#[derive(Clone, Debug)]
pub struct Totals {
    pub calls: CallTotals,
    pub commits: CommitCounts,
    pub decisions: [(Verdict, u64); Verdict::ALL.len()],
    pub dropped_events: u64,
    /// How often a device connected, by family.
    pub joins: BTreeMap<FamilyName, u64>,
}
