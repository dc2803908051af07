//! The numbers of the virtual boards of a process. A number makes the hardware address, so the boards of processes that
//! run at the same time get different ones.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::ops::Range;
use std::path::Path;

const FOLDER: &str = "sim-boards";
/// Held while somebody chooses.
const CHOOSING: &str = "choosing";
/// A file holds one number.
const MAX_BYTES: u64 = 16;

/// Numbers that no other process takes meanwhile. They are free again when the value is dropped or the process ends.
pub struct BoardNumbers {
    pub first: u32,
    _claim: Option<File>,
}

impl BoardNumbers {
    /// The first `count` numbers that are free, or those from `wanted` on. Without a folder to remember them in, several
    /// processes have the same.
    pub fn claim(state: &Path, count: u32, wanted: Option<u32>) -> BoardNumbers {
        match choose(&state.join(FOLDER), count, wanted) {
            Ok((first, claim)) => BoardNumbers { first, _claim: Some(claim) },
            Err(error) => {
                tracing::debug!(%error, "other virtual boards on this machine are not known");
                BoardNumbers { first: wanted.unwrap_or(1), _claim: None }
            }
        }
    }
}

fn choose(folder: &Path, count: u32, wanted: Option<u32>) -> io::Result<(u32, File)> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)?;
    let open =
        |name: &str| OpenOptions::new().read(true).write(true).create(true).truncate(false).open(folder.join(name));
    let turn = open(CHOOSING)?;
    turn.lock()?;
    let taken = taken(folder)?;
    let first = wanted.unwrap_or_else(|| first_free(&taken, count));
    let mut claim = open(&first.to_string())?;
    claim.try_lock()?;
    claim.set_len(0)?;
    write!(claim, "{count}")?;
    Ok((first, claim))
}

/// The numbers that others have. What a process left behind is removed.
fn taken(folder: &Path) -> io::Result<Vec<Range<u32>>> {
    let mut taken = Vec::new();
    for entry in fs::read_dir(folder)?.flatten() {
        let Some(first) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        let Ok(file) = File::open(entry.path()) else { continue };
        if file.try_lock().is_ok() {
            fs::remove_file(entry.path())?;
            continue;
        }
        let mut count = String::new();
        file.take(MAX_BYTES).read_to_string(&mut count)?;
        taken.push(first..first.saturating_add(count.trim().parse().unwrap_or(1)));
    }
    taken.sort_by_key(|range| range.start);
    Ok(taken)
}

fn first_free(taken: &[Range<u32>], count: u32) -> u32 {
    taken.iter().fold(1, |first, range| match range.start >= first.saturating_add(count) {
        true => first,
        false => first.max(range.end),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boards_of_several_processes_have_different_numbers() {
        let state = tempfile::tempdir().expect("a folder");
        let claim = |count, wanted| BoardNumbers::claim(state.path(), count, wanted);
        let one = claim(1, None);
        let three = claim(3, None);
        let after = claim(1, None);
        assert_eq!((one.first, three.first, after.first), (1, 2, 5));
        drop(three);
        assert_eq!(claim(4, None).first, 6, "four do not fit between the first and the fifth");
        assert_eq!(claim(2, None).first, 2);
        assert_eq!(claim(1, Some(5)).first, 5, "whoever names a number has it");
    }

    #[test]
    fn without_a_folder_boards_are_counted_from_one() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        assert_eq!(BoardNumbers::claim(file.path(), 2, None).first, 1);
        assert_eq!(BoardNumbers::claim(file.path(), 2, Some(7)).first, 7);
    }
}
