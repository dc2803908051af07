//! `pm install`: from a file, streamed, or as a session with the splits of one app.

use std::sync::Arc;

use serde_json::{Value, json};
use sinew_apps::apk;

use super::{Io, Shell};
use crate::phone::virtual_app::{AppComponent, IntentReaction, VirtualApp, VirtualComponentKind};

/// Sessions that nobody ends are refused beyond this many.
const MOST_SESSIONS: usize = 50;

pub(super) fn is_install(args: &[&str]) -> bool {
    args.first().is_some_and(|command| {
        matches!(*command, "install" | "install-create" | "install-write" | "install-commit" | "install-abandon")
    })
}

impl Shell {
    pub(super) async fn install(&self, args: &[&str], io: &mut Io<'_, '_>) -> u8 {
        match args {
            ["install-create", ..] => match self.handset.open_session(MOST_SESSIONS).await {
                Some(number) => {
                    io.line(format!("Success: created install session [{number}]"));
                    0
                }
                None => failed("INSTALL_FAILED_INTERNAL_ERROR: too many sessions", io),
            },
            ["install-write", rest @ ..] => self.write_split(rest, io).await,
            ["install-commit", number, ..] => match self.handset.take_session(number) {
                Some(splits) => self.install_all(splits, io).await,
                None => failed("INSTALL_FAILED_INTERNAL_ERROR: unknown session", io),
            },
            ["install-abandon", number, ..] => match self.handset.take_session(number) {
                Some(_) => {
                    io.line("Success");
                    0
                }
                None => failed("INSTALL_FAILED_INTERNAL_ERROR: unknown session", io),
            },
            _ => match self.apk_bytes(args, io).await {
                Some(bytes) => self.install_all(vec![bytes], io).await,
                None => {
                    io.error("Error: Unable to open file: does not exist or cannot be read");
                    1
                }
            },
        }
    }

    /// `-S SIZE`: the bytes come with the command, as `adb install` sends them. Otherwise a path.
    async fn apk_bytes(&self, args: &[&str], io: &mut Io<'_, '_>) -> Option<Vec<u8>> {
        let size = args.iter().position(|arg| *arg == "-S").and_then(|at| args.get(at + 1)?.parse().ok());
        let path = args.iter().rev().find(|arg| arg.starts_with('/'));
        match (size, path) {
            (Some(size), None) => io.read_exact(size).await,
            (_, path) => path.and_then(|path| self.read_file(path).ok()),
        }
    }

    /// `install-write -S SIZE SESSION NAME [PATH | -]`.
    async fn write_split(&self, args: &[&str], io: &mut Io<'_, '_>) -> u8 {
        let Some(bytes) = self.apk_bytes(args, io).await else {
            return failed("INSTALL_FAILED_INTERNAL_ERROR: the bytes did not come", io);
        };
        let at = args.iter().position(|arg| *arg == "-S").map_or(0, |at| at + 2);
        let size = bytes.len();
        match args.get(at).is_some_and(|session| self.handset.write_session(session, bytes)) {
            true => {
                io.line(format!("Success: streamed {size} bytes"));
                0
            }
            false => failed("INSTALL_FAILED_INTERNAL_ERROR: unknown session", io),
        }
    }

    /// An app under the package name in its manifests. Its code does not run; activities answer every intent with what
    /// they received.
    async fn install_all(&self, apks: Vec<Vec<u8>>, io: &mut Io<'_, '_>) -> u8 {
        let mut base = None;
        for bytes in apks {
            let manifest = match apk::read_manifest(&bytes, &|_| false).await {
                Ok(manifest) => manifest,
                Err(error) => return failed(&format!("INSTALL_PARSE_FAILED_NOT_APK: {error}"), io),
            };
            match &base {
                None => base = Some((manifest, bytes)),
                Some((first, _)) if first.package != manifest.package => {
                    return failed("INSTALL_FAILED_INVALID_APK: the splits belong to different packages", io);
                }
                Some(_) => {}
            }
        }
        let Some((manifest, apk)) = base else {
            return failed("INSTALL_FAILED_INVALID_APK: the session has no files", io);
        };
        let parts = activities(&manifest);
        let apk::AndroidManifest { package, version_code, version_name, permissions, .. } = manifest;
        let about = VirtualApp { package, version_code, version_name, permissions, ..VirtualApp::default() };
        self.handset.install(VirtualApp { apk, parts, ..about });
        io.line("Success");
        0
    }
}

fn failed(why: &str, io: &mut Io<'_, '_>) -> u8 {
    io.error(format!("Failure [{why}]"));
    1
}

/// The exported activities of an app, each with an answer in place of its code.
fn activities(manifest: &apk::AndroidManifest) -> Vec<AppComponent> {
    let of_kind = |component: &&apk::Component| {
        component.kind == apk::ComponentKind::Activity && component.enabled && manifest.is_exported(component)
    };
    let part = |component: &apk::Component| AppComponent {
        kind: VirtualComponentKind::Activity,
        class: component.name.clone(),
        actions: component.filters.iter().flat_map(|filter| filter.actions.iter().cloned()).collect(),
        react: Arc::new(|request| {
            let extra = |name: &str| request.extras.get(name).map_or("", String::as_str);
            let parameters: Value = serde_json::from_str(extra("parameters")).unwrap_or_default();
            let answer = json!({
                "status": "success",
                "note": "the virtual phone runs no app code; this is what the app received",
                "tool_name": extra("tool_name"),
                "parameters": parameters,
            });
            IntentReaction::ok(answer.to_string())
        }),
    };
    manifest.components.iter().filter(of_kind).map(part).collect()
}
