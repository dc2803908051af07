//! A few nodes and a store that answers at once.

use std::collections::HashMap;
use std::time::Duration;

use sinew_presence::{
    Boot, Change, DeviceHash, Key, NodeId, Output, Owner, Presence, PresenceEvent, ReadAnswer, Record, Revision,
    StoreId, Ticket, Timing, WriteAnswer,
};

pub type Body = &'static str;

pub struct SmallCluster {
    pub now: Duration,
    pub nodes: Vec<Presence<Body>>,
    /// Whether each node reaches the store.
    pub is_cut: Vec<bool>,
    /// Whose watch brings nothing, though reads and writes work.
    pub is_behind: Vec<bool>,
    /// The node whose claims are answered only by [`SmallCluster::answer_late`].
    pub answered_late: Option<usize>,
    /// The node whose verdicts about others are answered only then.
    pub verdict_late: Option<usize>,
    late: Vec<(usize, Ticket, WriteAnswer)>,
    /// The next write is done, and its answer lost.
    pub loses_answer: bool,
    pub news: Vec<Vec<PresenceEvent<Body>>>,
    store: HashMap<Key, (Revision, Record<Body>)>,
    log: Vec<Change<Body>>,
    seen: Vec<usize>,
    id: StoreId,
    pub writes: usize,
}

pub const X: DeviceHash = DeviceHash([7; 16]);

impl SmallCluster {
    pub fn new(count: usize) -> SmallCluster {
        let mut cluster = SmallCluster {
            now: Duration::from_secs(100),
            nodes: (0..count).map(|index| node(index, index as u64)).collect(),
            is_cut: vec![false; count],
            is_behind: vec![false; count],
            answered_late: None,
            verdict_late: None,
            late: Vec::new(),
            loses_answer: false,
            news: vec![Vec::new(); count],
            store: HashMap::new(),
            log: Vec::new(),
            seen: vec![0; count],
            id: StoreId(1),
            writes: 0,
        };
        for index in 0..count {
            cluster.nodes[index].handle_store(cluster.now, cluster.id);
            cluster.nodes[index].handle_synced(cluster.now);
        }
        // New devices that several nodes reach are claimed only after a while.
        cluster.pass(20);
        cluster.news.iter_mut().for_each(Vec::clear);
        cluster
    }

    /// A new process under the name of a node.
    pub fn restart(&mut self, index: usize, boot: u64) {
        self.nodes[index] = node(index, boot);
        self.seen[index] = 0;
        self.news[index].clear();
        self.is_cut[index] = false;
        self.nodes[index].handle_store(self.now, self.id);
        self.settle();
        self.nodes[index].handle_synced(self.now);
        self.settle();
    }

    /// The record of a node expires, which no watch brings.
    pub fn drop_record(&mut self, index: usize) {
        let node = NodeId::parse(&format!("n{index}")).expect("a name");
        self.store.remove(&Key::Node(node.clone()));
        self.log.retain(|change| change.key != Key::Node(node.clone()));
    }

    /// The store loses everything.
    pub fn lose_store(&mut self) {
        self.id = StoreId(self.id.0 + 1);
        self.store.clear();
        self.log.clear();
        self.seen.fill(0);
        for index in 0..self.nodes.len() {
            self.nodes[index].handle_store(self.now, self.id);
            self.nodes[index].handle_synced(self.now);
        }
        self.settle();
    }

    /// Brings the answers that were late, and makes no more late.
    pub fn answer_late(&mut self) {
        self.answered_late = None;
        self.verdict_late = None;
        for (index, ticket, answer) in std::mem::take(&mut self.late) {
            self.nodes[index].handle_write(self.now, ticket, answer);
        }
        self.settle();
    }

    /// Lets seconds pass, one by one.
    pub fn pass(&mut self, seconds: u64) {
        for _ in 0..seconds {
            self.now += Duration::from_secs(1);
            self.nodes.iter_mut().for_each(|node| node.handle_time(self.now));
            self.settle();
        }
    }

    /// Does what the nodes want until they want nothing more.
    pub fn settle(&mut self) {
        loop {
            let mut is_quiet = true;
            for index in 0..self.nodes.len() {
                while let Some(output) = self.nodes[index].poll() {
                    is_quiet = false;
                    self.handle(index, output);
                }
                while !self.is_cut[index] && !self.is_behind[index] && self.seen[index] < self.log.len() {
                    is_quiet = false;
                    let change = self.log[self.seen[index]].clone();
                    self.seen[index] += 1;
                    self.nodes[index].handle_change(self.now, change);
                }
            }
            if is_quiet {
                return;
            }
        }
    }

    fn handle(&mut self, index: usize, output: Output<Body>) {
        match output {
            Output::Write { ticket, key, record, expected } => {
                let (is_claim, is_verdict) = (matches!(key, Key::Device(_)), record == Record::Ended);
                let answer = match self.is_cut[index] {
                    true => WriteAnswer::Lost,
                    false => self.write(key, record, expected),
                };
                let is_lost = std::mem::take(&mut self.loses_answer);
                let answer = if is_lost { WriteAnswer::Lost } else { answer };
                let is_late = match is_claim {
                    true => self.answered_late == Some(index),
                    false => self.verdict_late == Some(index) && is_verdict,
                };
                if is_late {
                    return self.late.push((index, ticket, answer));
                }
                self.nodes[index].handle_write(self.now, ticket, answer);
            }
            Output::Read { ticket, key } => {
                let answer = match self.store.get(&key) {
                    _ if self.is_cut[index] => ReadAnswer::Lost,
                    Some((revision, record)) => ReadAnswer::Found(*revision, record.clone()),
                    None => ReadAnswer::Missing,
                };
                self.nodes[index].handle_read(self.now, ticket, answer);
            }
            // The watch brings the same.
            Output::Evict { .. } => {}
            Output::Event(event) => self.news[index].push(event),
        }
    }

    fn write(&mut self, key: Key, record: Record<Body>, expected: Revision) -> WriteAnswer {
        let current = self.store.get(&key).map(|(revision, _)| *revision).unwrap_or_default();
        if current != expected {
            return WriteAnswer::Conflict;
        }
        self.writes += 1;
        let revision = Revision(self.writes as u64);
        self.store.insert(key.clone(), (revision, record.clone()));
        self.log.push(Change { key, revision, record });
        WriteAnswer::Done(revision)
    }
}

fn node(index: usize, boot: u64) -> Presence<Body> {
    let node = NodeId::parse(&format!("n{index}")).expect("a name");
    Presence::new(Owner { node, boot: Boot(boot) }, Timing::default())
}
