//! Whether the audit is as it was written.
//!
//! The records are read in pages, so that other questions and every commit go on meanwhile. What retention removes while
//! this runs is told apart from what somebody else removed: retention takes whole seals, the oldest first.

use std::collections::HashSet;

use rusqlite::{Connection, Row, params};

use super::beginning::ChainBeginning;
use super::chain::{
    AuditKey, AuditSeal, ChainEvent, ChainHead, Hash, RecordFields, VERSION, chain_event, first_record, last_seal,
    seals_after,
};
use super::seals::may_be_on_their_way;
use super::writer::SEAL_RECORDS;
use crate::shared::KeptArgs;
use crate::view::{AuditFault, AuditProblem, AuditReport};

/// Records of one page: some 20 ms.
pub(super) const PAGE: i64 = 10_000;

/// Problems that a person reads.
const MAX_PROBLEMS: usize = 100;

/// A verification between two pages.
pub(super) struct Verification {
    key: AuditKey,
    report: AuditReport,
    /// The last record that was checked, or the one before the chain.
    at: ChainHead,
    /// The seal that is reached next.
    next_seal: Option<AuditSeal>,
    /// Up to where the chain itself says that retention removed records.
    removal: i64,
    /// The last record whose hash needs no key.
    unkeyed: ChainHead,
    /// Up to which record this looks; what is written later is not looked at.
    until: i64,
}

impl Verification {
    /// `written` is the newest record as the writer knows it, while the gateway runs.
    pub(super) fn begin(db: &Connection, key: AuditKey, written: Option<ChainHead>) -> rusqlite::Result<Verification> {
        let mut report = AuditReport::default();
        let newest: i64 = db.query_row("SELECT coalesce(max(id), 0) FROM audit", [], |row| row.get(0))?;
        let sealed = last_seal(db, &key)?;
        let until = newest.max(sealed.as_ref().map_or(0, |seal| seal.last)).max(written.map_or(0, |head| head.id));
        report.seals = db.query_row("SELECT count(*) FROM seals", [], |row| row.get(0))?;
        report.sealed_until = sealed.map(|seal| seal.last);
        let first_seal = seals_after(db, &key, 0, 1)?.into_iter().next();
        let stated = ChainBeginning::load(db, &key)?;
        let begins = match (stated, &first_seal) {
            (Some(stated), _) => stated.first,
            (None, Some(seal)) => seal.first,
            (None, None) => first_record(db)?.unwrap_or(until.saturating_add(1)),
        };
        let unchained = "SELECT count(*) FROM audit WHERE hash IS NULL AND id > 0 AND id < ?";
        report.unchained = db.query_row(unchained, [begins], |row| row.get(0))?;
        let at = ChainHead::begin(begins.saturating_sub(1));
        let unkeyed = stated.map_or(at, |stated| stated.unkeyed);
        let mut verification = Verification { key, report, at, next_seal: None, removal: 0, unkeyed, until };
        if stated.is_none() {
            let text = "the store does not state with this audit-key where its chain begins: that was removed or \
                        changed, or the key was replaced";
            verification.problem(AuditFault::Changed, 0, text.to_owned());
        }
        verification.check_seals(db, stated.map(|stated| stated.first))?;
        verification.check_outsiders(db, begins)?;
        verification.check_unsealed(begins);
        verification.next_seal = seals_after(db, &verification.key, verification.at.id, 1)?.into_iter().next();
        verification.skip_pruned(db)?;
        Ok(verification)
    }

    /// Each seal must be genuine and begin where the one before it ends, and the first where the chain does.
    fn check_seals(&mut self, db: &Connection, mut expected: Option<i64>) -> rusqlite::Result<()> {
        let mut select = db.prepare("SELECT last, first, hash, at, mac FROM seals ORDER BY last")?;
        for seal in select.query_map([], AuditSeal::read)? {
            let seal = seal?;
            let AuditSeal { first, last, .. } = seal;
            if !seal.is_genuine(&self.key) {
                self.problem(
                    AuditFault::Seal,
                    last,
                    format!("the seal of the records {first} to {last} is not genuine"),
                );
            } else if let Some(expected) = expected.filter(|expected| *expected != first) {
                self.problem(
                    AuditFault::Seal,
                    first,
                    format!("no seal covers the records {expected} to {}", first.saturating_sub(1)),
                );
            }
            expected = Some(last.saturating_add(1));
        }
        Ok(())
    }

    /// Records that stand before the chain and are not of a version without one.
    fn check_outsiders(&mut self, db: &Connection, begins: i64) -> rusqlite::Result<()> {
        let mut select =
            db.prepare("SELECT id FROM audit WHERE id <= 0 OR (id < ? AND hash IS NOT NULL) ORDER BY id LIMIT 1000")?;
        let outsiders: Vec<i64> = select.query_map([begins], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
        for id in outsiders {
            self.problem(AuditFault::Changed, id, format!("record {id} was added: the chain begins at {begins}"));
        }
        Ok(())
    }

    /// The gateway never leaves more records without a seal than one seal covers.
    fn check_unsealed(&mut self, begins: i64) {
        let first = self.report.sealed_until.map_or(begins, |last| last.saturating_add(1));
        let last = self.until;
        if last.saturating_sub(first) >= SEAL_RECORDS {
            let text =
                format!("no seal covers the records {first} to {last}: the gateway leaves at most {SEAL_RECORDS}");
            self.problem(AuditFault::Seal, first, text);
        }
    }

    /// Compares the seals with those of the file beside the store; `None` where that is gone.
    pub(super) fn check_file(
        &mut self,
        db: &Connection,
        seals: Option<impl Iterator<Item = Result<AuditSeal, usize>>>,
    ) -> rusqlite::Result<()> {
        let Some(seals) = seals else {
            if first_record(db)?.is_some() || self.report.seals > 0 {
                let text = "audit.seals is missing: the seals in the database alone do not show whether records were \
                            removed from the end";
                self.problem(AuditFault::Seal, 0, text.to_owned());
            }
            return Ok(());
        };
        let mut in_file = HashSet::new();
        let mut select = db.prepare("SELECT last, first, hash, at, mac FROM seals WHERE last = ?")?;
        for seal in seals {
            let seal = match seal {
                Ok(seal) => seal,
                Err(line) => {
                    self.problem(AuditFault::Seal, 0, format!("line {line} of audit.seals is no seal"));
                    continue;
                }
            };
            let AuditSeal { first, last, .. } = seal;
            in_file.insert(last);
            let found = select.query_map([last], AuditSeal::read)?.next().transpose()?;
            match found {
                _ if !seal.is_genuine(&self.key) => {
                    let text = format!("the seal of the records {first} to {last} in audit.seals is not genuine");
                    self.problem(AuditFault::Seal, last, text);
                }
                Some(found) if found == seal => {}
                Some(_) => {
                    let text = format!("the seal of the records {first} to {last} is not the one in audit.seals");
                    self.problem(AuditFault::Seal, last, text);
                }
                None => {
                    let text = format!(
                        "the records {first} to {last} were sealed and on the disk, and are not in the database: they were removed, \
                         or an older copy of the database was put in its place"
                    );
                    self.problem(AuditFault::CutTail, first, text);
                }
            }
        }
        self.check_lost_seals(db, &in_file)
    }

    /// Each seal of the database is in the file, except the newest where the gateway was killed or is writing them.
    fn check_lost_seals(&mut self, db: &Connection, in_file: &HashSet<i64>) -> rusqlite::Result<()> {
        let mut select = db.prepare("SELECT last FROM seals WHERE last <= ? ORDER BY last")?;
        let seals: Vec<i64> = select.query_map([self.until], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
        let on_their_way = seals.iter().rev().take_while(|last| !in_file.contains(last)).count();
        let expected = match may_be_on_their_way(on_their_way, in_file.is_empty()) {
            true => seals.len() - on_their_way,
            false => seals.len(),
        };
        for last in seals[..expected].iter().filter(|last| !in_file.contains(last)) {
            self.problem(AuditFault::Seal, *last, format!("audit.seals lacks the seal up to record {last}"));
        }
        Ok(())
    }

    /// Checks one page. Whether there is more.
    pub(super) fn page(&mut self, db: &Connection) -> rusqlite::Result<bool> {
        if self.at.id >= self.until {
            return Ok(false);
        }
        self.skip_pruned(db)?;
        let mut select = db.prepare_cached(
            "SELECT id, at, kind, principal, door, device, tool, name, args_digest, kept, outcome, duration_us, bytes, hash, args,
                 version, text_digest, caller, decided, run
             FROM audit WHERE id > ? AND id <= ? ORDER BY id LIMIT ?",
        )?;
        let mut rows = select.query(params![self.at.id, self.until, PAGE])?;
        let mut count = 0;
        while let Some(row) = rows.next()? {
            count += 1;
            let (id, stored): (i64, Option<Hash>) = (row.get(0)?, row.get(13).unwrap_or(None));
            match (read_fields(row), row.get_ref(14)?.as_str()) {
                (Ok(fields), Ok(args)) => self.record(&fields, stored, args),
                _ => {
                    let text = format!("record {id} was changed: a field has another type than was written");
                    self.problem(AuditFault::Changed, id, text);
                    self.at = ChainHead { id, hash: stored.unwrap_or_default() };
                }
            }
            if self.next_seal.as_ref().is_some_and(|seal| seal.last <= self.at.id) {
                self.reach_seal();
                self.next_seal = seals_after(db, &self.key, self.at.id, 1)?.into_iter().next();
            }
        }
        if count < PAGE && self.at.id < self.until {
            self.gap(self.until.saturating_add(1));
            self.at.id = self.until;
        }
        Ok(self.at.id < self.until)
    }

    fn record(&mut self, fields: &RecordFields<'_>, stored: Option<Hash>, args: &str) {
        let id = fields.id;
        if id != self.at.id.saturating_add(1) {
            self.gap(id);
            // What came before is missing, so that only the records from here on can be compared with each other.
            self.at = ChainHead { id, hash: stored.unwrap_or_default() };
            return;
        }
        let hash = fields.hash(&self.key, &self.at.hash);
        let mut is_sound = stored == Some(hash);
        if !is_sound {
            let text = format!("record {id} is not the one that was written here: it was changed, or stood elsewhere");
            self.problem(AuditFault::Changed, id, text);
        }
        if !self.may_be_version(fields) {
            is_sound = false;
            let text =
                format!("record {id} has a hash without a key, as an older version wrote it, and nothing proves it");
            self.problem(AuditFault::Changed, id, text);
        }
        if args.is_empty() {
            self.report.emptied += 1;
        } else if !self.fits(fields, args) {
            is_sound = false;
            self.problem(AuditFault::Changed, id, format!("the arguments of record {id} were changed"));
        }
        match chain_event(fields, args).filter(|_| is_sound) {
            Some(ChainEvent::Removed { until }) => self.removal = self.removal.max(until),
            Some(ChainEvent::SealsLost { seals }) => {
                let text = format!("audit.seals was removed or shortened before record {id}: it lacked {seals} seals");
                self.problem(AuditFault::Seal, id, text);
            }
            None => {}
        }
        self.report.records += 1;
        // The stored hash, so that one changed record is one problem.
        self.at = ChainHead { id, hash: stored.unwrap_or(hash) };
        self.reach_last_unkeyed();
    }

    /// Records of version 1 are those up to the one that the upgrade stated with the key.
    fn may_be_version(&self, fields: &RecordFields<'_>) -> bool {
        match fields.version {
            1 => fields.id <= self.unkeyed.id,
            version => version == VERSION,
        }
    }

    fn reach_last_unkeyed(&mut self) {
        if self.at.id == self.unkeyed.id && self.at.hash != self.unkeyed.hash {
            let text =
                format!("among the records up to {}, which an older version wrote, some were changed", self.at.id);
            self.problem(AuditFault::Changed, self.at.id, text);
        }
    }

    /// Whether the text is the one that was kept.
    fn fits(&self, fields: &RecordFields<'_>, args: &str) -> bool {
        if fields.kept == KeptArgs::Whole.number() {
            return self.key.digest(args.as_bytes()) == fields.args_digest;
        }
        let digest = self.key.text_digest(KeptArgs::Cut, args);
        fields.version == 1 || fields.text_digest == digest.as_ref().map(Hash::as_slice)
    }

    fn reach_seal(&mut self) {
        let Some(seal) = self.next_seal.take() else { return };
        if seal.last == self.at.id && seal.hash() != self.at.hash {
            let AuditSeal { first, last, .. } = seal;
            let text = format!("among the records {first} to {last} some were changed: their seal does not fit");
            self.problem(AuditFault::Changed, first, text);
            self.at.hash = seal.hash();
        }
    }

    fn gap(&mut self, next: i64) {
        let (first, last) = (self.at.id.saturating_add(1), next.saturating_sub(1));
        let (fault, text) = match next > self.until {
            true => (AuditFault::CutTail, format!("the records {first} to {last}, the newest, are missing")),
            false => (AuditFault::Gap, format!("the records {first} to {last} are missing")),
        };
        self.problem(fault, first, text);
    }

    /// Goes on after the records that retention removed: those of whole seals, from the oldest on.
    fn skip_pruned(&mut self, db: &Connection) -> rusqlite::Result<()> {
        let oldest = "SELECT min(id) FROM audit WHERE id > 0";
        let oldest: Option<i64> = db.query_row(oldest, [], |row| row.get(0))?;
        let Some(oldest) = oldest.filter(|oldest| *oldest > self.at.id.saturating_add(1)) else { return Ok(()) };
        let sql = "SELECT last, first, hash, at, mac FROM seals WHERE last = ?";
        let last_pruned = db.prepare_cached(sql)?.query_map([oldest - 1], AuditSeal::read)?.next().transpose()?;
        if let Some(seal) = last_pruned.filter(|seal| seal.is_genuine(&self.key)) {
            self.report.removed_until = Some(seal.last);
            self.at = ChainHead { id: seal.last, hash: seal.hash() };
            self.next_seal = seals_after(db, &self.key, seal.last, 1)?.into_iter().next();
        }
        Ok(())
    }

    pub(super) fn finish(mut self, written: Option<ChainHead>) -> AuditReport {
        if let Some(head) = written.filter(|head| head.id == self.at.id && head.hash != self.at.hash) {
            let text = format!("record {}, the newest, is not the one that this gateway wrote", head.id);
            self.problem(AuditFault::Changed, head.id, text);
        }
        if let Some(until) = self.report.removed_until.filter(|until| *until > self.removal) {
            let text = format!("the records up to {until} are missing, and no record says that retention removed them");
            self.problem(AuditFault::Gap, self.removal + 1, text);
        }
        self.report.checked_until = self.at.id;
        self.report
    }

    fn problem(&mut self, fault: AuditFault, record: i64, message: String) {
        self.report.problems_in_all += 1;
        if self.report.problems.len() < MAX_PROBLEMS {
            self.report.problems.push(AuditProblem { fault, record, message });
        }
    }
}

/// `Err` where a field has a wrong type.
fn read_fields<'a>(row: &'a Row<'_>) -> rusqlite::Result<RecordFields<'a>> {
    let text = |index| row.get_ref(index)?.as_str().map_err(rusqlite::Error::from);
    let optional = |index| row.get_ref(index)?.as_str_or_null().map_err(rusqlite::Error::from);
    Ok(RecordFields {
        id: row.get(0)?,
        at: row.get(1)?,
        kind: text(2)?,
        principal: text(3)?,
        door: text(4)?,
        device: optional(5)?,
        tool: optional(6)?,
        name: text(7)?,
        args_digest: row.get_ref(8)?.as_blob()?,
        kept: row.get(9)?,
        outcome: text(10)?,
        duration_us: row.get(11)?,
        bytes: row.get(12)?,
        version: row.get(15)?,
        text_digest: row.get_ref(16)?.as_blob_or_null()?,
        caller: optional(17)?,
        decided: optional(18)?,
        run: optional(19)?,
    })
}
