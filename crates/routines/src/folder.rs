//! A directory of routines, followed while the gateway runs.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use sinew_tool::{Announce, DeviceEvent, Effect, LeaveReason, ToolUse};
use tokio_util::sync::CancellationToken;

use crate::circles::{CallGraph, circles};
use crate::device::{RoutineBook, RoutinesDevice};
use crate::routine::Routine;

/// Somebody who saved a file tries it next.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// More than anybody reads. The gateway takes as many tools of this device, and names for each of them twice.
const MAX_ROUTINES: usize = 1_000;

/// Threads that read files at once, and files that one thread reads at least.
const MAX_THREADS: usize = 8;
const MIN_SHARE: usize = 16;

/// The worst that a tool can do that calls these.
pub type EffectOf = Arc<dyn Fn(&[ToolUse]) -> Option<Effect> + Send + Sync>;

/// Offers the routines of a directory until `end`. The directory may come later, and its files may change: a file with
/// an error is reported, and its last good form stays.
pub async fn run(
    directory: PathBuf,
    effect_of: EffectOf,
    announce: Announce,
    end: CancellationToken,
) -> io::Result<()> {
    let mut folder = Folder::default();
    let device = Arc::new(RoutinesDevice::new(directory.clone()));
    let mut is_here = false;
    loop {
        let looked = tokio::task::spawn_blocking({
            let (directory, effect_of) = (directory.clone(), effect_of.clone());
            move || {
                let is_changed = folder.look(&directory) | folder.mark(&effect_of);
                (folder, is_changed)
            }
        });
        let is_changed;
        (folder, is_changed) = looked.await.map_err(io::Error::other)?;
        if is_changed {
            device.set(folder.book(), &folder.problems());
            match (is_here, folder.is_there) {
                (false, true) => announce(DeviceEvent::Joined(device.clone())),
                (true, false) => announce(DeviceEvent::Left(device.clone(), LeaveReason::Closed)),
                (true, true) => announce(DeviceEvent::Changed(device.clone())),
                (false, false) => {}
            }
        }
        is_here = folder.is_there;
        tokio::select! {
            () = tokio::time::sleep(LOOK_EVERY) => {}
            () = end.cancelled() => break,
        }
    }
    if is_here {
        announce(DeviceEvent::Left(device, LeaveReason::Closed));
    }
    Ok(())
}

#[derive(Default)]
struct Folder {
    is_there: bool,
    files: BTreeMap<String, RoutineFile>,
    /// More files than are read.
    surplus: usize,
}

/// A file as it was last seen.
#[derive(Default)]
struct RoutineFile {
    stamp: Option<(SystemTime, u64)>,
    /// The form that is offered.
    good: Option<Arc<Routine>>,
    /// A form that was read and is not offered, because it would close a circle.
    fresh: Option<Arc<Routine>>,
    problem: Option<String>,
}

impl Folder {
    /// Reads what is new; says whether anything is.
    fn look(&mut self, directory: &Path) -> bool {
        let mut found = BTreeMap::new();
        let entries = std::fs::read_dir(directory);
        let was_there = std::mem::replace(&mut self.is_there, entries.is_ok());
        for entry in entries.into_iter().flatten().flatten() {
            let path = entry.path();
            let name = path.file_stem().and_then(|stem| stem.to_str()).map(str::to_owned);
            // Editors keep their own files beside, under hidden names.
            let name = name.filter(|name| !name.starts_with('.'));
            if let (Some(name), true) = (name, path.extension().is_some_and(|ending| ending == "md")) {
                // Of a link, what it leads to; what is no file is reported when it is read.
                let meta = std::fs::metadata(&path);
                let stamp = meta.map(|meta| (meta.modified().unwrap_or(SystemTime::UNIX_EPOCH), meta.len()));
                found.insert(name, (path, stamp.unwrap_or((SystemTime::UNIX_EPOCH, 0))));
            }
        }
        let before = (self.files.len(), std::mem::replace(&mut self.surplus, found.len().saturating_sub(MAX_ROUTINES)));
        self.files.retain(|name, _| found.contains_key(name));
        let mut is_changed = was_there != self.is_there || before != (self.files.len(), self.surplus);
        let mut changed = Vec::new();
        for (name, (path, stamp)) in found.into_iter().take(MAX_ROUTINES) {
            let file = self.files.entry(name.clone()).or_default();
            if file.stamp != Some(stamp) {
                file.stamp = Some(stamp);
                changed.push((name, path));
            }
        }
        is_changed |= !changed.is_empty();
        for ((name, _), read) in changed.iter().zip(load_all(&changed)) {
            self.files.entry(name.clone()).or_default().take(name, read);
        }
        if is_changed {
            self.settle();
        }
        is_changed
    }

    /// Offers what was read, but for what would close a circle: of those files the last good form stays.
    fn settle(&mut self) {
        let mut refused: BTreeMap<String, String> = BTreeMap::new();
        loop {
            // What is offered already closes no circle by itself.
            let is_new = |name: &str| !refused.contains_key(name) && self.files[name].fresh.is_some();
            let found = circles(&self.calls(&refused)).into_iter().filter(|(name, _)| is_new(name));
            let found: Vec<(String, String)> =
                found.map(|(name, circle)| (name.to_owned(), circle.to_string())).collect();
            if found.is_empty() {
                break;
            }
            refused.extend(found);
        }
        for (name, file) in &mut self.files {
            match refused.remove(name) {
                Some(circle) => file.report(name, &circle),
                None => {
                    if let Some(fresh) = file.fresh.take() {
                        tracing::info!(routine = name, "routine loaded");
                        (file.good, file.problem) = (Some(fresh), None);
                    }
                }
            }
        }
    }

    /// Which routine calls which, each in its newest form unless that was refused.
    fn calls<'a>(&'a self, refused: &BTreeMap<String, String>) -> CallGraph<'a> {
        let form = |name: &String, file: &'a RoutineFile| {
            let fresh = file.fresh.as_ref().filter(|_| !refused.contains_key(name));
            fresh.or(file.good.as_ref())
        };
        let calls = self.files.iter().filter_map(|(name, file)| {
            let called = form(name, file)?.routines().filter(|(_, to)| self.files.contains_key(*to));
            let called: Vec<(usize, &str)> = called.collect();
            (!called.is_empty()).then_some((name.as_str(), called))
        });
        calls.collect()
    }

    /// Gives each routine the effect of its worst step, which can change with the devices; says whether one did.
    fn mark(&mut self, effect_of: &EffectOf) -> bool {
        let mut is_changed = false;
        for routine in self.files.values_mut().filter_map(|file| file.good.as_mut()) {
            let effect = effect_of(&routine.tool.uses);
            if routine.tool.effect != effect {
                Arc::make_mut(routine).tool.effect = effect;
                is_changed = true;
            }
        }
        is_changed
    }

    /// The routines in their last good form.
    fn book(&self) -> RoutineBook {
        self.files.iter().filter_map(|(name, file)| Some((name.clone(), file.good.clone()?))).collect()
    }

    fn problems(&self) -> Vec<String> {
        let too_many = format!("{} more files are not read; there may be {MAX_ROUTINES}", self.surplus);
        let problems = self.files.values().filter_map(|file| file.problem.clone());
        problems.chain((self.surplus > 0).then_some(too_many)).collect()
    }
}

/// Reads files on several threads: many take a while, and somebody waits for the first look.
fn load_all(files: &[(String, PathBuf)]) -> Vec<Result<Routine, String>> {
    let load = |files: &[(String, PathBuf)]| -> Vec<_> { files.iter().map(|(_, path)| Routine::load(path)).collect() };
    let threads = std::thread::available_parallelism().map_or(1, |count| count.get().min(MAX_THREADS));
    let share = files.len().div_ceil(threads).max(MIN_SHARE);
    std::thread::scope(|scope| {
        let readers: Vec<_> = files.chunks(share).map(|part| (part, scope.spawn(move || load(part)))).collect();
        let gone = |part: &[(String, PathBuf)]| {
            part.iter().map(|_| Err("reading it failed; this is a mistake in Sinew".to_owned())).collect()
        };
        readers.into_iter().flat_map(|(part, reader)| reader.join().unwrap_or_else(|_| gone(part))).collect()
    })
}

impl RoutineFile {
    fn take(&mut self, name: &str, read: Result<Routine, String>) {
        self.fresh = None;
        match read {
            Ok(routine) => self.fresh = Some(Arc::new(routine)),
            Err(problem) => self.report(name, &problem),
        }
    }

    /// Notes what is wrong with the file as it is now.
    fn report(&mut self, name: &str, problem: &str) {
        let problem = format!("{name}.md: {problem}");
        if self.problem.as_ref() != Some(&problem) {
            let stays = if self.good.is_some() { "; its last good form stays" } else { "" };
            tracing::error!("{problem}{stays}");
            self.problem = Some(problem);
        }
    }
}
