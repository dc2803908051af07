//! A directory of routines, followed while the gateway runs.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use sinew_tool::{Announce, DeviceEvent, Effect, LeaveReason, ToolUse};
use tokio_util::sync::CancellationToken;

use crate::device::{RoutineBook, RoutinesDevice};
use crate::routine::Routine;

/// Somebody who saved a file tries it next.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// More than anybody reads. The gateway takes as many tools of this device, and names for each of them twice.
const MAX_ROUTINES: usize = 1_000;

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
    good: Option<Arc<Routine>>,
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
            let is_routine = path.extension().is_some_and(|ending| ending == "md");
            if let (Some(name), true, Ok(meta)) = (name, is_routine, entry.metadata())
                && meta.is_file()
            {
                found.insert(name, (path, (meta.modified().unwrap_or(SystemTime::UNIX_EPOCH), meta.len())));
            }
        }
        let before = (self.files.len(), std::mem::replace(&mut self.surplus, found.len().saturating_sub(MAX_ROUTINES)));
        self.files.retain(|name, _| found.contains_key(name));
        let mut is_changed = was_there != self.is_there || before != (self.files.len(), self.surplus);
        for (name, (path, stamp)) in found.into_iter().take(MAX_ROUTINES) {
            let file = self.files.entry(name.clone()).or_default();
            if file.stamp != Some(stamp) {
                file.stamp = Some(stamp);
                file.read(&name, &path);
                is_changed = true;
            }
        }
        is_changed
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
        let good = |(name, file): (&String, &RoutineFile)| Some((name.clone(), file.good.clone()?));
        self.files.iter().filter_map(good).collect()
    }

    fn problems(&self) -> Vec<String> {
        let too_many = format!("{} more files are not read; there may be {MAX_ROUTINES}", self.surplus);
        let problems = self.files.values().filter_map(|file| file.problem.clone());
        problems.chain((self.surplus > 0).then_some(too_many)).collect()
    }
}

impl RoutineFile {
    fn read(&mut self, name: &str, path: &Path) {
        match Routine::load(path) {
            Ok(routine) => {
                tracing::info!(routine = name, "routine loaded");
                *self = RoutineFile { stamp: self.stamp, good: Some(Arc::new(routine)), problem: None };
            }
            Err(problem) => {
                let stays = if self.good.is_some() { "; its last good form stays" } else { "" };
                tracing::error!("{}: {problem}{stays}", path.display());
                self.problem = Some(format!("{name}.md: {problem}"));
            }
        }
    }
}
