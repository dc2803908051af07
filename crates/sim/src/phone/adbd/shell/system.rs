//! Small commands about the system and the shell itself.

use super::{Io, Shell};
use crate::phone::machine::{KEYBOARD, LAUNCHER, PhoneMachine, SYSTEM_PID, SYSTEM_UI};

/// Every process: user, number, name.
fn processes(machine: &PhoneMachine) -> Vec<(String, u32, &'static str)> {
    let mut all = vec![
        ("root".to_owned(), 1, "init"),
        ("system".to_owned(), SYSTEM_PID, "system_server"),
        ("u0_a60".to_owned(), 1711, SYSTEM_UI),
        ("u0_a61".to_owned(), 1904, LAUNCHER),
        ("u0_a62".to_owned(), 2011, KEYBOARD),
        ("shell".to_owned(), 2200, "adbd"),
    ];
    all.extend(machine.pids.iter().map(|(app, pid)| (format!("u0_a{}", 100 + *app as u32), *pid, app.entry().package)));
    all
}

impl Shell {
    /// Commands that need neither time nor input. `None` where there is no such command.
    pub(super) fn plain(&mut self, name: &str, args: &[&str], io: &mut Io<'_, '_>) -> Option<u8> {
        match name {
            "true" | ":" | "sync" | "start" | "stop" | "set" | "export" | "umask" => {}
            "trap" => match args {
                ["-", ..] => self.set_trap(None),
                [line, _, ..] => self.set_trap(Some(line)),
                _ => {}
            },
            "false" => return Some(1),
            "echo" => {
                let (newline, words) = match args {
                    ["-n", rest @ ..] => (false, rest),
                    ["-e", rest @ ..] => (true, rest),
                    all => (true, all),
                };
                io.bytes(words.join(" ").as_bytes());
                if newline {
                    io.line("");
                }
            }
            "printf" => {
                let text = args.first().copied().unwrap_or_default().replace("\\n", "\n").replace("\\t", "\t");
                let mut rest = args.iter().skip(1);
                let mut parts = text.split("%s");
                io.bytes(parts.next().unwrap_or_default().as_bytes());
                for part in parts {
                    io.bytes(rest.next().copied().unwrap_or_default().as_bytes());
                    io.bytes(part.as_bytes());
                }
            }
            "exit" => {
                self.exiting = true;
                return Some(args.first().and_then(|code| code.parse::<i32>().ok()).map_or(self.last, |code| code as u8));
            }
            "cd" => {
                let to = super::super::files::clean(&self.path(args.first().copied().unwrap_or("/")));
                if self.files().list(&to).is_err() {
                    io.error(format!("/system/bin/sh: cd: {to}: No such file or directory"));
                    return Some(2);
                }
                self.folder = to;
            }
            "pwd" => io.line(self.folder.clone()),
            "test" | "[" => return Some(self.test(args)),
            "id" => io.line("uid=2000(shell) gid=2000(shell) groups=2000(shell),1004(input),1007(log),1015(sdcard_rw),3003(inet) context=u:r:shell:s0"),
            "whoami" => io.line("shell"),
            "hostname" => io.line("localhost"),
            "uname" => match args.first() {
                Some(&"-m") => io.line("aarch64"),
                Some(&"-a") => io.line("Linux localhost 5.10.0-virtual #1 SMP PREEMPT aarch64 Toybox"),
                _ => io.line("Linux"),
            },
            "uptime" => {
                let seconds = self.handset.with(|machine| machine.now() / 1000);
                io.line(format!(" up {}:{:02}, 0 users, load average: 0.10, 0.12, 0.15", seconds / 3600, seconds / 60 % 60));
            }
            "date" => {
                let (wall, epoch) = self.handset.with(|machine| (machine.wall(), machine.epoch()));
                match args.iter().find_map(|arg| arg.strip_prefix('+')) {
                    Some(format) => {
                        let nanos = epoch.rem_euclid(1000) * 1_000_000;
                        let filled = format
                            .replace("%s", &epoch.div_euclid(1000).to_string())
                            .replace("%N", &format!("{nanos:09}"))
                            .replace("%z", "+0000")
                            .replace("%Z", "UTC");
                        // A form that the clock cannot fill is given back as it came.
                        let mut out = String::new();
                        match std::fmt::Write::write_fmt(&mut out, format_args!("{}", wall.strftime(&filled))) {
                            Ok(()) => io.line(out),
                            Err(_) => io.line(filled),
                        }
                    }
                    None => io.line(wall.strftime("%a %b %e %H:%M:%S UTC %Y").to_string()),
                }
            }
            "ps" => self.ps(args, io),
            "pidof" => {
                let names: Vec<&&str> = args.iter().filter(|arg| !arg.starts_with('-')).collect();
                let found: Vec<String> = self.handset.with(|machine| {
                    let all = processes(machine).into_iter();
                    all.filter(|(_, _, own)| names.iter().any(|name| **name == *own)).map(|(_, pid, _)| pid.to_string()).collect()
                });
                if found.is_empty() {
                    return Some(1);
                }
                io.line(found.join(" "));
            }
            "pkill" => return Some(self.pkill(args, io)),
            "kill" | "killall" => {
                io.error(format!("{name}: Operation not permitted"));
                return Some(1);
            }
            "which" => match args.first() {
                Some(tool) => io.line(format!("/system/bin/{tool}")),
                None => return Some(1),
            },
            "log" => {
                let message = args.last().copied().unwrap_or_default();
                let tag = args.iter().position(|arg| *arg == "-t").and_then(|at| args.get(at + 1)).copied().unwrap_or("log");
                self.handset.with(|machine| machine.say(4711, sinew_phones::LogcatLevel::Info, tag, message));
            }
            "ip" if args.contains(&"-o") => io.line("1: lo    inet 127.0.0.1/8 scope host lo\\       valid_lft forever preferred_lft forever\n21: wlan0    inet 10.0.2.16/24 brd 10.0.2.255 scope global wlan0\\       valid_lft forever preferred_lft forever"),
            "ifconfig" | "ip" => io.line("wlan0     Link encap:Ethernet\n          inet addr:10.0.2.16  Bcast:10.0.2.255  Mask:255.255.255.0"),
            "service" => match args {
                ["check", service] => io.line(format!("Service {service}: found")),
                ["list"] => io.line("Found 0 services:"),
                _ => io.line("Result: Parcel(00000000    '....')"),
            },
            "reboot" => self.handset.restart(),
            "app_process" | "app_process64" => {
                io.error("Error: Could not find or load main class: this virtual phone runs no Java");
                return Some(1);
            }
            "su" => {
                io.error("/system/bin/sh: su: inaccessible or not found");
                return Some(127);
            }
            "env" | "printenv" => {
                let all: Vec<String> = self.variables.iter().map(|(name, value)| format!("{name}={value}")).collect();
                all.iter().for_each(|line| io.line(line));
            }
            _ => return None,
        }
        Some(0)
    }

    fn ps(&self, args: &[&str], io: &mut Io<'_, '_>) {
        let all = self.handset.with(|machine| processes(machine));
        let columns = args.iter().position(|arg| *arg == "-o").and_then(|at| args.get(at + 1)).copied();
        match columns {
            Some(columns) => {
                let columns: Vec<&str> = columns.split(',').collect();
                io.line(columns.join("   "));
                for (user, pid, name) in all {
                    let value = |column: &&str| match *column {
                        "PID" => format!("{pid:>5}"),
                        "USER" => user.clone(),
                        "PPID" => "1".to_owned(),
                        _ => name.to_owned(),
                    };
                    io.line(columns.iter().map(value).collect::<Vec<_>>().join(" "));
                }
            }
            None => {
                io.line("USER           PID  PPID     VSZ    RSS WCHAN            ADDR S NAME");
                for (user, pid, name) in all {
                    io.line(format!("{user:<12} {pid:>5}     1 1234567  54321 0                   0 S {name}"));
                }
            }
        }
    }

    fn test(&self, args: &[&str]) -> u8 {
        let args: Vec<&str> = args.iter().copied().filter(|arg| *arg != "]").collect();
        let holds = match args.as_slice() {
            ["-f" | "-e" | "-r" | "-s", path] => {
                self.files().read(&self.path(path)).is_ok() || self.files().list(&self.path(path)).is_ok()
            }
            ["-d", path] => self.files().list(&self.path(path)).is_ok(),
            ["-z", text] => text.is_empty(),
            ["-n", text] | [text] => !text.is_empty(),
            [a, "=" | "==", b] => a == b,
            [a, "!=", b] => a != b,
            [a, comparison, b] => match (a.parse::<i64>(), b.parse::<i64>()) {
                (Ok(a), Ok(b)) => match *comparison {
                    "-eq" => a == b,
                    "-ne" => a != b,
                    "-lt" => a < b,
                    "-le" => a <= b,
                    "-gt" => a > b,
                    "-ge" => a >= b,
                    _ => false,
                },
                _ => false,
            },
            _ => false,
        };
        u8::from(!holds)
    }
}
