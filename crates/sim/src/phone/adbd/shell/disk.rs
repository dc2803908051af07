//! Commands on files.

use super::super::files::{DIRECTORY, FileError, Stat};
use super::expand::glob_fits;
use super::{Io, Shell};
use crate::phone::log::wall_clock;

impl Shell {
    pub(super) fn disk(&mut self, name: &str, args: &[&str], io: &mut Io<'_, '_>) -> u8 {
        let flags: String = args.iter().filter_map(|arg| arg.strip_prefix('-')).collect();
        let paths: Vec<String> = args.iter().filter(|arg| !arg.starts_with('-')).map(|arg| self.path(arg)).collect();
        match name {
            "ls" => self.list_files(&flags, &paths, io),
            "dd" => self.copy_blocks(args, io),
            "stat" => self.stat(args, io),
            "df" => {
                io.line("Filesystem      1K-blocks   Used Available Use% Mounted on");
                io.line("/dev/block/dm-5     65536   1024     64512   2% /data");
                0
            }
            "du" => {
                io.line(format!("4\t{}", paths.first().map_or("/", String::as_str)));
                0
            }
            "chmod" => 0,
            "readlink" => {
                let Some(path) = paths.first() else { return 1 };
                let real = self.files().real(path);
                // As on real phones, where the card is one of the user's folders.
                let inside = real.strip_prefix("/sdcard").filter(|rest| rest.is_empty() || rest.starts_with('/'));
                io.line(inside.map_or(real.clone(), |rest| format!("/storage/emulated/0{rest}")));
                0
            }
            "ln" => {
                // What a link points to may be relative to the link, so it is kept as it was written.
                let mut words = args.iter().filter(|arg| !arg.starts_with('-'));
                let (Some(target), Some(path)) = (words.next(), paths.get(1)) else { return 1 };
                let linked = self.files().link(target, path);
                match linked {
                    Ok(()) => 0,
                    Err(error) => {
                        io.error(format!("ln: cannot create symlink '{path}': {}", error.text()));
                        1
                    }
                }
            }
            "find" => self.find_files(args, io),
            "mv" | "cp" => self.copy(name, &paths, io),
            _ => {
                let mut code = 0;
                for path in &paths {
                    let done = match name {
                        "rm" | "rmdir" => self.files().remove(path, flags.contains('r') || name == "rmdir"),
                        "mkdir" => self.files().make_folder(path),
                        _ => self.touch_file(path),
                    };
                    match done {
                        Ok(()) => {}
                        Err(FileError::Missing) if flags.contains('f') => {}
                        Err(error) => {
                            io.error(format!("{name}: {path}: {}", error.text()));
                            code = 1;
                        }
                    }
                }
                code
            }
        }
    }

    /// `find [PATH…] [-maxdepth N] [-name PATTERN] [-type f|d]`.
    fn find_files(&self, args: &[&str], io: &mut Io<'_, '_>) -> u8 {
        let at = args.iter().position(|arg| arg.starts_with('-')).unwrap_or(args.len());
        let (paths, tests) = args.split_at(at);
        let paths = if paths.is_empty() { &["."][..] } else { paths };
        let (mut depth, mut name, mut kind) = (usize::MAX, None, None);
        let mut tests = tests.iter();
        while let Some(test) = tests.next() {
            let value = tests.next().copied();
            match (*test, value) {
                ("-maxdepth", Some(value)) => depth = value.parse().unwrap_or(usize::MAX),
                ("-name", Some(value)) => name = Some(value),
                ("-type", Some(value)) => kind = Some(value),
                _ => {
                    io.error(format!("find: bad arg '{test}'"));
                    return 1;
                }
            }
        }
        let mut code = 0;
        for path in paths {
            if self.files().stat(&self.path(path)).is_err() {
                io.error(format!("find: '{path}': No such file or directory"));
                code = 1;
                continue;
            }
            let mut open = vec![((*path).to_owned(), 0)];
            while let Some((here, level)) = open.pop() {
                let Ok(stat) = self.files().stat(&self.path(&here)) else { continue };
                let is_folder = stat.mode & DIRECTORY == DIRECTORY;
                let last = here.rsplit('/').next().unwrap_or_default();
                let fits =
                    name.is_none_or(|name| glob_fits(name, last)) && kind.is_none_or(|kind| (kind == "d") == is_folder);
                if fits {
                    io.line(&here);
                }
                if is_folder && level < depth {
                    let names = self.files().list(&self.path(&here)).unwrap_or_default();
                    let parent = here.trim_end_matches('/');
                    open.extend(names.into_iter().rev().map(|name| (format!("{parent}/{name}"), level + 1)));
                }
            }
        }
        code
    }

    fn touch_file(&self, path: &str) -> Result<(), FileError> {
        let data = self.files().read(path).map(|file| file.data.clone()).unwrap_or_default();
        let time = self.handset.with(|machine| (machine.epoch() / 1000) as u32);
        self.files().write(path, data, 0o644, time)
    }

    fn copy(&self, name: &str, paths: &[String], io: &mut Io<'_, '_>) -> u8 {
        let [from, to] = paths else {
            io.error(format!("{name}: Needs 2 arguments"));
            return 1;
        };
        if from == "/dev/null" {
            return u8::from(self.store(to, Vec::new(), false, io).is_err());
        }
        let found = self.files().read(from).cloned();
        let done = found.and_then(|file| {
            let folder = self.files().stat(to).is_ok_and(|stat| stat.mode & DIRECTORY != 0);
            let end = from.rsplit('/').next().unwrap_or_default();
            let to = if folder { format!("{to}/{end}") } else { to.clone() };
            self.files().write(&to, file.data, file.mode, file.time)?;
            if name == "mv" { self.files().remove(from, false) } else { Ok(()) }
        });
        match done {
            Ok(()) => 0,
            Err(error) => {
                io.error(format!("{name}: {from}: {}", error.text()));
                1
            }
        }
    }

    fn list_files(&self, flags: &str, paths: &[String], io: &mut Io<'_, '_>) -> u8 {
        let here = vec![self.folder.clone()];
        let paths = if paths.is_empty() { &here } else { paths };
        let mut code = 0;
        for path in paths {
            let single = self.files().stat(path).map(|stat| stat.mode & DIRECTORY == 0 || flags.contains('d'));
            let entries = match single {
                Ok(true) => vec![(path.clone(), path.clone())],
                Ok(false) => {
                    let names = self.files().list(path).unwrap_or_default();
                    names.into_iter().map(|name| (format!("{path}/{name}"), name)).collect()
                }
                Err(error) => {
                    io.error(format!("ls: {path}: {}", error.text()));
                    code = 1;
                    continue;
                }
            };
            for (full, name) in entries {
                match (flags.contains('l'), self.files().stat(&full)) {
                    (true, Ok(stat)) => io.line(long(&stat, &name)),
                    _ => io.line(name),
                }
            }
        }
        code
    }

    fn stat(&self, args: &[&str], io: &mut Io<'_, '_>) -> u8 {
        let format = args.iter().position(|arg| *arg == "-c").and_then(|at| args.get(at + 1)).copied();
        let Some(path) = args.last().filter(|path| Some(**path) != format) else { return 1 };
        let found = self.files().stat(&self.path(path));
        match (found, format) {
            (Ok(stat), Some(format)) => {
                let filled = format
                    .replace("%s", &stat.size.to_string())
                    .replace("%Y", &stat.time.to_string())
                    .replace("%a", &format!("{:o}", stat.mode & 0o777))
                    .replace("%n", path);
                io.line(filled);
                0
            }
            (Ok(stat), None) => {
                io.line(format!("  File: {path}\n  Size: {}\t Blocks: 8\t IO Blocks: 512", stat.size));
                0
            }
            (Err(error), _) => {
                io.error(format!("stat: '{path}': {}", error.text()));
                1
            }
        }
    }

    /// `dd if= bs= skip= count=`, to read part of a file.
    fn copy_blocks(&self, args: &[&str], io: &mut Io<'_, '_>) -> u8 {
        let value = |name: &str| args.iter().find_map(|arg| arg.strip_prefix(name)?.strip_prefix('='));
        let number = |name: &str| {
            let text = value(name)?;
            let (digits, unit) = match text.strip_suffix(['k', 'K']) {
                Some(digits) => (digits, 1024),
                None => (text.strip_suffix('M').unwrap_or(text), if text.ends_with('M') { 1024 * 1024 } else { 1 }),
            };
            digits.parse::<usize>().ok()?.checked_mul(unit)
        };
        let Some(path) = value("if") else { return 1 };
        let data = match self.read_file(path) {
            Ok(data) => data,
            Err(trouble) => {
                io.error(format!("dd: {path}: {trouble}"));
                return 1;
            }
        };
        let block = number("bs").unwrap_or(512);
        let from = number("skip").unwrap_or(0).saturating_mul(block).min(data.len());
        let to = number("count").map_or(data.len(), |count| from.saturating_add(count.saturating_mul(block)));
        let part = &data[from..to.min(data.len())];
        io.error(format!("{0}+0 records in\n{0}+0 records out", part.len() / block.max(1)));
        match value("of") {
            Some(target) => match self.store(target, part.to_vec(), false, io) {
                Ok(()) => 0,
                Err(trouble) => {
                    io.error(format!("dd: {target}: {trouble}"));
                    1
                }
            },
            None => {
                io.bytes(part);
                0
            }
        }
    }
}

fn long(stat: &Stat, name: &str) -> String {
    let letters: String =
        (0..9).rev().map(|bit| if stat.mode >> bit & 1 == 1 { ['x', 'w', 'r'][bit % 3] } else { '-' }).collect();
    let kind = if stat.mode & DIRECTORY != 0 { 'd' } else { '-' };
    let time = wall_clock(i64::from(stat.time) * 1000).strftime("%Y-%m-%d %H:%M").to_string();
    format!("{kind}{letters} 1 shell shell {} {time} {name}", stat.size)
}
