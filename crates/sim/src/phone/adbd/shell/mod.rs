//! The phone's shell: an interpreter over the virtual phone. It never runs a command of the host.
//!
//! [`parse`] reads lines, this file carries them out, the neighbours are the commands, and [`formats`]
//! says for each answer where its form comes from.

mod agent;
mod apps;
#[cfg(test)]
mod chaos;
mod companion;
mod disk;
mod dumpsys;
mod expand;
pub mod formats;
mod input;
mod installer;
mod io;
mod live;
mod logcat;
mod mistakes;
mod packages;
mod parse;
mod props;
#[cfg(test)]
mod recorded;
mod screen;
mod screenrecord;
#[cfg(test)]
mod scripts;
mod stream;
mod sum;
mod system;
mod text;
mod virtual_apps;
mod words;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use sinew_tool::BoxFuture;

#[cfg(test)]
pub(crate) use dumpsys::address as address_of;
pub use io::Io;
pub use live::LiveStream;

use super::connection::Closed;
use super::files::Files;
use crate::phone::android::Android;
use crate::phone::handset::Handset;
use installer::is_install;
use parse::{CommandBody, CommandList, Join, ParsedCommand, Pipeline, Redirect};

/// A command line is never longer on Android.
const LONGEST_LINE: usize = 128 * 1024;

/// A script that goes round more often does not end.
const MOST_ROUNDS: usize = 100_000;

pub struct Shell {
    handset: Handset,
    variables: BTreeMap<String, String>,
    folder: String,
    last: u8,
    exiting: bool,
    /// Rounds that loops have made since the line began.
    rounds: usize,
    /// What it runs when its connection ends before it does.
    trap: Option<String>,
    /// Whether it goes on when its connection ends.
    ignores_hangup: Arc<AtomicBool>,
    /// The variable of that name, which the next command alone was given.
    class_path: Option<String>,
}

/// A shell whose connection ends is told so by a signal.
impl Drop for Shell {
    fn drop(&mut self) {
        let (Some(line), Ok(runtime)) = (self.trap.take(), tokio::runtime::Handle::try_current()) else { return };
        let mut shell = Shell::new(self.handset.clone());
        runtime.spawn(async move { shell.run(&line).await });
    }
}

impl Shell {
    pub fn new(handset: Handset) -> Shell {
        let variables = [
            ("HOME", "/"),
            ("USER", "shell"),
            ("HOSTNAME", "virtual"),
            ("SHELL", "/bin/sh"),
            ("PATH", "/product/bin:/apex/com.android.runtime/bin:/system/bin:/system/xbin:/vendor/bin"),
            ("EXTERNAL_STORAGE", "/sdcard"),
            ("ANDROID_DATA", "/data"),
            ("ANDROID_ROOT", "/system"),
            ("TMPDIR", "/data/local/tmp"),
        ];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        Shell {
            handset,
            variables,
            folder: "/".to_owned(),
            last: 0,
            exiting: false,
            rounds: 0,
            trap: None,
            ignores_hangup: Arc::default(),
            class_path: None,
        }
    }

    /// Says there whether it goes on when its connection ends.
    pub fn that_says(mut self, ignores_hangup: Arc<AtomicBool>) -> Shell {
        self.ignores_hangup = ignores_hangup;
        self
    }

    pub fn set_variable(&mut self, name: &str, value: &str) {
        self.variables.insert(name.to_owned(), value.to_owned());
    }

    fn set_trap(&mut self, line: Option<&str>) {
        self.ignores_hangup.store(line == Some(""), Ordering::Relaxed);
        self.trap = line.filter(|line| !line.is_empty()).map(str::to_owned);
    }

    /// Sends what has gathered; a shell that ignores a hang-up goes on unheard.
    async fn tell(&self, io: &mut Io<'_, '_>) -> Result<(), Closed> {
        match io.flush().await {
            Err(Closed) if self.ignores_hangup.load(Ordering::Relaxed) => Ok(()),
            told => told,
        }
    }

    fn files(&self) -> MutexGuard<'_, Files> {
        self.handset.files()
    }

    fn android(&self) -> Android {
        self.handset.with(|machine| machine.setup.android)
    }

    /// Runs a line and answers what it printed and how it ended.
    pub async fn run(&mut self, line: &str) -> (Vec<u8>, Vec<u8>, u8) {
        self.run_in(line, Io::quiet(None)).await
    }

    /// The same with something to read.
    pub async fn run_with(&mut self, line: &str, input: Vec<u8>) -> (Vec<u8>, Vec<u8>, u8) {
        self.run_in(line, Io::quiet(Some(input))).await
    }

    async fn run_in(&mut self, line: &str, mut io: Io<'_, '_>) -> (Vec<u8>, Vec<u8>, u8) {
        let code = self.line(line, &mut io).await.unwrap_or(1);
        self.trap = None;
        (io.out, io.err, code)
    }

    /// Serves a stream: one line, or lines as they are typed.
    pub async fn serve(&mut self, line: &str, live: &mut LiveStream<'_>) -> Result<(), Closed> {
        if line.trim().is_empty() {
            return self.converse(live).await;
        }
        let code = self.live_line(line, live).await?;
        self.trap = None;
        self.handset.pass_moment().await;
        live.exit(code).await
    }

    async fn live_line(&mut self, line: &str, live: &mut LiveStream<'_>) -> Result<u8, Closed> {
        let mut io = Io { live: Some(live), ..Io::quiet(None) };
        let code = self.line(line, &mut io).await?;
        self.tell(&mut io).await?;
        Ok(code)
    }

    /// A shell without a command: a prompt, a line, its answer, until the end.
    async fn converse(&mut self, live: &mut LiveStream<'_>) -> Result<(), Closed> {
        let mut typed = Vec::new();
        let prompt = |shell: &Shell| format!("virtual:{} $ ", shell.folder);
        if live.pty {
            live.write(prompt(self).as_bytes(), b"").await?;
        }
        while let Some(more) = live.read().await {
            for byte in more {
                match byte {
                    // Control-D at the start of a line ends a conversation.
                    4 if live.pty && typed.is_empty() => return live.exit(self.last).await,
                    8 | 127 if live.pty && typed.pop().is_some() => live.write(b"\x08 \x08", b"").await?,
                    8 | 127 if live.pty => {}
                    b'\r' | b'\n' => {
                        if live.pty {
                            live.write(b"\n", b"").await?;
                        }
                        let line = String::from_utf8_lossy(&std::mem::take(&mut typed)).into_owned();
                        self.last = self.live_line(&line, live).await?;
                        if self.exiting {
                            return live.exit(self.last).await;
                        }
                        if live.pty {
                            live.write(prompt(self).as_bytes(), b"").await?;
                        }
                    }
                    byte if typed.len() < LONGEST_LINE => {
                        typed.push(byte);
                        if live.pty {
                            live.write(&[byte], b"").await?;
                        }
                    }
                    _ => {}
                }
            }
        }
        live.exit(self.last).await
    }

    async fn line(&mut self, line: &str, io: &mut Io<'_, '_>) -> Result<u8, Closed> {
        if line.len() > LONGEST_LINE {
            io.error("/system/bin/sh: command line too long");
            return Ok(1);
        }
        self.rounds = 0;
        match parse::parse(line) {
            Ok(list) => self.list(&list, io).await,
            Err(trouble) => {
                io.error(format!("/system/bin/sh: {trouble}"));
                Ok(1)
            }
        }
    }

    fn list<'a>(&'a mut self, list: &'a CommandList, io: &'a mut Io<'_, '_>) -> BoxFuture<'a, Result<u8, Closed>> {
        Box::pin(async move {
            let mut code = 0;
            for pipeline in list {
                let wanted = match pipeline.join {
                    Join::Always => true,
                    Join::IfWell => code == 0,
                    Join::IfNot => code != 0,
                };
                if !wanted || self.exiting {
                    continue;
                }
                code = self.pipeline(pipeline, io).await?;
                self.last = code;
                self.tell(io).await?;
            }
            Ok(code)
        })
    }

    async fn pipeline(&mut self, pipeline: &Pipeline, io: &mut Io<'_, '_>) -> Result<u8, Closed> {
        let mut code = 0;
        let mut passed = None;
        let last = pipeline.commands.len() - 1;
        for (index, command) in pipeline.commands.iter().enumerate() {
            if index == last {
                let own = io.stdin.take();
                io.stdin = passed.take().or(own);
                code = self.command(command, io).await?;
                io.stdin = None;
            } else {
                let mut between = Io::quiet(Some(passed.take().unwrap_or_default()));
                self.command(command, &mut between).await?;
                io.err.extend(between.err);
                passed = Some(between.out);
            }
        }
        Ok(if pipeline.negated { u8::from(code == 0) } else { code })
    }

    async fn command(&mut self, command: &ParsedCommand, io: &mut Io<'_, '_>) -> Result<u8, Closed> {
        if command.redirects.is_empty() {
            return self.body(&command.body, io).await;
        }
        let mut inner = Io::quiet(io.stdin.take());
        for redirect in &command.redirects {
            if let Redirect::Input(from) = redirect {
                let path = self.expand(from).await;
                match self.read_file(&path) {
                    Ok(data) => inner.stdin = Some(data),
                    Err(trouble) => {
                        io.error(format!("/system/bin/sh: can't open {path}: {trouble}"));
                        return Ok(1);
                    }
                }
            }
        }
        let code = self.body(&command.body, &mut inner).await?;
        let (mut out, mut err) = (inner.out, inner.err);
        for redirect in &command.redirects {
            match redirect {
                Redirect::Input(_) => {}
                Redirect::Join { from: 2, .. } => out.append(&mut err),
                Redirect::Join { .. } => err.append(&mut out),
                Redirect::StoredFile { from, append, to } => {
                    let path = self.expand(to).await;
                    let data = std::mem::take(if *from == 2 { &mut err } else { &mut out });
                    if let Err(trouble) = self.store(&path, data, *append, io) {
                        io.error(format!("/system/bin/sh: can't create {path}: {trouble}"));
                        return Ok(1);
                    }
                }
            }
        }
        io.bytes(&out);
        io.err.extend(err);
        Ok(code)
    }

    fn read_file(&self, path: &str) -> Result<Vec<u8>, &'static str> {
        let path = self.path(path);
        if path == "/dev/null" {
            return Ok(Vec::new());
        }
        self.files().read(&path).map(|file| file.data.clone()).map_err(super::files::FileError::text)
    }

    fn store(&self, path: &str, data: Vec<u8>, append: bool, io: &mut Io<'_, '_>) -> Result<(), &'static str> {
        match path {
            "/dev/null" => return Ok(()),
            "/dev/tty" | "/dev/stdout" => {
                io.bytes(&data);
                return Ok(());
            }
            _ => {}
        }
        let mut whole = if append { self.read_file(path).unwrap_or_default() } else { Vec::new() };
        whole.extend(data);
        self.write_file(path, whole)
    }

    fn write_file(&self, path: &str, data: Vec<u8>) -> Result<(), &'static str> {
        let time = self.handset.with(|machine| (machine.epoch() / 1000) as u32);
        let path = self.path(path);
        self.files().write(&path, data, 0o644, time).map_err(super::files::FileError::text)
    }

    /// A path from where the shell stands.
    fn path(&self, path: &str) -> String {
        if path.starts_with('/') { path.to_owned() } else { format!("{}/{path}", self.folder) }
    }

    async fn body(&mut self, body: &CommandBody, io: &mut Io<'_, '_>) -> Result<u8, Closed> {
        match body {
            CommandBody::Group(list) => self.list(list, io).await,
            CommandBody::If { branches, otherwise } => {
                for (condition, body) in branches {
                    if self.list(condition, io).await? == 0 {
                        return self.list(body, io).await;
                    }
                }
                self.list(otherwise, io).await
            }
            CommandBody::While { condition, until, body } => {
                let mut code = 0;
                while !self.exiting && (self.list(condition, io).await? == 0) != *until {
                    code = self.list(body, io).await?;
                    if !self.may_go_on() {
                        io.error("/system/bin/sh: the loop does not end");
                        return Ok(1);
                    }
                }
                Ok(code)
            }
            CommandBody::For { name, words, body } => {
                let mut values = Vec::new();
                for word in words {
                    values.extend(self.expand_all(word).await);
                }
                let mut code = 0;
                for value in values {
                    if self.exiting || !self.may_go_on() {
                        break;
                    }
                    self.variables.insert(name.clone(), value);
                    code = self.list(body, io).await?;
                }
                Ok(code)
            }
            CommandBody::Simple { assigned, words } => {
                let mut args = Vec::with_capacity(words.len());
                for word in words {
                    args.extend(self.expand_all(word).await);
                }
                for (name, value) in assigned {
                    let value = self.expand(value).await;
                    // A variable for one command alone has no meaning here, but for this one.
                    if name == "CLASSPATH" {
                        self.class_path = Some(value);
                    } else if args.is_empty() {
                        self.variables.insert(name.clone(), value);
                    }
                }
                match args.split_first() {
                    Some((name, args)) => self.dispatch(name, args, io).await,
                    None => Ok(0),
                }
            }
        }
    }

    /// Counts the rounds of all loops of a line: one that waits in vain ends.
    fn may_go_on(&mut self) -> bool {
        self.rounds += 1;
        self.rounds <= MOST_ROUNDS
    }

    /// Every command there is.
    async fn dispatch(&mut self, name: &str, args: &[String], io: &mut Io<'_, '_>) -> Result<u8, Closed> {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let args = args.as_slice();
        let name = name.strip_prefix("/system/bin/").unwrap_or(name);
        if let Some(code) = self.answer_mistake(name, args, io) {
            return Ok(code);
        }
        Ok(match name {
            "sleep" => {
                let seconds: f64 = args.first().and_then(|text| text.parse().ok()).unwrap_or(0.0);
                // An hour is longer than anyone waits for an answer.
                self.handset.pass(Duration::from_secs_f64(seconds.clamp(0.0, 3600.0))).await;
                0
            }
            "read" => self.read_line(args, io).await,
            "input" => self.input(args, io).await,
            "cmd" => return Box::pin(self.cmd(args, io)).await,
            "app_process" | "app_process64" => return self.app_process(args, io).await,
            "logcat" => return self.logcat(args, io).await,
            "cat" | "grep" | "egrep" | "fgrep" | "head" | "tail" | "wc" | "sort" | "uniq" | "base64" | "md5sum"
            | "tr" | "cut" | "xargs" | "sed" | "awk" => return self.filter(name, args, io).await,
            "sh" => match args {
                ["-c", line, ..] => {
                    let list = parse::parse(line).unwrap_or_default();
                    return self.list(&list, io).await;
                }
                _ => 0,
            },
            "toybox" | "busybox" | "exec" | "nohup" | "time" | "timeout" => {
                let skip = usize::from(name == "timeout");
                let rest: Vec<String> = args.iter().skip(skip).map(|arg| (*arg).to_owned()).collect();
                match rest.split_first() {
                    Some((name, args)) => return Box::pin(self.dispatch(name, args, io)).await,
                    None => 0,
                }
            }
            "uiautomator" => self.uiautomator(args, io),
            "screencap" => self.screencap(args, io),
            "screenrecord" => self.screenrecord(args, io).await,
            "wm" => self.wm(args, io),
            "dumpsys" => self.dumpsys(args, io),
            "am" => self.am(args, io).await,
            "pm" if is_install(args) => self.install(args, io).await,
            "pm" => self.pm(args, io),
            "monkey" => self.monkey(args, io),
            "getprop" => self.getprop(args, io),
            "setprop" => 0,
            "settings" => self.settings(args, io),
            "content" => match self.companion_read(args, io).await.or_else(|| self.provider_call(args, io)) {
                Some(code) => code,
                None => self.content(args, io),
            },
            "ime" => self.ime(args, io),
            "svc" => self.svc(args),
            "ls" | "rm" | "mkdir" | "rmdir" | "stat" | "mv" | "cp" | "touch" | "dd" | "du" | "df" | "chmod"
            | "find" | "readlink" | "ln" => self.disk(name, args, io),
            _ => match self.plain(name, args, io) {
                Some(code) => code,
                None => {
                    let found = if self.android() < Android::V11 { "not found" } else { "inaccessible or not found" };
                    io.error(format!("/system/bin/sh: {name}: {found}"));
                    127
                }
            },
        })
    }
}
