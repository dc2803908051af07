//! The phone's files: a few folders in memory.

use std::collections::BTreeMap;

/// All files together; more is refused as a full disk.
const CAPACITY: usize = 64 * 1024 * 1024;

pub(crate) const DIRECTORY: u32 = 0o040_000;
pub(crate) const REGULAR: u32 = 0o100_000;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StoredFile {
    pub data: Vec<u8>,
    pub mode: u32,
    /// Seconds since 1970.
    pub time: u32,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Stat {
    pub mode: u32,
    pub size: u64,
    pub time: u32,
}

pub(crate) struct Files {
    files: BTreeMap<String, StoredFile>,
    folders: Vec<String>,
    /// Symbolic links and what they point to.
    links: BTreeMap<String, String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileError {
    Missing,
    Forbidden,
    IsFolder,
    Full,
}

impl FileError {
    pub(crate) fn text(self) -> &'static str {
        match self {
            FileError::Missing => "No such file or directory",
            FileError::Forbidden => "Permission denied",
            FileError::IsFolder => "Is a directory",
            FileError::Full => "No space left on device",
        }
    }
}

impl Default for Files {
    fn default() -> Files {
        let folders = [
            "/",
            "/data",
            "/data/local",
            "/data/local/tmp",
            "/sdcard",
            "/sdcard/DCIM",
            "/sdcard/Download",
            "/sdcard/Pictures",
            "/system",
            "/system/bin",
        ];
        let folders = folders.map(str::to_owned).to_vec();
        let mut files = Files { files: BTreeMap::new(), folders, links: BTreeMap::new() };
        let hello = b"Files that you push here stay until the phone is switched off.\n".to_vec();
        let readme = StoredFile { data: hello, mode: REGULAR | 0o660, time: 1_770_827_400 };
        files.files.insert("/sdcard/Download/readme.txt".to_owned(), readme);
        files
    }
}

/// One spelling for every path: the card has two names, and dots and doubled slashes mean nothing.
pub(crate) fn clean(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            name => parts.push(name),
        }
    }
    let joined = format!("/{}", parts.join("/"));
    let card = ["/storage/emulated/0", "/mnt/sdcard", "/storage/self/primary"];
    let inside = card
        .iter()
        .find_map(|prefix| joined.strip_prefix(prefix).filter(|rest| rest.is_empty() || rest.starts_with('/')));
    inside.map_or(joined.clone(), |rest| format!("/sdcard{rest}"))
}

/// A chain of links is never longer; a circle is.
const MOST_LINKS: usize = 20;

impl Files {
    /// Where a path leads once all links on the way are followed.
    pub(crate) fn real(&self, path: &str) -> String {
        let mut path = clean(path);
        for _ in 0..MOST_LINKS {
            let on_the_way = self.links.iter().find_map(|(link, target)| {
                let rest = path.strip_prefix(link.as_str()).filter(|rest| rest.is_empty() || rest.starts_with('/'))?;
                let parent = link.rsplit_once('/').map_or("", |(parent, _)| parent);
                let target = if target.starts_with('/') { target.clone() } else { format!("{parent}/{target}") };
                Some(clean(&format!("{target}{rest}")))
            });
            match on_the_way {
                Some(next) => path = next,
                None => break,
            }
        }
        path
    }

    pub(crate) fn paths(&self) -> Vec<String> {
        self.files.keys().cloned().collect()
    }

    pub(crate) fn link(&mut self, target: &str, path: &str) -> Result<(), FileError> {
        let path = clean(path);
        if self.links.len() > 1000 {
            return Err(FileError::Full);
        }
        self.make_room_for(&path)?;
        self.links.insert(path, target.to_owned());
        Ok(())
    }

    pub(crate) fn read(&self, path: &str) -> Result<&StoredFile, FileError> {
        let path = self.real(path);
        match self.files.get(&path) {
            Some(file) => Ok(file),
            None if self.is_folder(&path) => Err(FileError::IsFolder),
            None => Err(FileError::Missing),
        }
    }

    pub(crate) fn write(&mut self, path: &str, data: Vec<u8>, mode: u32, time: u32) -> Result<(), FileError> {
        let path = self.real(path);
        if self.is_folder(&path) {
            return Err(FileError::IsFolder);
        }
        let others: usize = self.files.iter().filter(|(name, _)| **name != path).map(|(_, file)| file.data.len()).sum();
        if others + data.len() > CAPACITY {
            return Err(FileError::Full);
        }
        self.make_room_for(&path)?;
        self.files.insert(path, StoredFile { data, mode: REGULAR | (mode & 0o777), time });
        Ok(())
    }

    /// What Android itself puts on the disk: everybody may read it, nobody may list its folder.
    pub(crate) fn place(&mut self, path: &str, data: Vec<u8>, time: u32) {
        self.files.insert(clean(path), StoredFile { data, mode: REGULAR | 0o644, time });
    }

    pub(crate) fn forget(&mut self, path: &str) {
        self.files.remove(&clean(path));
    }

    /// The shell may write to its own folder and to the card.
    fn make_room_for(&mut self, path: &str) -> Result<(), FileError> {
        let parent = path.rsplit_once('/').map_or("/", |(parent, _)| parent);
        if !is_writable(path) {
            return Err(FileError::Forbidden);
        }
        self.make_folder(parent)
    }

    pub(crate) fn make_folder(&mut self, path: &str) -> Result<(), FileError> {
        let path = clean(path);
        if self.is_folder(&path) {
            return Ok(());
        }
        if !is_writable(&path) {
            return Err(FileError::Forbidden);
        }
        if self.folders.len() > 1000 {
            return Err(FileError::Full);
        }
        if let Some((parent, _)) = path.rsplit_once('/') {
            self.make_folder(parent)?;
        }
        self.folders.push(path);
        Ok(())
    }

    pub(crate) fn remove(&mut self, path: &str, recursive: bool) -> Result<(), FileError> {
        let path = clean(path);
        if self.links.remove(&path).is_some() {
            return Ok(());
        }
        if self.files.contains_key(&path) {
            if !is_writable(&path) {
                return Err(FileError::Forbidden);
            }
            self.files.remove(&path);
            return Ok(());
        }
        if !self.is_folder(&path) {
            return Err(FileError::Missing);
        }
        if !recursive {
            return Err(FileError::IsFolder);
        }
        if !is_writable(&path) {
            return Err(FileError::Forbidden);
        }
        let inside = format!("{path}/");
        self.files.retain(|name, _| !name.starts_with(&inside));
        self.folders.retain(|name| *name != path && !name.starts_with(&inside));
        Ok(())
    }

    pub(crate) fn stat(&self, path: &str) -> Result<Stat, FileError> {
        let path = self.real(path);
        match self.files.get(&path) {
            Some(file) => Ok(Stat { mode: file.mode, size: file.data.len() as u64, time: file.time }),
            None if self.is_folder(&path) => Ok(Stat { mode: DIRECTORY | 0o771, size: 4096, time: 1_770_827_400 }),
            None => Err(FileError::Missing),
        }
    }

    /// The names in a folder, sorted.
    pub(crate) fn list(&self, path: &str) -> Result<Vec<String>, FileError> {
        let path = self.real(path);
        if !self.is_folder(&path) {
            return Err(FileError::Missing);
        }
        let inside = if path == "/" { path } else { format!("{path}/") };
        let all = self.files.keys().chain(&self.folders).chain(self.links.keys());
        let mut names: Vec<String> = all
            .filter_map(|name| name.strip_prefix(&inside))
            .filter(|rest| !rest.is_empty() && !rest.contains('/'))
            .map(str::to_owned)
            .collect();
        names.sort();
        Ok(names)
    }

    fn is_folder(&self, path: &str) -> bool {
        self.folders.iter().any(|folder| folder == path)
    }
}

fn is_writable(path: &str) -> bool {
    ["/sdcard/", "/data/local/tmp/"].iter().any(|place| path.starts_with(place))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_have_one_spelling() {
        assert_eq!(clean("/storage/emulated/0/a//./b/../c"), "/sdcard/a/c");
        assert_eq!(clean("../../.."), "/");
        assert_eq!(clean("sdcard/x"), "/sdcard/x");
        assert_eq!(clean("/storage/emulated/00"), "/storage/emulated/00");
    }

    #[test]
    fn the_shell_writes_only_where_it_may() {
        let mut files = Files::default();
        assert_eq!(files.write("/sdcard/a/b.txt", b"x".to_vec(), 0o644, 1), Ok(()));
        assert_eq!(files.list("/sdcard/a"), Ok(vec!["b.txt".to_owned()]));
        assert_eq!(files.write("/system/x", Vec::new(), 0o644, 1), Err(FileError::Forbidden));
        assert_eq!(files.write("/sdcard", Vec::new(), 0o644, 1), Err(FileError::IsFolder));
        assert_eq!(files.write("/sdcard/../etc/passwd", Vec::new(), 0o644, 1), Err(FileError::Forbidden));
        assert_eq!(files.write("/sdcard/big", vec![0; CAPACITY + 1], 0o644, 1), Err(FileError::Full));
        assert_eq!(files.remove("/sdcard/a", false), Err(FileError::IsFolder));
        assert_eq!(files.remove("/sdcard/a", true), Ok(()));
        assert_eq!(files.read("/sdcard/a/b.txt"), Err(FileError::Missing));
    }

    #[test]
    fn links_are_followed_and_circles_end() {
        let mut files = Files::default();
        files.link("/system", "/sdcard/out").unwrap();
        files.link("Download", "/sdcard/near").unwrap();
        files.link("/sdcard/round", "/sdcard/round").unwrap();
        assert_eq!(files.real("/sdcard/out/bin/sh"), "/system/bin/sh");
        assert!(files.read("/sdcard/near/readme.txt").is_ok());
        assert_eq!(files.write("/sdcard/out/x", Vec::new(), 0o644, 1), Err(FileError::Forbidden));
        assert_eq!(files.read("/sdcard/round"), Err(FileError::Missing));
    }
}
