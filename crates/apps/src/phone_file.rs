//! APKs on a phone, read in ranges: one command reads the ends of many files, further ranges are read one by one.

use std::sync::Arc;
use std::time::Duration;

use sinew_tool::BoxFuture;

use crate::apk::{ApkError, ReadAt};
use sinew_phones::PhoneAccess;
use sinew_phones::adb::command::ShellCommand;
use sinew_phones::adb::shell::CommandLimits;

/// How much of a file's end the first command returns: it holds the directory of most APKs, and small APKs whole.
const END: u64 = 64 << 10;

/// Their ends together have about two megabytes.
pub(crate) const FILES_PER_COMMAND: usize = 32;

/// Precedes each file in the output.
const MARK: &[u8] = b"sinew-file ";

/// `dd` of every Android reads whole blocks.
const BLOCK: u64 = 4096;

/// The longest single read: a resource table of the largest apps.
const MAX_READ: u64 = 64 << 20;

/// A file on a phone.
pub(crate) struct PhoneFile {
    access: Arc<dyn PhoneAccess>,
    path: String,
    length: u64,
    /// The last bytes of the file.
    end: Vec<u8>,
}

/// Reads the sizes and ends of some files. A file that cannot be read does not affect the others.
pub(crate) async fn open(access: &Arc<dyn PhoneAccess>, paths: &[&str]) -> Vec<Result<PhoneFile, ApkError>> {
    let commands = paths.iter().map(|path| {
        let size = ShellCommand::new("echo sinew-file $(stat -c %s").arg(path).literal("2>/dev/null || echo none)");
        size.then(ShellCommand::new("tail -c 65536").arg(path).literal("2>/dev/null"))
    });
    let Some(command) = commands.reduce(ShellCommand::then) else { return Vec::new() };
    let limits = CommandLimits { time: Duration::from_secs(60), bytes: paths.len() * (END as usize + 64) };
    let answer = match access.run(&command, limits).await {
        Ok(output) => split(&output.stdout, paths.len()),
        Err(error) => vec![Err(ApkError::Unreadable(error.to_string())); paths.len()],
    };
    let file = |(answer, path): (Result<(u64, Vec<u8>), ApkError>, &&str)| {
        let (length, end) = answer?;
        Ok(PhoneFile { access: access.clone(), path: (*path).to_owned(), length, end })
    };
    answer.into_iter().zip(paths).map(file).collect()
}

/// Splits the output: for each file in order a mark, its size, a line break and its last bytes.
pub(super) fn split(mut rest: &[u8], count: usize) -> Vec<Result<(u64, Vec<u8>), ApkError>> {
    let unreadable = || ApkError::Unreadable("adb has no permission to read it".to_owned());
    let mut found = Vec::with_capacity(count);
    while found.len() < count {
        let head = rest.strip_prefix(MARK).and_then(|rest| {
            let line = rest.iter().take(32).position(|byte| *byte == b'\n')?;
            Some((std::str::from_utf8(&rest[..line]).ok()?.trim().parse::<u64>().ok(), &rest[line + 1..]))
        });
        let Some((size, behind)) = head else { break };
        rest = behind;
        let Some(size) = size else {
            found.push(Err(unreadable()));
            continue;
        };
        let length = usize::try_from(size.min(END)).unwrap_or_default();
        let is_whole = |end: &[u8]| end.is_empty() || end.starts_with(MARK);
        match rest.get(length..).filter(|behind| is_whole(behind)) {
            Some(behind) => {
                found.push(Ok((size, rest[..length].to_vec())));
                rest = behind;
            }
            None if is_whole(rest) => found.push(Err(unreadable())),
            None => break,
        }
    }
    let odd = ApkError::Unreadable("the phone's output could not be split into files".to_owned());
    found.resize(count, Err(odd));
    found
}

impl PhoneFile {
    /// Reads bytes that lie before the part held in memory.
    async fn fetch(&self, offset: u64, length: u64) -> Result<Vec<u8>, ApkError> {
        if length > MAX_READ {
            return Err(ApkError::Refused(format!(
                "it needs a read of {length} bytes; at most {MAX_READ} are read at once"
            )));
        }
        let (first, last) = (offset / BLOCK, (offset + length).div_ceil(BLOCK));
        let command = ShellCommand::new("dd").arg(format!("if={}", self.path)).literal("bs=4096");
        let command = command.arg(format!("skip={first}")).arg(format!("count={}", last - first));
        let limits = CommandLimits { time: Duration::from_secs(60), bytes: ((last - first) * BLOCK) as usize + 4096 };
        let output = self.access.run(&command.literal("2>/dev/null"), limits).await;
        let bytes = output.map_err(|error| ApkError::Unreadable(error.to_string()))?.stdout;
        let from = (offset - first * BLOCK) as usize;
        let part = bytes.get(from..from + length as usize);
        let missing = || ApkError::Unreadable(format!("the phone gave {} bytes of {length} at {offset}", bytes.len()));
        part.map(<[u8]>::to_vec).ok_or_else(missing)
    }
}

impl ReadAt for PhoneFile {
    fn len(&self) -> u64 {
        self.length
    }

    fn read_at(&self, offset: u64, length: usize) -> BoxFuture<'_, Result<Vec<u8>, ApkError>> {
        Box::pin(async move {
            let held = self.length - self.end.len() as u64;
            let beyond = || ApkError::Unreadable("read beyond the end".to_owned());
            let until = offset.checked_add(length as u64).filter(|until| *until <= self.length).ok_or_else(beyond)?;
            if offset >= held {
                let from = (offset - held) as usize;
                return Ok(self.end[from..from + length].to_vec());
            }
            let mut bytes = self.fetch(offset, until.min(held) - offset).await?;
            if until > held {
                bytes.extend_from_slice(&self.end[..(until - held) as usize]);
            }
            Ok(bytes)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(answer: &[u8], count: usize) -> Vec<Option<(u64, usize)>> {
        split(answer, count).into_iter().map(|one| one.ok().map(|(size, end)| (size, end.len()))).collect()
    }

    #[test]
    fn files_are_split_correctly_whatever_they_hold() {
        assert_eq!(
            sizes(b"sinew-file 3\nabcsinew-file 0\nsinew-file 2\n\n\n", 3),
            [Some((3, 3)), Some((0, 0)), Some((2, 2))]
        );
        // A file that holds a mark itself.
        assert_eq!(sizes(b"sinew-file 13\nsinew-file 2\nsinew-file 1\nx", 2), [Some((13, 13)), Some((1, 1))]);
        let large = [b"sinew-file 70000\n".as_slice(), &[7; 65536], b"sinew-file 1\nx"].concat();
        assert_eq!(sizes(&large, 2), [Some((70000, 65536)), Some((1, 1))]);
    }

    #[test]
    fn a_file_that_cannot_be_read_does_not_hide_the_others() {
        assert_eq!(sizes(b"sinew-file none\nsinew-file 1\nx", 2), [None, Some((1, 1))]);
        assert_eq!(sizes(b"sinew-file 90\nsinew-file 1\nx", 2), [None, Some((1, 1))]);
        assert_eq!(sizes(b"sinew-file 3\nab", 2), [None, None]);
        assert_eq!(sizes(b"", 2), [None, None]);
        assert_eq!(sizes(b"sinew-file 99999999999999999999999\nx", 1), [None]);
    }
}
