//! The packages of a phone, and which of them may offer tools.

use std::collections::BTreeSet;

use sinew_phones::adb::command::ShellCommand;

/// A package as the phone lists it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InstalledPackage {
    pub package: String,
    /// The base APK, which holds the manifest.
    pub path: String,
    /// 0 if the phone does not report it.
    pub version_code: u64,
}

impl InstalledPackage {
    /// Whether it was installed or updated after the phone was made. Preinstalled packages are on read-only
    /// partitions.
    pub fn is_added(&self) -> bool {
        ["/data/", "/mnt/"].iter().any(|place| self.path.starts_with(place))
    }
}

/// The longest list that is read: phones have some hundreds of packages.
pub(crate) const MAX_PACKAGES: usize = 5_000;

/// Lists every package. Phones before Android 8 do not have the second option and list without it.
pub(crate) fn list_command() -> ShellCommand {
    ShellCommand::new("pm list packages -f --show-versioncode 2>/dev/null || pm list packages -f")
}

/// `package:/data/app/~~x==/a.b-y==/base.apk=a.b versionCode:12`; the path may hold `=` itself.
pub(crate) fn parse(text: &str) -> Vec<InstalledPackage> {
    let mut found: Vec<InstalledPackage> = text.lines().take(MAX_PACKAGES).filter_map(line).collect();
    found.sort();
    found.dedup_by(|one, two| one.package == two.package);
    found
}

fn line(line: &str) -> Option<InstalledPackage> {
    let rest = line.trim().strip_prefix("package:")?;
    let (place, words) = rest.split_once(' ').unwrap_or((rest, ""));
    let (path, package) = place.rsplit_once('=')?;
    let version = words.split_whitespace().find_map(|word| word.strip_prefix("versionCode:"));
    let fits = is_package(package) && path.starts_with('/') && path.len() <= 1024 && !path.contains(char::is_control);
    fits.then(|| InstalledPackage {
        package: package.to_owned(),
        path: path.to_owned(),
        version_code: version.and_then(|code| code.parse().ok()).unwrap_or_default(),
    })
}

/// Letters, digits, `_` and dots; Android allows 223 of them.
pub(crate) fn is_package(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'.';
    (1..=223).contains(&name.len()) && name.bytes().all(plain)
}

/// Lists the packages that respond to an action.
pub(crate) fn query_command<'a>(activities: &[&'a str], receivers: &[&'a str], services: &[&'a str]) -> ShellCommand {
    let of = |text: &'static str, actions: &[&'a str]| {
        actions.iter().map(|action| ShellCommand::new(text).arg(action)).collect::<Vec<_>>()
    };
    let all = [
        of("cmd package query-activities --brief -a", activities),
        of("cmd package query-receivers --brief -a", receivers),
        of("cmd package query-services --brief -a", services),
    ];
    all.into_iter().flatten().reduce(ShellCommand::then).unwrap_or_else(|| ShellCommand::new(":"))
}

/// Reads the lines `package/class` of a brief query; anything else that is printed is ignored.
pub(crate) fn parse_query(text: &str) -> BTreeSet<String> {
    let lines = text.lines().map(str::trim).filter(|line| !line.contains(' '));
    let packages = lines.filter_map(|line| Some(line.split_once('/')?.0)).filter(|package| is_package(package));
    packages.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_may_hold_equals_signs_and_versions_may_be_missing() {
        let text = "package:/data/app/~~c2luZXc==/a.b-dmlydA==/base.apk=a.b versionCode:12 uid:10123\n\
                    package:/system/app/X/X.apk=com.x\n\
                    package:/data/app/q/base.apk=bad-name\npackage:relative.apk=c.d\nError: x\n\
                    package:/data/app/a=b/base.apk=e.f versionCode:9999999999999999999999\n";
        let found = parse(text);
        assert_eq!(found.len(), 3, "{found:?}");
        assert_eq!((found[0].package.as_str(), found[0].version_code, found[0].is_added()), ("a.b", 12, true));
        assert_eq!(found[0].path, "/data/app/~~c2luZXc==/a.b-dmlydA==/base.apk");
        assert_eq!((found[1].package.as_str(), found[1].is_added()), ("com.x", false));
        assert_eq!((found[2].path.as_str(), found[2].version_code), ("/data/app/a=b/base.apk", 0));
    }

    #[test]
    fn a_query_gives_the_packages_that_respond() {
        let text = "1 activities found:\n  Activity #0:\n    priority=0 preferredOrder=0 match=0x108000 specificIndex=-1 isDefault=true\n    com.a/.Tools\nNo receivers found\n  com.b/com.b.R\nUnknown command: query-services\n";
        assert_eq!(parse_query(text), ["com.a", "com.b"].map(str::to_owned).into());
        let command = query_command(&["A'1"], &["B"], &[]);
        assert_eq!(
            command.line(),
            "cmd package query-activities --brief -a 'A'\\''1'; cmd package query-receivers --brief -a 'B'"
        );
    }
}
